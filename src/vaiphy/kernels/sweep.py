"""Moves of many trees under pi_beta, proportional to proposal^(1 - beta) * (likelihood * prior)^beta: a stage of the bridge.

Each tree is moved by regraftings, tours and changes of its total length; every one of these leaves pi_beta invariant, for any
family of models. Memory: rows of one tree, whatever the number of trees.
"""

import numpy as np

from vaiphy.kernels.branch import MIN_LENGTH, score
from vaiphy.kernels.clades import length_gamma, log_density_of
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.constraints import name_standings
from vaiphy.kernels.families import fill_exponents, fill_table
from vaiphy.kernels.layout import PATTERNS, ROW_AT, TABLE_AT, TERM_AT
from vaiphy.kernels.partials import fill_below, row_of, scale_of
from vaiphy.kernels.regraft import regraft
from vaiphy.kernels.rooted import fill_parents, fill_postorder, name_clades
from vaiphy.kernels.tour import tour

#: Kinds of moves that are counted: lengths, choices between three topologies (all; those that propose a change), regraftings
#: (all; those that propose a change), changes of the total length.
N_COUNTS = 6


@inlined
def log_likelihood_of(top, lengths, family, point, data, rows, scale, exponents, table, work):
    """Log-likelihood of a tree whose rows are those seen from the parents."""
    n = data.tips.shape[0]
    fill_table(family, point, data, data.tips[0], True, row_of(top, data, rows), top < n, table)
    return score(data, table, exponents, lengths[top], work) + scale_of(top, n, scale)


@inlined
def stretch(
    children, parent, lengths, tree, clade, family, point, data, law, beta, prior, width,
    rows, scale, pending, exponents, tables, work, order, log_likelihood, rng, counts,
):  # fmt: skip
    """Multiply all lengths by one factor. Returns the log-likelihood afterwards; rows are up to date."""
    n = data.tips.shape[0]
    top = np.int64(tree[0])
    factor = np.exp(width * (rng.random() - 0.5))
    log_factor = np.log(factor)
    counts[5, 1] += 1
    ratio = 0.0
    for v in range(1, 2 * n - 2):
        outer = v < n or v == top
        shape, rate, _ = length_gamma(law, clade[v], clade[parent[v]], outer)
        ratio += (1.0 - beta) * ((shape - 1.0) * log_factor - rate * lengths[v] * (factor - 1.0)) + log_factor
        alpha = prior[0] if outer else prior[1]
        ratio += beta * ((alpha - 1.0) * log_factor - prior[2] * lengths[v] * (factor - 1.0))
        if lengths[v] * factor < MIN_LENGTH:
            return log_likelihood
    ratio += beta * prior[3] * log_factor
    for v in range(1, 2 * n - 2):
        lengths[v] *= factor
    fill_below(children, lengths, order, n - 2, family, point, data, rows, scale, pending, work)
    new = log_likelihood_of(top, lengths, family, point, data, rows, scale, exponents, tables[0], work)
    if np.log(rng.random()) < ratio + beta * (new - log_likelihood):
        counts[5, 0] += 1
        tree[1] *= factor
        return new
    for v in range(1, 2 * n - 2):
        lengths[v] /= factor
    fill_below(children, lengths, order, n - 2, family, point, data, rows, scale, pending, work)
    return log_likelihood


@kernel
def move(
    family, points, data, law, keys, beta, prior, n_regrafts, n_tours, stretch_width,
    children, lengths, tops, rng, log_likelihoods, log_densities, counts,
):  # fmt: skip
    """Move each of the trees in place; log-likelihoods and log-densities under the proposal afterwards.

    `points[i]`: the parameter point of tree i in `family`. `prior`: (alpha of outer branches, alpha of inner ones, rate,
    power of the tree length), see `models.priors`. With no regraftings and no tours the trees stay as they are.
    """
    n = data.tips.shape[0]
    width = data.layout[ROW_AT, -1]
    rows = np.empty((n - 2, width))
    ups = np.empty((n - 2, width)) if n_regrafts > 0 else np.empty((1, 1))
    carried = np.empty((6, width))
    scale, up_scale = np.zeros(n - 2), np.zeros(n - 2)
    pending, up_pending = np.zeros(n - 2, dtype=np.int64), np.zeros(n - 2, dtype=np.int64)
    exponents = np.empty(data.layout[TERM_AT, -1])
    tables = np.empty((3, data.layout[TABLE_AT, -1]))
    work = np.empty((3, np.max(data.layout[PATTERNS])))
    order = np.empty(2 * n, dtype=np.int64)
    scores = np.empty(2 * n)
    path_terms = np.empty(2 * n)
    parent = np.zeros(2 * n - 2, dtype=np.int64)
    clade = np.empty(2 * n - 2, dtype=np.uint64)
    size = np.empty(2 * n - 2, dtype=np.int64)
    tree = np.empty(2)
    n_steps = 2 * (2 * n - 3)
    for i in range(children.shape[0]):
        ch, ln = children[i], lengths[i]
        point = points[i]
        fill_exponents(family, point, data, exponents)
        fill_parents(ch, tops[i], parent)
        tree[0] = tops[i]
        tree[1] = 0.0
        for v in range(1, 2 * n - 2):
            tree[1] += ln[v]
        fill_postorder(ch, tops[i], order)
        name_clades(ch, order, keys, clade)
        name_standings(ch, order, law.rules, size)
        fill_below(ch, ln, order, n - 2, family, point, data, rows, scale, pending, work)
        if n > 3:
            for _ in range(n_regrafts):
                regraft(
                    ch, parent, ln, tree, clade, size, family, point, data, law, beta, prior,
                    rows, scale, pending, ups, up_scale, up_pending, carried, exponents, tables, work, order, scores, path_terms,
                    rng, counts,
                )  # fmt: skip
        for _ in range(n_tours):
            tour(
                ch, parent, ln, tree, clade, size, family, point, data, law, beta, prior,
                rows, scale, pending, carried, exponents, tables, work, order, n_steps, n > 3, rng, counts,
            )  # fmt: skip
            fill_postorder(ch, np.int64(tree[0]), order)
            fill_below(ch, ln, order, n - 2, family, point, data, rows, scale, pending, work)
        top = np.int64(tree[0])
        tops[i] = top
        fill_postorder(ch, top, order)
        value = log_likelihood_of(top, ln, family, point, data, rows, scale, exponents, tables[0], work)
        if stretch_width > 0.0:
            value = stretch(
                ch, parent, ln, tree, clade, family, point, data, law, beta, prior, stretch_width,
                rows, scale, pending, exponents, tables, work, order, value, rng, counts,
            )  # fmt: skip
        log_likelihoods[i] = value
        log_densities[i] = log_density_of(law, ch, parent, ln, top, clade, size)


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
