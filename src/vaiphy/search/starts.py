"""Trees to start from: distances between taxa, and BIONJ (Gascuel 1997)."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.models.jc69 import JC69
from vaiphy.models.replacement import Replacement
from vaiphy.trees.tree import Tree

#: Pairs that look saturated (or share no site) get this distance times the largest one that is not.
SATURATED_FACTOR = 1.5


def distances(
    patterns: SitePatterns, counts: NDArray[np.float64] | None = None, model: Replacement = JC69
) -> NDArray[np.float64]:
    """Distances between all pairs, (n, n), from the sites where both taxa have a single base.

    At a distance of d a share of (1 - exp(-beta d)) / beta of the sites is expected to differ. `counts` replaces the patterns'
    own counts (bootstrap). A saturated pair (as different as random sequences, or more), or one without a common site, gets 1.5
    times the largest other distance, and at least 1.
    """
    weights = patterns.counts if counts is None else counts
    singles = [(patterns.codes == 1 << base).astype(np.float64) for base in range(4)]
    known = sum(singles)
    assert not isinstance(known, int)
    comparable = (known * weights) @ known.T
    same = np.zeros_like(comparable)
    for indicator in singles:
        same += (indicator * weights) @ indicator.T
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = model.length(1.0 - model.beta * (comparable - same) / comparable)
    usable = np.isfinite(distance) & (comparable > 0)
    largest = distance[usable].max() if usable.any() else 0.0
    distance[~usable] = max(1.0, SATURATED_FACTOR * largest)
    distance = np.maximum(distance, 0.0)
    np.fill_diagonal(distance, 0.0)
    return distance


def bionj(distances: NDArray[np.float64], taxa: tuple[str, ...]) -> Tree:
    """The BIONJ tree of a distance matrix: unrooted binary, rooted at its last internal vertex; negative lengths become 0.

    Like neighbour joining, but the distances of a new cluster are averaged with the weights that minimise their variance.
    O(n^3). Two taxa are joined by one branch.
    """
    n = len(taxa)
    if n == 2:
        return Tree(taxa, np.array([-1, 0]), np.array([0.0, distances[0, 1]]))
    size = 2 * n - 2
    d = distances.astype(np.float64).copy()
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
        np.fill_diagonal(criterion, np.inf)
        i, j = divmod(int(criterion.argmin()), r)
        if i > j:
            i, j = j, i
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
    return Tree(taxa, parent, np.maximum(length, 0.0))
