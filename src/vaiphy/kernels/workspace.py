"""What moves of trees work on: the tree, its rows, what it is moved under, and room for what is worked out on the way.

Each is a handful of arrays that are filled in place, under one name, since every move needs all of them.
"""

from typing import Any, NamedTuple

import numpy as np

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.constraints import united
from vaiphy.kernels.families import Data
from vaiphy.kernels.layout import PATTERNS, ROW_AT, TABLE_AT, TERM_AT
from vaiphy.kernels.partials import join

#: Columns of `Space.options`: exponent and rate of the conditional of the length without its likelihood, mode and shape of the
#: Gamma fitted to it, what is added to it that does not depend on the length, and the log of its integral.
EXPONENT, RATE, MODE, SHAPE, CONSTANT, MASS = range(6)


class Tree(NamedTuple):
    """A tree rooted at taxon 0 that is being changed, in any numbering of its internal vertices."""

    children: Any  # (n - 2, 2) int64
    parent: Any  # (2n - 2,) int64
    lengths: Any  # (2n - 2,)
    clade: Any  # (2n - 2,) uint64: identities
    size: Any  # (2n - 2,) int64: standings (see `constraints`)
    whole: Any  # (2,): the top, and the sum of all lengths


class Rows(NamedTuple):
    """Partials of the internal vertices (see `partials`)."""

    values: Any  # (n - 2, width)
    scale: Any  # (n - 2,)
    pending: Any  # (n - 2,) int64


class Goal(NamedTuple):
    """pi_beta: proposal^(1 - beta) * (likelihood * prior)^beta.

    `prior`: (alpha of outer branches, alpha of inner ones, rate, power of the tree length), see `models.priors`.
    """

    law: Any  # clades.Clades
    beta: Any
    prior: Any


class Space(NamedTuple):
    """Room to work in; what is in there holds no longer than one move."""

    carried: Any  # (6, width): rows at the other end of a branch
    exponents: Any  # those of the tables
    tables: Any  # (3, ...)
    work: Any  # (3, patterns)
    order: Any  # (2n,) int64: vertices
    scores: Any  # (2n,), in that order
    path_terms: Any  # (2n,), by vertex
    mark: Any  # (2n,) int64, by vertex
    options: Any  # (3, 6)


class Room(NamedTuple):
    """The parts of a `Tree` that are worked out from its children and lengths."""

    parent: Any
    clade: Any
    size: Any
    whole: Any


def workspace(data: Data) -> tuple[Room, Rows, Rows, Space]:
    """Room for moves of one tree after the other: parts of the tree, its rows from below and from above, and the rest."""
    n = data.tips.shape[0]
    width = data.layout[ROW_AT, -1]
    room = Room(np.zeros(2 * n - 2, np.int64), np.empty(2 * n - 2, np.uint64), np.empty(2 * n - 2, np.int64), np.empty(2))
    below, above = (Rows(np.empty((n - 2, width)), np.zeros(n - 2), np.zeros(n - 2, np.int64)) for _ in range(2))
    space = Space(
        carried=np.empty((6, width)),
        exponents=np.empty(data.layout[TERM_AT, -1]),
        tables=np.empty((3, data.layout[TABLE_AT, -1])),
        work=np.empty((3, np.max(data.layout[PATTERNS]))),
        order=np.empty(2 * n, np.int64),
        scores=np.empty(2 * n),
        path_terms=np.empty(2 * n),
        mark=np.empty(2 * n, np.int64),
        options=np.empty((3, 6)),
    )
    return room, below, above, space


@inlined
def blend(goal, shape, rate, outer):
    """Exponent and rate of b in prior^beta * proposal^(1 - beta), and the power of the tree length."""
    alpha = goal.prior[0] if outer else goal.prior[1]
    a = goal.beta * (alpha - 1.0) + (1.0 - goal.beta) * (shape - 1.0)
    return a, goal.beta * goal.prior[2] + (1.0 - goal.beta) * rate, goal.beta * goal.prior[3]


@inlined
def drawn_index(log_weights, count, rng):
    """An index drawn in proportion to the first `count` weights, and the log of their sum."""
    best = -np.inf
    for i in range(count):
        best = max(best, log_weights[i])
    total = 0.0
    for i in range(count):
        total += np.exp(log_weights[i] - best)
    u = rng.random() * total
    drawn = 0
    while drawn < count - 1 and u >= np.exp(log_weights[drawn] - best):
        u -= np.exp(log_weights[drawn] - best)
        drawn += 1
    return drawn, best + np.log(total)


@inlined
def sister(v, children, p):
    """The other child of v's parent p."""
    k = p - (children.shape[0] + 2)
    return children[k, 0] if children[k, 1] == v else children[k, 1]


@inlined
def replace_child(p, old, new, children):
    k = p - (children.shape[0] + 2)
    if children[k, 0] == old:
        children[k, 0] = new
    else:
        children[k, 1] = new


@inlined
def renew_upwards(w, tree, family, point, data, rules, rows, work):
    """Names, standings and rows of w and of all vertices above it, from those of their children."""
    n = data.tips.shape[0]
    while w != 0:
        a, b = tree.children[w - n, 0], tree.children[w - n, 1]
        tree.clade[w] = tree.clade[a] ^ tree.clade[b]
        tree.size[w] = united(rules, tree.size[a], tree.size[b])
        meet(w, a, b, tree, family, point, data, rows, work)
        w = tree.parent[w]


@inlined
def meet(v, a, b, tree, family, point, data, rows, work):
    """The row of v as seen from its parent, from those of its children a and b."""
    join(
        v, a, tree.lengths[a], b, tree.lengths[b], family, point, data, rows.values, rows.scale, rows.pending, work
    )  # fmt: skip
