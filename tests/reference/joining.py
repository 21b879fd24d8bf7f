"""BIONJ (Gascuel 1997) again, in NumPy: a table that keeps its rows, and whole rows at a time."""

import numpy as np


def bionj(distances):
    """Parents of the 2n - 2 vertices (n >= 3) in the order in which they are made, -1 for the last, and branch lengths."""
    n = len(distances)
    size = 2 * n - 2
    d = distances.copy()
    variance = d.copy()
    active = np.arange(n)
    parent = np.full(size, -1, dtype=np.int32)
    length = np.zeros(size)
    vertex = list(range(n))  # the vertex that each row stands for
    for new in range(n, size - 1):
        sub = d[np.ix_(active, active)]
        r = len(active)
        sums = sub.sum(axis=1)
        criterion = (r - 2) * sub - sums[:, None] - sums[None, :]
        criterion[np.tril_indices(r)] = np.inf
        least = criterion.min()
        i, j = divmod(int((criterion <= least + 1e-12 * abs(least)).argmax()), r)
        a, b = int(active[i]), int(active[j])
        dab = d[a, b]
        length_a = 0.5 * (dab + (sums[i] - sums[j]) / (r - 2))
        parent[vertex[a]] = parent[vertex[b]] = new
        length[vertex[a]], length[vertex[b]] = length_a, dab - length_a
        others = np.delete(active, [i, j])
        vab = variance[a, b]
        weight = 0.5
        if vab > 0:
            weight += float((variance[b, others] - variance[a, others]).sum()) / (2 * (r - 2) * vab)
        weight = min(max(weight, 0.0), 1.0)
        d[a, others] = weight * (d[a, others] - length_a) + (1 - weight) * (d[b, others] - (dab - length_a))
        variance[a, others] = weight * variance[a, others] + (1 - weight) * variance[b, others] - weight * (1 - weight) * vab
        d[others, a], variance[others, a] = d[a, others], variance[a, others]
        vertex[a] = new
        active = np.delete(active, j)
    x, y, z = (int(v) for v in active)
    center = size - 1
    for p, q, s in ((x, y, z), (y, x, z), (z, x, y)):
        parent[vertex[p]] = center
        length[vertex[p]] = 0.5 * (d[p, q] + d[p, s] - d[q, s])
    return parent, np.maximum(length, 0.0)
