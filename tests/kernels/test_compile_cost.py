"""What is spared while Numba compiles changes nothing of what comes out, and nothing of what Numba says."""

import gc
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core import compiler, ir
from numba.core.targetconfig import TargetConfig

from vaiphy.kernels import compile as compiling
from vaiphy.kernels import compile_cost


def test_the_collector_is_back_afterwards():
    assert gc.isenabled()
    with compile_cost.no_garbage():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with compile_cost.no_garbage():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_options_are_equal_if_all_of_them_are():
    one, other = compiler.Flags(), compiler.Flags()
    assert one == other
    assert hash(one) == hash(other)
    one.nrt = True
    assert one != other
    other.nrt = True
    assert one == other
    one.debuginfo = one.debuginfo  # set, to what it is by itself
    assert one == other
    assert hash(one) == hash(other)
    assert one != TargetConfig()
    assert one != 3


def test_all_variables_are_found():
    place = ir.Loc("somewhere", 1)
    a, b, c, d, e = (ir.Var(None, name, place) for name in "abcde")
    call = ir.Expr.call(a, (b, 3, "word"), (("key", c),), place)
    assert {v.name for v in call.list_vars()} == set("abc")
    nested = ir.Assign(ir.Expr.build_tuple([d, e], place), a, place)
    assert {v.name for v in nested.list_vars()} == set("ade")
    assert nested._rec_list_vars([{"x": (a, [b])}, None, call]) == [a, b, a, b, c]


def test_operators_with_other_operands_are_other_operators():
    @numba.njit
    def add(x, y):
        return x + y

    assert add(1, 2) == 3
    assert isinstance(add(1, 2), int)
    assert add(1.5, 2) == 3.5
    assert add((1, 2), (3,)) == (1, 2, 3)
    assert add("one", "two") == "onetwo"
    assert add(np.arange(3), 1).tolist() == [1, 2, 3]
    assert add(1, 2) + add(np.int32(3), np.int64(4)) == 10


def test_what_cannot_be_typed_is_explained_as_ever():
    @numba.njit
    def add(x, y):
        return x + y

    for _ in range(2):
        with pytest.raises(numba.core.errors.TypingError, match=r"No implementation of function .*add.* found for signature"):
            add("one", 1.5)


CODE = r"""
import re, sys, numpy as np
from vaiphy.kernels import compile_cost
if sys.argv[1] == "as it is":
    compile_cost.spare = lambda: None
from vaiphy.kernels.compile import kernel, inlined
@inlined
def part(x, i):
    return np.exp(x[i]) * (i % 3) + x[-1]
@kernel
def whole(x, y):
    total = 0.0
    for i in range(x.shape[0]):
        y[i] = part(x, i) if x[i] > 0.5 else -x[i] ** 2
        total += y[i] / (1 + i)
    return total
x = np.linspace(0.0, 1.0, 9)
whole(x, np.empty(9))
(text,) = whole.inspect_asm().values()
# Numba numbers what it compiles, and not always alike.
text = re.sub(r"[.\w$]*_ZN[.\w$]*|0x[0-9a-f]+", "", text)
print(*[line for line in text.splitlines() if ".const" not in line and ".asciz" not in line], sep="\n")
"""


def test_the_code_is_the_same(tmp_path):
    """Compiled with and without what is spared."""
    texts = [
        subprocess.run([sys.executable, "-c", CODE, way], capture_output=True, text=True, check=True).stdout
        for way in ("as it is", "spared")
    ]
    assert len(texts[0]) > 1000
    assert texts[0] == texts[1]
    assert compiling.compile_cost is compile_cost
