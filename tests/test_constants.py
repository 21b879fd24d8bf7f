"""No number of JC69 stands outside the files that are about JC69: 3/4, 4/3, 1/4 as a frequency, 16/9, in whatever spelling."""

import ast
from math import isclose
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "vaiphy"

#: 4/3, 16/9, 16/3 and their reciprocals, and the frequencies of one base and of two.
NUMBERS = (4 / 3, 3 / 4, 16 / 9, 9 / 16, 16 / 3, 3 / 16, 1 / 4, 1 / 16)
#: The models themselves; sums over equal frequencies; the distributions of branch lengths that are made from JC69 (the JC
#: sampler, VaiPhy's optimal ones) with their kernels; VaiPhy's coordinate ascent; VBPI's branch lengths from the JC sampler.
AT_HOME = (
    "models/",
    "branches/jc_sampler.py",
    "branches/law.py",
    "branches/optimal.py",
    "kernels/frequencies.py",
    "kernels/lengths.py",
    "vbpi/bases.py",
    "vi/",
)
#: The same numbers where they mean something else: shares, quartiles, an opacity, a step that is small enough.
OTHERWISE = {
    "output/svg.py": {"0.75"},
    "posterior/tree_law.py": {"0.25"},
    "posterior/progress.py": {"0.25"},
    "posterior/settings.py": {"0.25", "0.75"},
    "summary/parameters.py": {"0.25", "0.75"},
    "vbpi/settings.py": {"0.25", "0.75"},
    "weights.py": {"n / 4.0"},
}


def number(node):
    """The value of an expression that is made of numbers alone, else None."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = number(node.operand)
        return None if value is None else -value
    if isinstance(node, ast.BinOp):
        left, right = number(node.left), number(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.Div):
            return left / right if right else None
    return None


def factor(node):
    """The product of all numbers in a chain of products and quotients: 0.75 in `3 * rate / 4`."""
    value = number(node)
    if value is not None:
        return value
    if isinstance(node, ast.UnaryOp):
        return factor(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return factor(node.left) * factor(node.right)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return factor(node.left) / (factor(node.right) or 1.0)
    return 1.0


def is_jc69(node):
    """Whether an expression's numbers are JC69's; chains of products count as a whole."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("log", "log2", "sqrt"):
        return [number(argument) for argument in node.args] in ([4.0], [0.75], [0.25], [4 / 3])
    if isinstance(node, ast.BinOp) and not isinstance(node.op, (ast.Mult, ast.Div)):
        return False
    if not isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Constant)):
        return False
    return any(isclose(abs(factor(node)), one, rel_tol=1e-3) for one in NUMBERS)


def found_in(text):
    def visit(node):
        if is_jc69(node):
            yield ast.unparse(node)
            return
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    return set(visit(ast.parse(text)))


def test_numbers_of_jc69_stay_at_home():
    wrong = {}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(AT_HOME):
            wrong[name] = found_in(path.read_text()) - OTHERWISE.get(name, set())
    assert not {name: found for name, found in wrong.items() if found}


def test_no_exception_is_left_over():
    for name, allowed in OTHERWISE.items():
        assert allowed <= found_in((SOURCE / name).read_text()), name
    for name in AT_HOME:
        assert (SOURCE / name).exists(), name


@pytest.mark.parametrize(
    "line",
    [
        "prior = 0.75 * rate",
        "prior = 3 * rate / 4",
        "prior = rate / (4.0 / 3.0)",
        "u = np.exp(-4.0 / 3.0 * b)",
        "u = exp(-b * 4 / 3)",
        "u = exp(-1.3333 * b)",
        "second = 16.0 / 9.0 * u",
        "q = np.float32(0.25) * (1 - u)",
        "states = np.full((4, n), 1 / 4)",
        "mean = (a + b) / 4",
        "x = n * log(4.0)",
        "x = -(3 * y) / 16",
    ],
)
def test_the_rule_forbids(line):
    assert found_in(line)


@pytest.mark.parametrize("line", ["x = 0.5 * y", "for a in range(4): pass", "x = y[4] - 4", "x = 3 + y / 7"])
def test_the_rule_allows(line):
    assert not found_in(line)


#: Where the name means what is asked for, or what people call it: VaiPhy and CSMC, which have no other model; citations.
NAMED = {"csmc/runs.py", "methods/settings.py", "output/citations.py"}


def asks_by_name(text):
    """Comparisons with the name of JC69, whatever is done then: what a model is like, its values say."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare):
            inside = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if {"JC", "JC69"} & {one.upper() for one in inside if isinstance(one, str)}:
                yield ast.unparse(node)


def test_nobody_above_the_models_asks_for_jc69_by_name():
    found = {path.relative_to(SOURCE).as_posix(): list(asks_by_name(path.read_text())) for path in SOURCE.rglob("*.py")}
    assert {name for name, lines in found.items() if lines and not name.startswith(AT_HOME)} == NAMED
    assert list(asks_by_name('if model.upper() in ("JC", "JC69"): pass'))
