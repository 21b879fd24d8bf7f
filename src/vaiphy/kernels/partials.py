"""Partials of all vertices of one tree that is being changed: rows, how they are joined, and how they are kept in range.

The tree is rooted at taxon 0: `children` (n - 2, 2) and `parent` in any numbering, `top` the only child of taxon 0. `rows[v - n]`
holds the partials of internal vertex v seen from one of its three neighbours; which one, the caller knows. `scale[v - n]` is the
logarithm that was taken out of the row, summed over patterns with their counts; `pending[v - n]` the number of messages
multiplied since the row was last rescaled.
"""

import numpy as np

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.families import carry_two
from vaiphy.kernels.layout import CATEGORIES, CATEGORY_AT, COUNT_AT, PATTERNS, ROW_AT, STATE_AT, STATES, TIP_AT

#: Rows are rescaled once they are products of more messages than this; a message is at least about 1e-12 of what it is made of
#: (`branch.MIN_LENGTH`), so the product of two joined pairs of rows stays above 1e-290.
MOST_PENDING = 6
TINY, HUGE, LOG_HUGE = 2.0**-64, 2.0**64, 64.0 * np.log(2.0)


@inlined
def row_of(v, data, rows):
    """The row of a vertex: partials, or what was observed at a taxon."""
    n = data.tips.shape[0]
    return data.tips[v] if v < n else rows[v - n]


@inlined
def pending_of(v, n, pending):
    return 1 if v < n else pending[v - n]


@inlined
def scale_of(v, n, scale):
    return 0.0 if v < n else scale[v - n]


@inlined
def rescale(row, data, tops):
    """Multiply patterns that have become tiny by a power of two; returns the logarithm taken out. Patterns of count 0 stay."""
    taken = 0.0
    for k in range(data.ascertained.shape[0]):
        n_patterns = data.layout[PATTERNS, k]
        at, begin = data.layout[ROW_AT, k], data.layout[COUNT_AT, k]
        height = data.layout[STATES, k] * data.layout[CATEGORIES, k]
        values = row[at : at + n_patterns]
        for p in range(n_patterns):
            tops[p] = values[p]
        for r in range(1, height):
            values = row[at + r * n_patterns : at + (r + 1) * n_patterns]
            for p in range(n_patterns):
                tops[p] = max(tops[p], values[p])
        n_tiny = 0
        for p in range(n_patterns):
            n_tiny += 1 if tops[p] <= TINY else 0
        if n_tiny == 0:
            continue
        for p in range(n_patterns):
            if data.counts[begin + p] == 0.0:
                continue
            while 0.0 < tops[p] <= TINY:
                tops[p] *= HUGE
                taken -= data.counts[begin + p] * LOG_HUGE
                for r in range(height):
                    row[at + r * n_patterns + p] *= HUGE
    return taken


@inlined
def join(v, x, x_length, y, y_length, family, point, data, rows, scale, pending, work):
    """rows[v] from two neighbours x and y (0 stands for taxon 0) over branches of the given lengths."""
    n = data.tips.shape[0]
    out = rows[v - n]
    carry_two(family, point, data, x_length, row_of(x, data, rows), x < n, y_length, row_of(y, data, rows), y < n, out)
    scale[v - n] = scale_of(x, n, scale) + scale_of(y, n, scale)
    pending[v - n] = pending_of(x, n, pending) + pending_of(y, n, pending)
    if pending[v - n] > MOST_PENDING:
        scale[v - n] += rescale(out, data, work[0])
        pending[v - n] = 1


@inlined
def fill_below(children, lengths, order, count, family, point, data, rows, scale, pending, work):
    """Rows of all internal vertices seen from their parents; `order` is a postorder of `count` vertices."""
    n = data.tips.shape[0]
    for i in range(count):
        v = order[i]
        a, b = children[v - n, 0], children[v - n, 1]
        join(v, a, lengths[a], b, lengths[b], family, point, data, rows, scale, pending, work)


@inlined
def root_values(family, point, data, x, x_is_tip, y, y_is_tip, out, k):
    """out[p] = sum over categories and states of weight * pi * x * y, for the patterns of part k."""
    n_states, n_patterns = data.layout[STATES, k], data.layout[PATTERNS, k]
    for p in range(n_patterns):
        out[p] = 0.0
    for c in range(data.layout[CATEGORIES, k]):
        weight = family.weights[point, data.layout[CATEGORY_AT, k] + c]
        row = data.layout[ROW_AT, k] + c * n_states * n_patterns
        x_at = data.layout[TIP_AT, k] if x_is_tip else row
        y_at = data.layout[TIP_AT, k] if y_is_tip else row
        for a in range(n_states):
            w = weight * family.pi[point, data.layout[STATE_AT, k] + a]
            xs = x[x_at + a * n_patterns : x_at + (a + 1) * n_patterns]
            ys = y[y_at + a * n_patterns : y_at + (a + 1) * n_patterns]
            for p in range(n_patterns):
                out[p] += w * xs[p] * ys[p]
