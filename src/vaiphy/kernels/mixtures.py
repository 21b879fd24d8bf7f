"""Densities of trees under several distributions of clades at once: one look-up serves all of them.

The distributions of a mixture (`clades`) know much the same clades, contexts and splits. Their tables are put together, a column
for each distribution, so that a tree is named, and its clades are looked for, once instead of once for each. The density that
draws come from, where lengths know each other (`clade_draws`), needs the same places and is worked out on the way.
"""

from typing import Any, NamedTuple

import numpy as np

from vaiphy.kernels.clade_draws import MOST_CHANGE, drawn_first
from vaiphy.kernels.clades import context_identity, find, joint_identity, split_identity
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.constraints import Rules, log_uniform, name_standings, united
from vaiphy.kernels.rooted import NONE, fill_parents, fill_postorder, name_clades

#: Columns of a place in one distribution: shape (0: unknown) and rate of the branch's Gamma, the log of its constant factor, the
#: log-probability that the split is none of those seen there (1: never split), cbrt(rate / shape); of the Gamma that draws
#: respond with: shape, log of the rate before it responds, log Gamma(shape), log of the shape; constant and two slopes.
SHAPE, RATE, CONSTANT, OTHER, CUBE, DRAWN, LOG_RATE, LOG_GAMMA, LOG_SHAPE, ANYWAY, PARENT, SISTER, COLUMNS = range(13)
#: Marks a split that a distribution has not seen: log-probabilities are not above 0.
ABSENT = 1.0
#: Products of factors are taken the logarithm of before they leave this range.
LEAST, MOST = 1e-200, 1e200


class Mixture(NamedTuple):
    """Tables of several distributions: keys are looked up once, each value has an entry for every distribution."""

    split_key: Any  # (size,) uint64
    split_value: Any  # (size, laws)
    place_key: Any  # (size,) uint64
    place_value: Any  # (size, laws, COLUMNS)
    general: Any  # (2, laws, COLUMNS): inner and outer branches of unknown clades
    log_trees: Any
    rules: Rules


@inlined
def gammas_of(mixture, context, clade, outer, chosen):
    """The row of columns that each distribution has for a branch: of its context, its clade, or branches in general."""
    at = find(mixture.place_key, context)
    alone = find(mixture.place_key, clade)
    for k in range(chosen.shape[0]):
        row = mixture.general[1 if outer else 0, k]
        if alone >= 0 and mixture.place_value[alone, k, SHAPE] > 0.0:
            row = mixture.place_value[alone, k]
        if at >= 0 and mixture.place_value[at, k, SHAPE] > 0.0:
            row = mixture.place_value[at, k]
        for c in range(COLUMNS):
            chosen[k, c] = row[c]


@inlined
def add_split(mixture, clade_a, clade_b, parent, size_a, size_b, out):
    """Add the log-probability that the clade made of a and b, part of `parent`, is split into these two (`clades.log_split`)."""
    if mixture.rules.blocks.shape[0] == 0:
        if size_a + size_b == 2:
            return
    elif united(mixture.rules, size_a, size_b) < 0:
        out[:] = -np.inf
        return
    clade = clade_a ^ clade_b
    split, context = split_identity(clade_a, clade_b), context_identity(clade, parent)
    joint = find(mixture.split_key, joint_identity(context, split))
    within = find(mixture.place_key, context)
    by_clade, alone, uniform = np.int64(-2), np.int64(-2), 0.0
    for k in range(out.shape[0]):
        if joint >= 0 and mixture.split_value[joint, k] < ABSENT:
            out[k] += mixture.split_value[joint, k]
            continue
        if by_clade == -2:
            by_clade = find(mixture.split_key, split)
        if within >= 0 and mixture.place_value[within, k, OTHER] <= 0.0:
            out[k] += mixture.place_value[within, k, OTHER]
        if by_clade >= 0 and mixture.split_value[by_clade, k] < ABSENT:
            out[k] += mixture.split_value[by_clade, k]
            continue
        if alone == -2:
            alone = find(mixture.place_key, clade)
            uniform = log_uniform(mixture.rules, mixture.log_trees, size_a, size_b)
        out[k] += uniform
        if alone >= 0 and mixture.place_value[alone, k, OTHER] <= 0.0:
            out[k] += mixture.place_value[alone, k, OTHER]


