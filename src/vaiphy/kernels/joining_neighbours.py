"""BIONJ (Gascuel 1997): neighbour joining whose distances are averaged with the weights of least variance. O(n^3)."""

import numpy as np

from vaiphy.kernels.binary import fill_tree
from vaiphy.kernels.compile import inlined, kernel

# Criteria that differ by less than this share of themselves are the same.
SAME = 1e-12


@inlined
def next_pair(d, active, r, sums):
    """Which two of the r active rows to join, by the neighbour-joining criterion; `sums` become their sums of distances.

    The first of those that are equal but for rounding: of four rows, a pair is as good as the other two.
    """
    for i in range(r):
        sums[i] = 0.0
        for j in range(r):
            sums[i] += d[active[i], active[j]]
    best = np.inf
    first, second = 0, 1
    for i in range(r):
        for j in range(i + 1, r):
            value = (r - 2) * d[active[i], active[j]] - sums[i] - sums[j]
            if value < best and not value > best - SAME * abs(best):
                best, first, second = value, i, j
    return first, second


@inlined
def join_all(distances, neighbour, span):
    """Fill the neighbours of every vertex of the tree, (2n - 2, 3), and the lengths of the branches to them.

    Vertices are numbered as they are made, the last one joining what is left. The last neighbour of any other internal vertex is
    its parent; a taxon has one neighbour.
    """
    n = distances.shape[0]
    d = distances.copy()
    variance = distances.copy()
    active = np.arange(n)
    vertex = np.arange(n)
    used = np.zeros(2 * n - 2, dtype=np.int32)
    sums = np.empty(n)
    r = n
    for new in range(n, 2 * n - 3):
        first, second = next_pair(d, active, r, sums)
        a, b = active[first], active[second]
        dab = d[a, b]
        length_a = 0.5 * (dab + (sums[first] - sums[second]) / (r - 2))
        length_b = dab - length_a
        for x, length in ((vertex[a], length_a), (vertex[b], length_b)):
            neighbour[x, used[x]], span[x, used[x]] = new, max(length, 0.0)
            neighbour[new, used[new]], span[new, used[new]] = x, max(length, 0.0)
            used[x] += 1
            used[new] += 1
        vab = variance[a, b]
        weight = 0.5
        if vab > 0.0:
            total = 0.0
            for i in range(r):
                k = active[i]
                if k != a and k != b:
                    total += variance[b, k] - variance[a, k]
            weight += total / (2.0 * (r - 2) * vab)
        weight = min(max(weight, 0.0), 1.0)
        for i in range(r):
            k = active[i]
            if k != a and k != b:
                d[a, k] = weight * (d[a, k] - length_a) + (1.0 - weight) * (d[b, k] - length_b)
                variance[a, k] = weight * variance[a, k] + (1.0 - weight) * variance[b, k] - weight * (1.0 - weight) * vab
                d[k, a], variance[k, a] = d[a, k], variance[a, k]
        vertex[a] = new
        for i in range(second, r - 1):
            active[i] = active[i + 1]
        r -= 1
    center = 2 * n - 3
    for i in range(3):
        p, q, s = active[i], active[(i + 1) % 3], active[(i + 2) % 3]
        length = max(0.5 * (d[p, q] + d[p, s] - d[q, s]), 0.0)
        x = vertex[p]
        neighbour[x, used[x]], span[x, used[x]] = center, length
        neighbour[center, i], span[center, i] = x, length
        used[x] += 1


@kernel
def bionj(distances, children, lengths):
    """The tree of a distance matrix (n, n), n >= 3, as binary arrays (`binary`); negative lengths become 0."""
    n = distances.shape[0]
    neighbour = np.empty((2 * n - 2, 3), dtype=np.int32)
    span = np.zeros((2 * n - 2, 3))
    join_all(distances, neighbour, span)
    stack = np.empty(2 * n - 2, dtype=np.int32)
    name = np.empty(2 * n - 2, dtype=np.int32)
    fill_tree(neighbour, span, children, lengths, stack, name)


@kernel
def bionj_parents(distances, parent, length):
    """The same tree as parents of its 2n - 2 vertices (-1: the last one, its root) and the lengths of the branches to them."""
    n = distances.shape[0]
    neighbour = np.empty((2 * n - 2, 3), dtype=np.int32)
    span = np.zeros((2 * n - 2, 3))
    join_all(distances, neighbour, span)
    for v in range(2 * n - 3):
        slot = 0 if v < n else 2
        parent[v], length[v] = neighbour[v, slot], span[v, slot]
    parent[2 * n - 3] = -1
    length[2 * n - 3] = 0.0
