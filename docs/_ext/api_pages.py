"""Pages of the modules' docstrings, made from the source without importing it; one page a module."""

import ast
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src"


def module_names() -> list[str]:
    """All modules of the package but private ones and kernels' own helpers."""
    paths = sorted((ROOT / "vaiphy").rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return [name for name in names if not any(part.startswith("_") for part in name.split("."))]


def module_page(name: str) -> str:
    """The docstrings of one module as Markdown, each name as an object of Sphinx's Python domain."""
    path = ROOT.joinpath(*name.split("."))
    source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    text = source.read_text(encoding="utf-8")
    tree = ast.parse(text)
    parts = [f"# {name}\n\n```{{py:module}} {name}\n```\n", _literal(ast.get_docstring(tree) or "")]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            parts.append(_entry("", node, text, "##"))
            if isinstance(node, ast.ClassDef):
                methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")}
                parts += [_entry(f"{node.name}.", m, text, "###") for m in methods.values() if ast.get_docstring(m)]
    return "\n".join(parts)


def _entry(place: str, node: ast.FunctionDef | ast.ClassDef, text: str, level: str) -> str:
    lines = text.splitlines()
    if isinstance(node, ast.ClassDef):
        fields = [ast.get_source_segment(text, part) or "" for part in node.body if isinstance(part, ast.AnnAssign)]
        head = "\n    ".join([lines[node.lineno - 1], *fields])
    else:
        head = textwrap.dedent("\n".join(lines[node.lineno - 1 : max(node.body[0].lineno - 1, node.lineno)]).rstrip())
    kind = "class" if isinstance(node, ast.ClassDef) else "method" if level == "###" else "function"
    arguments = "" if kind == "class" else f"({', '.join(a.arg for a in node.args.args if a.arg != 'self')})"  # type: ignore[union-attr]
    body = f"```python\n{head}\n```\n\n{_literal(ast.get_docstring(node) or '')}"
    return f"{level} {node.name}\n\n``````{{py:{kind}}} {place}{node.name}{arguments}\n\n{body}\n``````\n"


def _literal(docstring: str) -> str:
    """A docstring as text that wraps: its paragraphs are joined, examples and lists stay as they are."""
    paragraphs = []
    for paragraph in docstring.strip().split("\n\n"):
        plain = not any(line.startswith((" ", ">>>", "-", "|")) for line in paragraph.splitlines())
        paragraphs.append(" ".join(paragraph.split()) if plain else paragraph)
    text = "\n\n".join(paragraphs)
    return f"````{{code-block}} text\n:class: docstring\n\n{text}\n````\n" if text else ""


def write_pages(app: object) -> None:
    folder = Path(app.srcdir) / "api"  # type: ignore[attr-defined]
    folder.mkdir(exist_ok=True)
    names = module_names()
    pages = {f"{name}.md": module_page(name) for name in names}
    listed = "\n".join(names)
    intro = "What every module says of itself, from the bottom of the package to its top in alphabetical order."
    pages["index.md"] = f"# Modules\n\n{intro}\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, content in pages.items():
        target = folder / name
        if not target.exists() or target.read_text(encoding="utf-8") != content:
            target.write_text(content, encoding="utf-8")


def setup(app: object) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
