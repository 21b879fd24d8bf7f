"""Moves of many trees under pi_beta, proportional to proposal^(1 - beta) * (likelihood * prior)^beta: a stage of the bridge.

Each tree is moved by regraftings, tours and changes of its total length; every one of these leaves pi_beta invariant, for any
family of models. Memory: rows of one tree, whatever the number of trees.
"""

from typing import Any

import numpy as np

from vaiphy.kernels.borrowing import borrowed
from vaiphy.kernels.branch import MIN_LENGTH, score
from vaiphy.kernels.clades import length_gamma, log_densities, log_density_of
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.constraints import name_standings
from vaiphy.kernels.families import Data, fill_exponents, fill_table
from vaiphy.kernels.layout import PATTERNS, ROW_AT, TABLE_AT, TERM_AT
from vaiphy.kernels.partials import fill_below, row_of, scale_of
from vaiphy.kernels.regraft import regraft
from vaiphy.kernels.rooted import fill_parents, fill_postorder, name_clades
from vaiphy.kernels.tour import tour
from vaiphy.kernels.workspace import Goal, Tree, workspace

#: Kinds of moves that are counted: lengths, choices between three topologies (all; those that propose a change), regraftings
#: (all; those that propose a change), changes of the total length.
N_COUNTS = 6


def move(
    family: Any, points: Any, data: Data, law: Any, keys: Any, beta: float, prior: Any, n_regrafts: int, n_tours: int,
    stretch_width: float, children: Any, lengths: Any, tops: Any, rng: np.random.Generator, likelihoods: Any, densities: Any,
    counts: Any,
) -> None:  # fmt: skip
    """Move each of the trees in place; log-likelihoods and log-densities under the proposal afterwards.

    `points[i]`: the parameter point of tree i in `family`. `prior`: (alpha of outer branches, alpha of inner ones, rate,
    power of the tree length), see `models.priors`. With no regraftings and no tours the trees stay as they are.
    """
    if n_regrafts == 0 and n_tours == 0 and stretch_width == 0.0:
        log_likelihoods(family, points, data, children, lengths, tops, likelihoods)
        log_densities(law, keys, children, lengths, tops, densities)
        return
    room, goal = workspace(data), Goal(law, float(beta), prior)
    move_all(
        family, points, data, goal, keys, n_regrafts, n_tours, stretch_width, children, lengths, tops, *room, rng, likelihoods,
        densities, counts,
    )  # fmt: skip


@kernel
def move_all(
    family, points, data, goal, keys, n_regrafts, n_tours, stretch_width, children, lengths, tops, room, rows, ups, space, rng,
    likelihoods, densities, counts,
):  # fmt: skip
    """As `move`, with room for one tree (see `workspace`)."""
    family, data, goal, counts = borrowed(family), borrowed(data), borrowed(goal), borrowed(counts)
    children, lengths, room = borrowed(children), borrowed(lengths), borrowed(room)
    rows, ups, space = borrowed(rows), borrowed(ups), borrowed(space)
    for i in range(tops.shape[0]):
        tree = Tree(children[i], room.parent, lengths[i], room.clade, room.size, room.whole)
        prepare(family, points[i], data, goal, keys, tops[i], tree, rows, space)
        if data.tips.shape[0] > 3:
            for _ in range(n_regrafts):
                regraft(tree, family, points[i], data, goal, rows, ups, space, rng, counts)
        likelihoods[i], densities[i] = tour_and_stretch(
            family, points[i], data, goal, n_tours, stretch_width, tree, rows, space, rng, counts
        )
        tops[i] = np.int64(tree.whole[0])


@inlined
def prepare(family, point, data, goal, keys, top, tree, rows, space):
    """Fill in what belongs to the children and lengths of `tree`."""
    fill_exponents(family, point, data, space.exponents)
    fill_parents(tree.children, top, tree.parent)
    tree.whole[0] = top
    tree.whole[1] = 0.0
    for v in range(1, tree.lengths.shape[0]):
        tree.whole[1] += tree.lengths[v]
    fill_postorder(tree.children, top, space.order)
    name_clades(tree.children, space.order, keys, tree.clade)
    name_standings(tree.children, space.order, goal.law.rules, tree.size)
    fill_rows(tree, family, point, data, rows, space)


