"""Where a new vertex sits between the two subtrees that it joins, by distances between taxa, as in neighbour joining."""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel


@inlined
def collect(vertex, sign, children, lengths, n_taxa, side, stack, depth_of):
    """Mark the taxa below a vertex with `sign` in `side`; returns their number and their mean distance from the vertex."""
    stack[0], depth_of[0] = vertex, 0.0
    height = 1
    count = 0
    total = 0.0
    while height > 0:
        height -= 1
        v, depth = stack[height], depth_of[height]
        if v < n_taxa:
            side[v] = sign
            count += 1
            total += depth
            continue
        for branch in range(2):
            stack[height] = children[v, branch]
            depth_of[height] = depth + lengths[v, branch]
            height += 1
    return count, total / count


@kernel
def divide(a, b, children, lengths, distances, n_sites, share, weight):
    """share[k]: expected share of a[k]'s branch in the sum of the two; weight[k]: how sure that is, as pseudo-observations.

    As neighbour joining: the difference of the two branches is how much further a is from the other taxa than b, on average.
    """
    n_taxa = distances.shape[0]
    side = np.zeros(n_taxa, dtype=np.int64)
    stack = np.empty(2 * n_taxa, dtype=np.int64)
    depth_of = np.empty(2 * n_taxa)
    for k in range(a.shape[0]):
        side[:] = 0
        n_a, depth_a = collect(a[k], 1, children, lengths, n_taxa, side, stack, depth_of)
        n_b, depth_b = collect(b[k], 2, children, lengths, n_taxa, side, stack, depth_of)
        between = 0.0
        difference = 0.0
        for i in range(n_taxa):
            if side[i] == 0:
                continue
            for j in range(n_taxa):
                if side[i] == 1 and side[j] == 2:
                    between += distances[i, j]
                elif side[j] == 0:
                    difference += distances[i, j] / n_a if side[i] == 1 else -distances[i, j] / n_b
        total = max(between / (n_a * n_b) - depth_a - depth_b, 1e-4)
        difference = difference / max(n_taxa - n_a - n_b, 1) - depth_a + depth_b
        share[k] = min(max(0.5 + 0.5 * difference / total, 0.02), 0.98)
        weight[k] = min(max(0.5 * total * n_sites, 0.5), 200.0)
