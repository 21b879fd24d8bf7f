"""Log-likelihoods of many binary trees under equal-input models, with their derivatives in every branch length.

With L the partials below a branch, O all that meets its upper end from elsewhere and u = exp(-beta b), a pattern's likelihood is
u * sum(pi O L) + (1 - u) * sum(pi O) * sum(pi L): one pass up the tree fills L, one down fills O. The model is its frequencies
(`weights`, see `frequencies`) and its rate beta.
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.frequencies import scale, total
from vaiphy.kernels.logsum import weighted_log_sum
from vaiphy.kernels.pruning import BLOCK, join_two, rescale

# Messages in a product since it was last rescaled, at most: half as many as in `pruning`, since two products are multiplied.
RESCALE_EVERY = 7


@inlined
def load_taxa(tips, begin, width, below):
    """The observations of one block of patterns."""
    for v in range(tips.shape[0]):
        for a in range(4):
            for p in range(width):
                below[v, a, p] = tips[v, a, begin + p]


@inlined
def fill_upwards(weights, children, decay, width, below, pending, log_scale):
    """below[v] of every internal vertex; `log_scale` keeps account of what was multiplied."""
    n = children.shape[0] + 2
    for k in range(n - 2):
        a, b = children[k, 0], children[k, 1]
        while pending[a] + pending[b] > RESCALE_EVERY:
            larger = a if pending[a] > pending[b] else b
            rescale(below, larger, width, log_scale)
            pending[larger] = 1
        join_two(weights, below, n + k, width, below, a, 0, decay[a], below, b, 0, decay[b])
        pending[n + k] = pending[a] + pending[b]


@inlined
def fill_downwards(weights, children, decay, width, below, above, pending, unused):
    """above[v] of every vertex but taxon 0; above[top] is taxon 0's observation."""
    n = children.shape[0] + 2
    top = 2 * n - 3
    for a in range(4):
        for p in range(width):
            above[top, a, p] = below[0, a, p]
    behind = np.ones(2 * n - 2, dtype=np.int64)
    for k in range(n - 3, -1, -1):
        v = n + k
        for side in range(2):
            c = children[k, side]
            sister = children[k, 1 - side]
            while behind[v] + pending[sister] > RESCALE_EVERY and behind[v] > 1:
                rescale(above, v, width, unused)
                behind[v] = 1
            join_two(weights, above, c, width, above, v, 0, decay[v], below, sister, 0, decay[sister])
            behind[c] = behind[v] + pending[sister]


@inlined
def add_slopes(weights, beta, n_vertices, decay, counts, begin, width, below, above, slopes, t):
    """Add a block's derivatives in u, turned into those in b."""
    for v in range(1, n_vertices):
        u = decay[v]
        slope = 0.0
        for p in range(width):
            o0, o1, o2, o3 = above[v, 0, p], above[v, 1, p], above[v, 2, p], above[v, 3, p]
            l0, l1, l2, l3 = below[v, 0, p], below[v, 1, p], below[v, 2, p], below[v, 3, p]
            both = scale(weights) * total(weights, o0, o1, o2, o3) * total(weights, l0, l1, l2, l3)
            joint = total(weights, o0 * l0, o1 * l1, o2 * l2, o3 * l3)
            likelihood = both + u * (joint - both)
            slope += counts[begin + p] * (joint - both) / likelihood if likelihood > 0.0 else 0.0
        slopes[t, v] -= beta * u * slope


@kernel
def log_likelihoods_and_slopes(weights, beta, children, lengths, tips, counts, with_slopes, values, slopes):
    """values[t] and slopes[t, v] (entry 0 is 0) of the trees `children` (T, n-2, 2) with branch lengths (T, 2n-2)."""
    n_vertices = lengths.shape[1]
    n_taxa = tips.shape[0]
    below = np.empty((n_vertices, 4, BLOCK))
    above = np.empty((n_vertices, 4, BLOCK))
    log_scale = np.empty(BLOCK)
    unused = np.empty(BLOCK)
    decay = np.empty(n_vertices)
    pending = np.empty(n_vertices, dtype=np.int64)
    values[:] = 0.0
    slopes[:] = 0.0
    for begin in range(0, tips.shape[2], BLOCK):
        width = min(BLOCK, tips.shape[2] - begin)
        load_taxa(tips, begin, width, below)
        for t in range(children.shape[0]):
            for v in range(n_vertices):
                decay[v] = np.exp(-beta * lengths[t, v])
            pending[:n_taxa] = 1
            log_scale[:] = 0.0
            fill_upwards(weights, children[t], decay, width, below, pending, log_scale)
            if with_slopes:
                fill_downwards(weights, children[t], decay, width, below, above, pending, unused)
                add_slopes(weights, beta, n_vertices, decay, counts, begin, width, below, above, slopes, t)
            top = n_vertices - 1
            u = decay[top]
            for p in range(width):
                o0, o1, o2, o3 = below[0, 0, p], below[0, 1, p], below[0, 2, p], below[0, 3, p]
                l0, l1, l2, l3 = below[top, 0, p], below[top, 1, p], below[top, 2, p], below[top, 3, p]
                both = scale(weights) * total(weights, o0, o1, o2, o3) * total(weights, l0, l1, l2, l3)
                joint = total(weights, o0 * l0, o1 * l1, o2 * l2, o3 * l3)
                values[t] += counts[begin + p] * log_scale[p]
                log_scale[p] = scale(weights) * (both + u * (joint - both))
            values[t] += weighted_log_sum(log_scale, counts, begin, width)
