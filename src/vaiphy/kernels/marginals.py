"""Probabilities of the states at every internal vertex of trees, given the data, under any family of models.

With the partials below a vertex v and those beyond the branch above it, carried to v itself, the probability of state a is
proportional to the sum over rate categories c of weight_c pi_a below_ca above_ca: categories, the invariable one included, are
averaged with their posterior weights pattern by pattern. Trees are those of `partials`.
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.families import carry
from vaiphy.kernels.layout import CATEGORIES, CATEGORY_AT, COUNT_AT, PATTERNS, ROW_AT, STATE_AT, STATES, TIP_AT
from vaiphy.kernels.partials import fill_below, rescale, root_values, row_of
from vaiphy.kernels.rooted import fill_postorder


@kernel
def node_marginals(family, points, data, children, lengths, tops, out):
    """out[i, v - n]: probabilities of the states at internal vertex v of tree i, laid out as a row of tips.

    A pattern that cannot be under the tree gets equal probabilities. Memory: two rows for each internal vertex.
    """
    n = data.tips.shape[0]
    width = data.layout[ROW_AT, -1]
    rows, above = np.empty((n - 2, width)), np.empty((n - 2, width))
    beside = np.empty(width)
    scale, pending = np.zeros(n - 2), np.zeros(n - 2, dtype=np.int64)
    work = np.empty((3, np.max(data.layout[PATTERNS])))
    order = np.empty(n, dtype=np.int64)
    for i in range(children.shape[0]):
        point, top = points[i], tops[i]
        fill_postorder(children[i], top, order)
        fill_below(children[i], lengths[i], order, n - 2, family, point, data, rows, scale, pending, work)
        carry(family, point, data, lengths[i, top], data.tips[0], True, above[top - n], False)
        for j in range(n - 3, -1, -1):
            v = order[j]
            for side in range(2):
                child, sister = children[i, v - n, side], children[i, v - n, 1 - side]
                if child >= n:
                    fill_beside(v, sister, lengths[i, sister], family, point, data, rows, above, beside, work)
                    carry(family, point, data, lengths[i, child], beside, False, above[child - n], False)
            normalise(family, point, data, rows[v - n], above[v - n], out[i, v - n], work[0])


@inlined
def fill_beside(v, sister, length, family, point, data, rows, above, out, work):
    """Partials at v of all but the subtree of one child: what is above v and what is behind the child's sister."""
    n = data.tips.shape[0]
    out[:] = above[v - n]
    carry(family, point, data, length, row_of(sister, data, rows), sister < n, out, True)
    rescale(out, data, work[0])


@inlined
def normalise(family, point, data, below, above, out, total):
    """Sum over categories, then divide by the sum over states."""
    for k in range(data.ascertained.shape[0]):
        n_states, n = data.layout[STATES, k], data.layout[PATTERNS, k]
        total[:n] = 0.0
        for a in range(n_states):
            at = data.layout[TIP_AT, k] + a * n
            value = out[at : at + n]
            value[:] = 0.0
            for c in range(data.layout[CATEGORIES, k]):
                weight = family.weights[point, data.layout[CATEGORY_AT, k] + c] * family.pi[point, data.layout[STATE_AT, k] + a]
                row = data.layout[ROW_AT, k] + (c * n_states + a) * n
                x, y = below[row : row + n], above[row : row + n]
                for p in range(n):
                    value[p] += weight * x[p] * y[p]
            for p in range(n):
                total[p] += value[p]
        for a in range(n_states):
            at = data.layout[TIP_AT, k] + a * n
            for p in range(n):
                out[at + p] = out[at + p] / total[p] if total[p] > 0.0 else 1.0 / n_states


@kernel
def exact_log_likelihood(family, point, data, children, lengths, top):
    """Log-likelihood of one tree from sums of positive numbers alone; -infinity if a pattern cannot be.

    `sweep.log_likelihoods` is quicker for many trees, but takes differences: where a pattern's likelihood is below 1e-16 of
    what the invariable sites contribute without one taxon (saturated branches), nothing of it is left.
    """
    n = data.tips.shape[0]
    rows, out = np.empty((n - 2, data.layout[ROW_AT, -1])), np.empty(data.layout[ROW_AT, -1])
    scale, pending = np.zeros(n - 2), np.zeros(n - 2, dtype=np.int64)
    work = np.empty((3, np.max(data.layout[PATTERNS])))
    order = np.empty(n, dtype=np.int64)
    fill_postorder(children, top, order)
    fill_below(children, lengths, order, n - 2, family, point, data, rows, scale, pending, work)
    carry(family, point, data, lengths[top], rows[top - n], False, out, False)
    total = scale[top - n]
    for k in range(data.ascertained.shape[0]):
        root_values(family, point, data, data.tips[0], True, out, False, work[0], k)
        n_patterns = data.layout[PATTERNS, k]
        for p in range(n_patterns):
            count = data.counts[data.layout[COUNT_AT, k] + p]
            if count > 0.0:
                total += count * np.log(work[0, p])
        if data.ascertained[k] > 0.0:
            constant = 0.0
            for p in range(n_patterns - data.layout[STATES, k], n_patterns):
                constant += work[0, p]
            total -= data.ascertained[k] * np.log(1.0 - constant)
    return total