@inlined
def tour_and_stretch(family, point, data, goal, n_tours, stretch_width, tree, rows, space, rng, counts):
    """Update every branch, `n_tours` times, and then the total length. Returns log-likelihood and log-density afterwards."""
    n = data.tips.shape[0]
    n_steps = 2 * (2 * n - 3)
    for _ in range(n_tours):
        tour(n_steps, n > 3, tree, family, point, data, goal, rows, space, rng, counts)
        fill_postorder(tree.children, np.int64(tree.whole[0]), space.order)
        fill_rows(tree, family, point, data, rows, space)
    top = np.int64(tree.whole[0])
    fill_postorder(tree.children, top, space.order)
    value = log_likelihood_of(
        top, tree.lengths, family, point, data, rows.values, rows.scale, space.exponents, space.tables[0], space.work
    )
    if stretch_width > 0.0:
        value = stretch(stretch_width, value, tree, family, point, data, goal, rows, space, rng, counts)
    return value, log_density_of(goal.law, tree.children, tree.parent, tree.lengths, top, tree.clade, tree.size)


@inlined
def fill_rows(tree, family, point, data, rows, space):
    """Rows of all internal vertices as seen from their parents; `space.order` is a postorder."""
    fill_below(
        tree.children, tree.lengths, space.order, data.tips.shape[0] - 2, family, point, data, rows.values, rows.scale,
        rows.pending, space.work,
    )  # fmt: skip


@inlined
def log_likelihood_of(top, lengths, family, point, data, rows, scale, exponents, table, work):
    """Log-likelihood of a tree whose rows are those seen from the parents."""
    n = data.tips.shape[0]
    fill_table(family, point, data, data.tips[0], True, row_of(top, data, rows), top < n, table)
    return score(data, table, exponents, lengths[top], work) + scale_of(top, n, scale)


@inlined
def stretch(width, log_likelihood, tree, family, point, data, goal, rows, space, rng, counts):
    """Multiply all lengths by one factor. Returns the log-likelihood afterwards; rows are not those of the tree any more."""
    lengths, beta, prior = tree.lengths, goal.beta, goal.prior
    n = data.tips.shape[0]
    top = np.int64(tree.whole[0])
    factor = np.exp(width * (rng.random() - 0.5))
    log_factor = np.log(factor)
    counts[5, 1] += 1
    ratio = 0.0
    for v in range(1, 2 * n - 2):
        outer = v < n or v == top
        shape, rate, _ = length_gamma(goal.law, tree.clade[v], tree.clade[tree.parent[v]], outer)
        ratio += (1.0 - beta) * ((shape - 1.0) * log_factor - rate * lengths[v] * (factor - 1.0)) + log_factor
        alpha = prior[0] if outer else prior[1]
        ratio += beta * ((alpha - 1.0) * log_factor - prior[2] * lengths[v] * (factor - 1.0))
        if lengths[v] * factor < MIN_LENGTH:
            return log_likelihood
    ratio += beta * prior[3] * log_factor
    for v in range(1, 2 * n - 2):
        lengths[v] *= factor
    fill_rows(tree, family, point, data, rows, space)
    new = log_likelihood_of(
        top, lengths, family, point, data, rows.values, rows.scale, space.exponents, space.tables[0], space.work
    )
    if np.log(rng.random()) < ratio + beta * (new - log_likelihood):
        counts[5, 0] += 1
        tree.whole[1] *= factor
        return new
    for v in range(1, 2 * n - 2):
        lengths[v] /= factor
    return log_likelihood


@kernel
def log_likelihoods(family, points, data, children, lengths, tops, out):
    """Log-likelihood of each tree at its parameter point."""
    n = data.tips.shape[0]
    rows = np.empty((n - 2, data.layout[ROW_AT, -1]))
    scale = np.zeros(n - 2)
    pending = np.zeros(n - 2, dtype=np.int64)
    exponents = np.empty(data.layout[TERM_AT, -1])
    table = np.empty(data.layout[TABLE_AT, -1])
    work = np.empty((3, np.max(data.layout[PATTERNS])))
    order = np.empty(n, dtype=np.int64)
    for i in range(children.shape[0]):
        fill_exponents(family, points[i], data, exponents)
        fill_postorder(children[i], tops[i], order)
        fill_below(children[i], lengths[i], order, n - 2, family, points[i], data, rows, scale, pending, work)
        out[i] = log_likelihood_of(tops[i], lengths[i], family, points[i], data, rows, scale, exponents, table, work)
