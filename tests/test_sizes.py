"""Modules and functions that fit into a head: a module has at most 300 lines, a function a screenful or a reason not to."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "vaiphy"
MOST_LINES, SCREENFUL, MOST_FILES_IN_ROOT = 300, 60, 12
#: How the comment begins by which a longer function says why it is not cut.
REASON = "# In one piece:"


def sources():
    return [(path.relative_to(SOURCE).as_posix(), path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]


def long_functions(text):
    """Names of functions whose bodies, without docstrings, are longer than a screen, and that give no reason."""
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            size = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            if size > SCREENFUL and not any(REASON in line for line in lines[node.lineno : node.end_lineno]):
                yield node.name


def test_modules():
    sizes = {name: text.count("\n") for name, text in sources()}
    assert not {name: size for name, size in sizes.items() if size > MOST_LINES}


def test_functions():
    found = [f"{name}: {function}" for name, text in sources() for function in long_functions(text)]
    assert not found


def test_the_root_is_small():
    files = [path.name for path in SOURCE.iterdir() if path.is_file() and path.name not in ("__init__.py", "py.typed")]
    assert len(files) <= MOST_FILES_IN_ROOT


def test_the_rule_sees_long_functions():
    body = "    x = 1\n" * (SCREENFUL + 1)
    assert list(long_functions("def f():\n" + body)) == ["f"]
    assert not list(long_functions(f"def f():\n    {REASON} a list\n" + body))
    assert not list(long_functions('def f():\n    """' + "\n" * SCREENFUL + '"""\n    return 1\n'))
