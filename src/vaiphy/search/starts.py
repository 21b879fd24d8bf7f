"""Trees to start from: JC69 distances, BIONJ (Gascuel 1997), and hill climbing by interchanges or regraftings."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns, fold_states
from vaiphy.likelihood import log_likelihood, optimise
from vaiphy.search.rearrange import Children, Floats, Problem, first_of_each, moved, moved_together, screen
from vaiphy.trees.sample import binary_arrays, parents_of
from vaiphy.trees.tree import Tree, simplified

#: Pairs that look saturated (or share no site) get this distance times the largest one that is not.
SATURATED_FACTOR = 1.5
#: How far parts are moved by a climb, in branches (None: as far as `rearrange` goes).
RADIUS = {"nni": 1, "spr": None}
#: A climb optimises all neighbours whose lazy score is at most this many log units below the tree, so many at a time, best
#: first, and moves when the best of them gains more than `LEAST_GAIN`.
CLIMB_MARGIN, CLIMB_CANDIDATES, LEAST_GAIN = 10.0, 5, 1e-3


def jc_distances(patterns: SitePatterns, counts: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """JC69 distances between all pairs, (n, n), from the sites where both taxa have a single base.

    `counts` replaces the patterns' own counts (bootstrap). A saturated pair (3/4 or more of the sites differ), or one without
    a common site, gets 1.5 times the largest other distance, and at least 1.
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
        distance = -0.75 * np.log(1.0 - 4.0 / 3.0 * (comparable - same) / comparable)
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


def climb(tree: Tree, patterns: SitePatterns, moves: str = "nni", prior_rate: float = 0.0) -> tuple[Tree, float]:
    """Hill climbing over unrooted binary trees: nearest-neighbour interchange ("nni") or subtree pruning and regrafting ("spr").

    Climbs by log-likelihood at the best branch lengths or, with a prior rate, by log-posterior under Exp(rate) branch lengths.
    Ends where no neighbour whose lazily estimated score is within 10 log units of the tree's gains more than 0.001. Returns
    the tree, rooted at taxon 0, and its log-likelihood (without the prior).
    """
    if moves not in RADIUS:
        raise ValueError(f"unknown moves {moves!r}; known: {', '.join(RADIUS)}")
    problem = Problem(fold_states(patterns), prior_rate)
    children, lengths = binary_arrays(simplified(tree))
    lengths, height = _height(problem, children, lengths)
    while (better := _better(problem, children, lengths, height, RADIUS[moves])) is not None:
        children, lengths, height = better
    best = Tree(patterns.taxa, parents_of(children), lengths)
    return best, log_likelihood(best, patterns)


def _better(
    problem: Problem, children: Children, lengths: Floats, height: float, radius: int | None
) -> tuple[Children, Floats, float] | None:
    """A higher neighbour, with its lengths and height; or all promising moves that do not touch each other, made at once."""
    moves, scores, spans = screen(problem, children, lengths, CLIMB_MARGIN, radius)
    best = np.argsort(-scores, kind="stable")
    trees, starts = moved(children, lengths, moves[best], spans[best])
    first = first_of_each(trees)
    candidates = list(zip(trees[first], starts[first]))
    rising = best[scores[best] > LEAST_GAIN]
    if len(rising) > 1:
        candidates.insert(0, moved_together(children, lengths, moves[rising], spans[rising]))
    for k in range(0, len(candidates), CLIMB_CANDIDATES):
        fitted = [(topology, *_height(problem, topology, start)) for topology, start in candidates[k : k + CLIMB_CANDIDATES]]
        found = max(fitted, key=lambda fit: fit[2])
        if found[2] > height + LEAST_GAIN:
            return found
    return None


def _height(problem: Problem, children: Children, lengths: Floats) -> tuple[Floats, float]:
    """The best lengths of a topology and the log-likelihood, or log-posterior up to a constant, there."""
    tree = Tree(problem.patterns.taxa, parents_of(children), lengths)
    best, value = optimise(tree, problem.patterns, problem.rate)
    return best.length, value - problem.rate * best.length[1:].sum()
