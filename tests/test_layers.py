"""Who may import whom: a module imports only from the layers below it, or from its own room. The syntax tree tells."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "vaiphy"

#: Modules and rooms (folders) from the bottom up; those in one row know nothing of each other.
LAYERS = [
    {"errors", "parallel", "kernels"},
    {"alignment", "tree", "checkpoint", "settings"},
    {"datasets", "description", "treesample"},
    {"formats"},
    {"model"},
    {"simulate"},
    {"likelihood"},
    {"rearrange"},
    {"start", "augmented", "ancestral"},
    {"branches", "evidence"},
    {"topology", "search"},
    {"vi_updates"},
    {"vi_steps"},
    {"figures", "vi"},
    {"csmc"},
    {"refine"},
    {"splitsample"},
    {"consensus", "treefiles"},
    {"posterior"},
    {"outcome"},
    {"runlog", "methods"},
    {"analysis"},
    {"report"},
    {"runner"},
    {"cli"},
]
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}
#: Rooms that see nothing of the package but themselves.
CLOSED = {"kernels", "errors", "parallel"}
HEAVY = {"numba", "scipy", "matplotlib", "jinja2"}


def home(path):
    """The module or room that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imports(tree):
    """Full names of what a file imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def sources():
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def test_every_module_has_its_layer():
    unknown = {home(path) for path in sources()} - RANK.keys()
    assert not unknown, f"place {sorted(unknown)} in LAYERS"


def test_modules_import_only_from_below():
    wrong = []
    for path in sources():
        here = home(path)
        for name in imports(ast.parse(path.read_text())):
            parts = name.split(".")
            if parts[0] != "vaiphy" or parts[1] in ("__version__", here):
                continue
            if here in CLOSED or RANK[parts[1]] >= RANK[here]:
                wrong.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_the_rule_is_not_vacuous():
    found = {
        (home(path), name.split(".")[1])
        for path in sources()
        for name in imports(ast.parse(path.read_text()))
        if "vaiphy." in name
    }
    assert ("formats", "alignment") in found
    assert ("likelihood", "kernels") in found


def test_commands_import_nothing_heavy_at_the_top():
    """`vaiphy --help` loads `cli/__init__.py` alone; what it imports at the top must be light."""
    for name in ("cli/__init__.py", "errors.py", "__init__.py"):
        tree = ast.parse((SOURCE / name).read_text())
        top = {alias for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in imports(node)}
        assert not {alias.split(".")[0] for alias in top} & (HEAVY | {"numpy", "rich"})
