"""Who may import whom: a module imports only from the layers below it, or from its own room. The syntax tree tells."""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "vaiphy"

#: Rooms (folders) and the few modules of the root, from the bottom up; those in one row know nothing of each other.
LAYERS = [
    {"kernels", "errors", "parallel", "ranges", "weights"},
    {"alphabets", "workers"},
    {"alignment", "trees"},
    {"datasets", "models"},
    {"formats", "likelihood"},
    {"target", "quantities"},
    {"topology", "branches", "parameters"},
    {"search", "summary"},
    {"interop", "vi", "csmc", "vbpi"},
    {"posterior"},
    {"methods"},
    {"output"},
    {"runner"},
    {"warm"},
    {"cli"},
]
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}
#: Rooms that see nothing of the package but themselves.
CLOSED = {"kernels", "errors", "parallel", "ranges", "weights"}
HEAVY = {"numba", "scipy", "matplotlib", "jinja2", "torch"}


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


def wrong_imports(path, text):
    """What a file imports although it lies above or beside the file's own room."""
    here = home(path)
    for name in imports(ast.parse(text)):
        parts = name.split(".")
        if parts[0] != "vaiphy" or parts[1] in ("__version__", here):
            continue
        if here in CLOSED or RANK[parts[1]] >= RANK[here]:
            yield f"{path.relative_to(SOURCE)} imports {name}"


def test_modules_import_only_from_below():
    wrong = [line for path in sources() for line in wrong_imports(path, path.read_text())]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("kernels/x.py", "from vaiphy.errors import InputError"),
        ("trees/x.py", "from vaiphy.alignment import SitePatterns"),
        ("likelihood.py", "from vaiphy.formats import read_trees"),
        ("search/x.py", "from vaiphy import csmc"),
        ("vi/x.py", "from vaiphy.csmc.engine import run"),
        ("methods/x.py", "def late():\n    import vaiphy.runner.steps"),
        ("output/x.py", "from vaiphy.runner.checkpoint import save"),
    ],
)
def test_the_rule_forbids(file, line):
    assert list(wrong_imports(SOURCE / file, line))


def test_the_map_in_contributing_is_the_order_tested_here():
    """Its table names every room there is, in rows that follow each other as the layers do."""
    rows = re.findall(r"^\| ((?:`[a-z]+/?` ?)+)\|", (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([a-z]+)/?`", row)]
    assert set(named) == {home(path) for path in sources()}
    ranks = [RANK[name] for name in named]
    assert ranks == sorted(ranks)


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