@inlined
def add_lengths(gammas, guard, outer, scale, length, above, sister, out, guarded, plain, factors, turned_out):
    """Add the log-densities of one branch's length; `turned_out`: how long it is, for the branches that respond to it."""
    log_length, cube = np.log(length), np.cbrt(length / scale)
    at = 1 if outer else 3
    for k in range(out.shape[0]):
        row = gammas[k]
        base = row[CONSTANT] + (row[SHAPE] - 1.0) * log_length - row[RATE] * length
        out[k] += base
        if guard[0] == 0.0:
            continue
        change = row[ANYWAY] + row[PARENT] * above[k] + row[SISTER] * sister[k]
        log_rate = row[LOG_RATE] - np.log(scale) - min(max(change, -MOST_CHANGE), MOST_CHANGE)
        rate = np.exp(log_rate)
        narrow = row[DRAWN] * log_rate - row[LOG_GAMMA] + (row[DRAWN] - 1.0) * log_length - rate * length
        exponential = log_rate - row[LOG_SHAPE] - rate / row[DRAWN] * length
        prior = guard[5 if outer else 6] + (guard[at] - 1.0) * log_length - guard[at + 1] * length
        plain[k] += narrow - base
        guarded[k] += narrow - base
        if max(exponential, prior) - narrow > 200.0:
            top = max(exponential, prior)
            guarded[k] += top - narrow + np.log(0.5 * guard[0] * (np.exp(exponential - top) + np.exp(prior - top)))
        else:
            wide = np.exp(exponential - narrow) + np.exp(prior - narrow)
            factors[k] *= 1.0 - guard[0] + 0.5 * guard[0] * wide
            if not LEAST < factors[k] < MOST:
                guarded[k] += np.log(factors[k])
                factors[k] = 1.0
        turned_out[k] = cube * row[CUBE] - 1.0


@kernel
def log_densities(mixture, keys, guard, scales, children, lengths, tops, out, guarded, plain):
    """out[i, k]: log-density of tree i under distribution k; guarded[i, k], plain[i, k]: log of the density that its lengths are
    drawn from, with the guard and without, over its own one (untouched if the guard's share is 0).

    `guard`: as `clade_draws.sample` has it, then the logs of the constant factors of the prior of outer and of inner branches.
    """
    n, n_laws = children.shape[1] + 2, out.shape[1]
    order, parent = np.empty(n - 2, dtype=np.int64), np.zeros(2 * n - 2, dtype=np.int64)
    clade, size = np.empty(2 * n - 2, dtype=np.uint64), np.empty(2 * n - 2, dtype=np.int64)
    gammas, turned_out = np.empty((n_laws, COLUMNS)), np.zeros((2 * n - 2, n_laws))
    nothing, factors = np.zeros(n_laws), np.ones(n_laws)
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        fill_parents(children[i], tops[i], parent)
        name_clades(children[i], order, keys, clade)
        name_standings(children[i], order, mixture.rules, size)
        out[i] = 0.0
        if guard[0] > 0.0:
            guarded[i] = 0.0
            plain[i] = 0.0
            factors[:] = 1.0
        top = tops[i]
        gammas_of(mixture, context_identity(clade[top], NONE), clade[top], True, gammas)
        add_lengths(
            gammas, guard, True, scales[i], lengths[i, top], nothing, nothing, out[i], guarded[i], plain[i], factors,
            turned_out[top],
        )  # fmt: skip
        for j in range(n - 3, -1, -1):
            v = order[j]
            a, b = children[i, v - n, 0], children[i, v - n, 1]
            add_split(mixture, clade[a], clade[b], clade[parent[v]], size[a], size[b], out[i])
            one = drawn_first(a, b, clade, n)
            for side in range(2):
                c = one if side == 0 else a + b - one
                earlier = nothing if side == 0 else turned_out[one]
                gammas_of(mixture, context_identity(clade[c], clade[v]), clade[c], c < n, gammas)
                add_lengths(
                    gammas, guard, c < n, scales[i], lengths[i, c], turned_out[v], earlier, out[i], guarded[i], plain[i],
                    factors, turned_out[c],
                )  # fmt: skip
        if guard[0] > 0.0:
            for k in range(n_laws):
                guarded[i, k] += np.log(factors[k])
