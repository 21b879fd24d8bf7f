"""Trees to start from: distances between taxa, and BIONJ (Gascuel 1997)."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.kernels import joining_neighbours
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
    parent, length = np.empty(2 * n - 2, dtype=np.int32), np.empty(2 * n - 2)
    joining_neighbours.bionj_parents(np.ascontiguousarray(distances, dtype=np.float64), parent, length)
    return Tree(taxa, parent, length)
