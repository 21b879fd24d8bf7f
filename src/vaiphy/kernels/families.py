"""What the kernels know of data and models: site patterns in parts, and two families of substitution models.

A *row* holds the partials of one vertex: for each part, its rate categories, in each category its states, for each state all
patterns of the part, contiguous. Tips have no categories: their rows hold, for each part, states and patterns only.

`EqualInput` (JC69, F81, Mk, binary, Poisson): P(b) = u I + (1 - u) 1 pi' with u = exp(-beta rate b), no matrix product.
`Spectral` (any reversible model): P(b) = backward diag(exp(-decay rate b)) forward, forward = U' diag(sqrt pi), the first
decay being 0. Both have a leading axis of parameter points. Sites that cannot change are a category of rate 0.

What differs between the families is written once for each, in `equal_input` and `spectral`, as a few *leaf operations*: `carry`
(partials over a branch), `carry_two` (over two that meet), `fill_table` (the likelihood of every pattern as a function of one
branch's length), `fill_pairing_table` (the same with two carried rows at each end) and `fill_exponents`. Everything else is
written on those, and Numba specialises it by the type of what it is given.
"""

from typing import Any, NamedTuple

from numba.core import types
from numba.extending import overload

from vaiphy.kernels import equal_input, spectral
from vaiphy.kernels.compile import HELPER_OPTIONS


class Data(NamedTuple):
    """Site patterns in parts.

    `ascertained`: the number of sites of a part if only variable ones were scored (its last patterns, one a state, are then the
    constant ones, with count 0), else 0. Few arrays, since each makes every call longer and slower to compile.
    """

    layout: Any  # (12, n_parts + 1) int64: see `layout`
    tips: Any  # (n_taxa, row of tips) float64
    counts: Any  # (patterns of all parts,) float64
    ascertained: Any  # (n_parts,) float64


class EqualInput(NamedTuple):
    """Arrays of the equal-input family, first axis: parameter points."""

    pi: Any  # (points, states of all parts)
    beta: Any  # (points, n_parts)
    rates: Any  # (points, categories of all parts)
    weights: Any  # (points, categories of all parts)


class Spectral(NamedTuple):
    """Arrays of the spectral family, first axis: parameter points; matrices are flattened, one part after the other."""

    pi: Any
    forward: Any  # (points, sum of states squared)
    backward: Any
    decay: Any  # (points, states of all parts)
    rates: Any
    weights: Any


def carry(family, point, data, length, source, is_tip, out, multiply):
    """out = P(length) source (or out *= that): partials at the other end of a branch; `source` is a tip's row if `is_tip`."""
    return _room(family).carry(family, point, data, length, source, is_tip, out, multiply)


def carry_two(family, point, data, length, source, is_tip, other_length, other, other_is_tip, out):
    """The same from two branches that meet, multiplied: out = P(length) source * P(other_length) other."""
    return _room(family).carry_two(family, point, data, length, source, is_tip, other_length, other, other_is_tip, out)


def fill_table(family, point, data, x, x_is_tip, y, y_is_tip, table):
    """The likelihood of every pattern as a function of the length b of the branch between x and y.

    For part k: table rows t_0, t_1, ... of its patterns, with L(b) = t_0 + sum_j t_j exp(-exponent_j b).
    """
    return _room(family).fill_table(family, point, data, x, x_is_tip, y, y_is_tip, table)


def fill_pairing_table(family, point, data, one, two, three, four, below, above, table):
    """As `fill_table`, of a branch between one * two and three * four; `below` and `above` are room for rows."""
    return _room(family).fill_pairing_table(family, point, data, one, two, three, four, below, above, table)


def fill_exponents(family, point, data, exponents):
    """The exponents that belong to the rows of a table, without that of the constant row, which is 0."""
    return _room(family).fill_exponents(family, point, data, exponents)


def _room(family):
    return equal_input if isinstance(family, EqualInput) else spectral


def _is(kind, family):
    return isinstance(kind, (types.NamedTuple, types.NamedUniTuple)) and kind.instance_class is family


def _dispatch(stub, name):
    """Let compiled code call `stub` and get the family's own version."""
    ours, theirs = getattr(equal_input, name), getattr(spectral, name)

    def choose(family, *rest):
        if _is(family, EqualInput):
            return ours.py_func
        if _is(family, Spectral):
            return theirs.py_func
        return None

    overload(stub, jit_options=HELPER_OPTIONS, strict=False)(choose)  # type: ignore[arg-type]


for _name in ("carry", "carry_two", "fill_table", "fill_pairing_table", "fill_exponents"):
    _dispatch(globals()[_name], _name)
