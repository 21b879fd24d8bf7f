"""Felsenstein pruning under equal-input models of four states (JC69, F81), over blocks of patterns.

The model (`models.replacement`) is its frequencies pi (`weights`, see `frequencies`) and its rate beta. A branch with
u = exp(-beta b) turns the partials x of the vertex below it into the message u*x + (1 - u) * sum(pi*x): no 4x4 product. Partials
have the shape (4, n_patterns), pattern axis contiguous; observed vertices are read as 0/1 bytes (`tips`). Patterns are
independent, so a block of them is carried through the whole tree while it sits in the first-level cache.

Trees come as a schedule: `order` lists the vertices that have something below them, children first and the root last;
the children of vertex v are `child[start[v]:start[v + 1]]`. Any degree, any root; a vertex below `n_taxa` is observed.
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.frequencies import scale, total
from vaiphy.kernels.logsum import weighted_log_sum

BLOCK = 256
# No partial is a product of more messages than this since it was last rescaled. A message is at least 2e-17 of the largest
# partial behind it, however short the branch, and a rescaled partial is above TINY: the product stays above 1e-300.
RESCALE_EVERY = 16
# A partial below TINY is multiplied by HUGE until it is not; it never exceeds one, so nothing can overflow.
TINY, HUGE, LOG_HUGE = 2.0**-64, 2.0**64, 64.0 * np.log(2.0)


@inlined
def join_two(weights, out, vertex, width, xs, c, x_begin, u, ys, d, y_begin, v):
    """out[vertex] = message(xs[c]; u) * message(ys[d]; v), over `width` patterns from the given offsets.

    Whole arrays and indices, not slices, and indices without a sign, which cannot count from the end: only so does the
    compiler know that neighbours are read.
    """
    qx = scale(weights) * (1.0 - u)
    qy = scale(weights) * (1.0 - v)
    for p in range(width):
        i, j = np.uintp(x_begin) + np.uintp(p), np.uintp(y_begin) + np.uintp(p)
        x0, x1, x2, x3 = np.float64(xs[c, 0, i]), np.float64(xs[c, 1, i]), np.float64(xs[c, 2, i]), np.float64(xs[c, 3, i])
        y0, y1, y2, y3 = np.float64(ys[d, 0, j]), np.float64(ys[d, 1, j]), np.float64(ys[d, 2, j]), np.float64(ys[d, 3, j])
        sx = qx * total(weights, x0, x1, x2, x3)
        sy = qy * total(weights, y0, y1, y2, y3)
        out[vertex, 0, p] = (sx + u * x0) * (sy + v * y0)
        out[vertex, 1, p] = (sx + u * x1) * (sy + v * y1)
        out[vertex, 2, p] = (sx + u * x2) * (sy + v * y2)
        out[vertex, 3, p] = (sx + u * x3) * (sy + v * y3)


@inlined
def join_one(weights, out, vertex, width, xs, c, x_begin, u):
    """out[vertex] *= message(xs[c]; u)."""
    q = scale(weights) * (1.0 - u)
    for p in range(width):
        i = np.uintp(x_begin) + np.uintp(p)
        x0, x1, x2, x3 = np.float64(xs[c, 0, i]), np.float64(xs[c, 1, i]), np.float64(xs[c, 2, i]), np.float64(xs[c, 3, i])
        s = q * total(weights, x0, x1, x2, x3)
        out[vertex, 0, p] *= s + u * x0
        out[vertex, 1, p] *= s + u * x1
        out[vertex, 2, p] *= s + u * x2
        out[vertex, 3, p] *= s + u * x3


@inlined
def rescale(out, vertex, width, log_scale):
    """Multiply columns that have become tiny by a power of two and keep account of it in `log_scale`."""
    least = 1.0
    for p in range(width):
        top = max(max(out[vertex, 0, p], out[vertex, 1, p]), max(out[vertex, 2, p], out[vertex, 3, p]))
        least = min(least, top)
    if least > TINY:
        return
    for p in range(width):
        top = max(max(out[vertex, 0, p], out[vertex, 1, p]), max(out[vertex, 2, p], out[vertex, 3, p]))
        while 0.0 < top <= TINY:
            for a in range(4):
                out[vertex, a, p] *= HUGE
            log_scale[p] -= LOG_HUGE
            top *= HUGE


@inlined
def lift_states(out, vertex, width, exponent):
    """Multiply numbers that have become tiny by HUGE, each state by itself, and count how often in `exponent`.

    For vertices with many children: a state that is hopeless after a hundred of them may win by the next hundred.
    """
    for a in range(4):
        for p in range(width):
            while 0.0 < out[vertex, a, p] <= TINY:
                out[vertex, a, p] *= HUGE
                exponent[a, p] += 1


@inlined
def settle_states(out, vertex, width, exponent, log_scale):
    """Bring the four states of each pattern to the least of their exponents, which goes to `log_scale`; exponents become 0."""
    for p in range(width):
        least = -1
        for a in range(4):
            if out[vertex, a, p] > 0.0 and (least < 0 or exponent[a, p] < least):
                least = exponent[a, p]
        least = max(least, 0)
        for a in range(4):
            for _ in range(exponent[a, p] - least):
                out[vertex, a, p] *= TINY
            exponent[a, p] = 0
        log_scale[p] -= least * LOG_HUGE


@kernel
def log_likelihood(weights, order, start, child, decay, tips, counts, work, log_scale, pending):
    """Log-likelihood of one tree.

    `decay[v]` = u of the branch above v; `tips` (n_taxa, 4, P) uint8; `counts` (P,). Workspaces: `work` (n_vertices, 4, BLOCK)
    float64, `log_scale` (BLOCK,), `pending` (n_vertices,) int64, -1 where a vertex has nothing below it. A pattern that is
    impossible gives -inf.
    """
    # In one piece: the cases differ in where partials are read from, and each is a single call.
    n_taxa = tips.shape[0]
    n_patterns = tips.shape[2]
    result = 0.0
    exponent = np.zeros((4, BLOCK), dtype=np.int64)
    for begin in range(0, n_patterns, BLOCK):
        width = min(BLOCK, n_patterns - begin)
        log_scale[:] = 0.0
        for k in range(order.shape[0]):
            vertex = order[k]
            first, last = start[vertex], start[vertex + 1]
            n_multiplied = 0
            many = last - first >= RESCALE_EVERY
            if vertex < n_taxa:
                for a in range(4):
                    for p in range(width):
                        work[vertex, a, p] = tips[vertex, a, begin + p]
            elif last - first == 1:
                for a in range(4):
                    for p in range(width):
                        work[vertex, a, p] = 1.0
            else:
                c, d = child[first], child[first + 1]
                if pending[c] >= 0 and pending[d] < 0:
                    c, d = d, c
                # A taxon inside the tree is observed and has partials of its own.
                if pending[d] < 0:
                    join_two(weights, work, vertex, width, tips, c, begin, decay[c], tips, d, begin, decay[d])
                    n_multiplied = 2
                elif pending[c] < 0:
                    if pending[d] >= RESCALE_EVERY:
                        rescale(work, d, width, log_scale)
                        pending[d] = 1
                    join_two(weights, work, vertex, width, tips, c, begin, decay[c], work, d, 0, decay[d])
                    n_multiplied = 1 + pending[d]
                else:
                    while pending[c] + pending[d] > RESCALE_EVERY:
                        larger = c if pending[c] > pending[d] else d
                        rescale(work, larger, width, log_scale)
                        pending[larger] = 1
                    join_two(weights, work, vertex, width, work, c, 0, decay[c], work, d, 0, decay[d])
                    n_multiplied = pending[c] + pending[d]
                first += 2
            for i in range(first, last):
                c = child[i]
                if n_multiplied >= RESCALE_EVERY:
                    if many:
                        lift_states(work, vertex, width, exponent)
                    else:
                        rescale(work, vertex, width, log_scale)
                    n_multiplied = 1
                if pending[c] < 0:
                    join_one(weights, work, vertex, width, tips, c, begin, decay[c])
                    n_multiplied += 1
                else:
                    if n_multiplied + pending[c] > RESCALE_EVERY:
                        rescale(work, c, width, log_scale)
                        pending[c] = 1
                    join_one(weights, work, vertex, width, work, c, 0, decay[c])
                    n_multiplied += pending[c]
            if many:
                lift_states(work, vertex, width, exponent)
                settle_states(work, vertex, width, exponent, log_scale)
                n_multiplied = 1
            pending[vertex] = n_multiplied
        vertex = order[order.shape[0] - 1]
        for p in range(width):
            site = total(weights, work[vertex, 0, p], work[vertex, 1, p], work[vertex, 2, p], work[vertex, 3, p])
            result += counts[begin + p] * log_scale[p]
            log_scale[p] = scale(weights) * site
        result += weighted_log_sum(log_scale, counts, begin, width)
    return result
