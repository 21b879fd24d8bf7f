"""Branch lengths of highest likelihood by sweeps of safeguarded Newton steps, one branch after the other, for any model.

A sweep walks around the tree with partials that are up to date: on the way down each branch gets its best length given all
others, on the way up the partials below are made anew.
"""

import numpy as np

from vaiphy.kernels.branch import score, slopes
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.families import carry, fill_exponents, fill_table
from vaiphy.kernels.layout import PATTERNS, ROW_AT, TABLE_AT, TERM_AT
from vaiphy.kernels.marginals import fill_beside
from vaiphy.kernels.partials import fill_below, join, row_of
from vaiphy.kernels.rooted import fill_postorder
from vaiphy.kernels.sweep import log_likelihood_of

#: Newton steps on one branch in one sweep, and how often a step that overshoots is halved.
MOST_STEPS, MOST_HALVINGS = 20, 30


@inlined
def best_length(data, table, exponents, length, low, high, work):
    """The length of highest likelihood near `length`. The log-likelihood need not be concave: no step may lose."""
    b = min(max(length, low), high)
    value = score(data, table, exponents, b, work)
    for _ in range(MOST_STEPS):
        first, second = slopes(data, table, exponents, b, work)
        step = -first / second if second < 0.0 else (b + 0.01 if first > 0.0 else -0.5 * b)
        new = min(max(b + step, low), high)
        gain = -1.0
        for _ in range(MOST_HALVINGS):
            gain = score(data, table, exponents, new, work) - value
            if gain >= 0.0:
                break
            new = 0.5 * (b + new)
        if gain < 0.0:
            return b
        change = abs(new - b)
        b = new
        value += gain
        if change < 1e-7 * b + 1e-10:
            return b
    return b


@kernel
def best_lengths(family, point, data, children, lengths, top, free, low, high, tolerance, most_sweeps):
    """Improve `lengths` of one tree in place until a sweep gains less than `tolerance`; returns the log-likelihood.

    Branches v with free[v] False keep their lengths.
    """
    n = data.tips.shape[0]
    width = data.layout[ROW_AT, -1]
    rows, above = np.empty((n - 2, width)), np.empty((n - 2, width))
    beside = np.empty(width)
    scale, pending = np.zeros(n - 2), np.zeros(n - 2, dtype=np.int64)
    exponents = np.empty(data.layout[TERM_AT, -1])
    table = np.empty(data.layout[TABLE_AT, -1])
    work = np.empty((3, np.max(data.layout[PATTERNS])))
    order = np.empty(n, dtype=np.int64)
    side = np.empty(n, dtype=np.int64)
    fill_exponents(family, point, data, exponents)
    fill_postorder(children, top, order)
    fill_below(children, lengths, order, n - 2, family, point, data, rows, scale, pending, work)
    value = log_likelihood_of(top, lengths, family, point, data, rows, scale, exponents, table, work)
    for _ in range(most_sweeps):
        if free[top]:
            fill_table(family, point, data, data.tips[0], True, rows[top - n], False, table)
            lengths[top] = best_length(data, table, exponents, lengths[top], low, high, work)
        carry(family, point, data, lengths[top], data.tips[0], True, above[top - n], False)
        # `order` serves as the stack of the walk, `side` says how many children of each vertex on it were visited.
        order[0], side[0] = top, 0
        depth = 1
        while depth > 0:
            v = order[depth - 1]
            if side[depth - 1] == 2:
                depth -= 1
                a, b = children[v - n, 0], children[v - n, 1]
                join(v, a, lengths[a], b, lengths[b], family, point, data, rows, scale, pending, work)
                continue
            child, sister = children[v - n, side[depth - 1]], children[v - n, 1 - side[depth - 1]]
            side[depth - 1] += 1
            if child < n and not free[child]:
                continue
            fill_beside(v, sister, lengths[sister], family, point, data, rows, above, beside, work)
            if free[child]:
                fill_table(family, point, data, beside, False, row_of(child, data, rows), child < n, table)
                lengths[child] = best_length(data, table, exponents, lengths[child], low, high, work)
            if child >= n:
                carry(family, point, data, lengths[child], beside, False, above[child - n], False)
                order[depth], side[depth] = child, 0
                depth += 1
        new = log_likelihood_of(top, lengths, family, point, data, rows, scale, exponents, table, work)
        gained = new - value
        value = new
        if gained < tolerance:
            break
    return value
