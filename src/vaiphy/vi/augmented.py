"""How trees of the augmented space (`trees.augmented`) become trees for people.

Dangling internal vertices are pruned, those of degree two suppressed and near-zero branches contracted
(`tidy`); for programs that want binary trees, multifurcations are resolved at random (`resolve`). Internal labels are
exchangeable between samples, so whatever is averaged over samples is matched by clade first (`ancestral_by_clade`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.likelihood import node_marginals
from vaiphy.trees.augmented import AugmentedTrees
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Tree
from vaiphy.weights import log_normalised

Floats = NDArray[np.float64]


def tidy(tree: Tree, contract_below: float = 0.0) -> Tree:
    """The tree without dangling internal vertices, vertices of degree two, and internal branches not above a length.

    Multifurcations stay, surviving internal vertices keep their labels, and the root is an internal vertex of degree
    three or more. Branches to taxa are never contracted.
    """
    n = tree.n_taxa
    if n < 3:
        return tree
    rooted = tree.rerooted(0)
    length = rooted.length.copy()
    below: list[list[int]] = [[] for _ in range(tree.n_vertices)]
    for vertex in rooted.postorder.tolist():
        above = int(rooted.parent[vertex])
        if vertex >= n:
            if not below[vertex]:
                continue  # dangling
            if len(below[vertex]) == 1 and above >= 0:
                child = below[vertex][0]
                length[child] += length[vertex]
                below[above].append(child)
                continue
            if above != 0 and length[vertex] <= contract_below:
                below[above].extend(below[vertex])
                below[vertex] = []
                continue
        if above >= 0:
            below[above].append(vertex)
    top = below[0][0]
    kept = [v for v in range(n, tree.n_vertices) if len(below[v]) >= 2]
    number = {v: v for v in range(n)} | {v: n + k for k, v in enumerate(kept)}
    parent = np.full(n + len(kept), -1, dtype=np.int32)
    lengths = np.zeros(n + len(kept))
    for vertex in kept:
        for child in below[vertex]:
            parent[number[child]], lengths[number[child]] = number[vertex], length[child]
    parent[0], lengths[0] = number[top], length[top]
    labels = ("",) * n + tuple(tree.name(v) for v in kept)
    return Tree(tree.taxa, parent, lengths, labels)


def resolve(trees: AugmentedTrees, log_weights: Floats, rng: np.random.Generator) -> TreeSample:
    """Sampled trees as weighted unrooted binary trees; multifurcations are resolved at random by branches of length 0."""
    n, size = len(trees.taxa), len(trees)
    children = np.empty((size, n - 2, 2), dtype=np.int32)
    lengths = np.empty((size, 2 * n - 2))
    for t in range(size):
        children[t], lengths[t] = _binary(tidy(trees.tree(t)).rerooted(0), rng)
    distinct, topology = np.unique(children.reshape(size, -1), axis=0, return_inverse=True)
    return TreeSample(
        trees.taxa,
        distinct.reshape(-1, n - 2, 2),
        topology.ravel().astype(np.int32),
        lengths,
        log_normalised(log_weights),
        np.zeros(size, dtype=np.int32),
    )


@dataclass(frozen=True, eq=False)
class CladeStates:
    """Ancestral states of the vertex above a clade, averaged over the sampled trees that have it.

    `clade` is the bit set of the taxa behind the vertex as seen from taxon 0, `share` the weight of the trees that
    have it and `probability` (4, n_patterns) that of A, C, G, T.
    """

    clade: int
    share: float
    probability: Floats


def ancestral_by_clade(trees: AugmentedTrees, weights: Floats, patterns: SitePatterns) -> dict[int, CladeStates]:
    """Ancestral states by clade, averaged over weighted trees (the weights sum to one); by descending share.

    Trees are tidied first, so a vertex is known by the taxa behind it alone. One pass of pruning for each tree of
    weight.
    """
    share: dict[int, float] = {}
    total: dict[int, Floats] = {}
    for t in np.flatnonzero(weights > 0.0).tolist():
        tree = tidy(trees.tree(t)).rerooted(0)
        marginals = node_marginals(tree, patterns)
        for vertex in range(tree.n_taxa, tree.n_vertices):
            clade = tree.clades[vertex]
            share[clade] = share.get(clade, 0.0) + weights[t]
            if clade in total:
                total[clade] += weights[t] * marginals[vertex]
            else:
                total[clade] = weights[t] * marginals[vertex]
    ranked = sorted(share, key=lambda clade: -share[clade])
    return {clade: CladeStates(clade, share[clade], total[clade] / share[clade]) for clade in ranked}


def _binary(tree: Tree, rng: np.random.Generator) -> tuple[NDArray[np.int32], Floats]:
    """Binary arrays of a tidy tree rooted at taxon 0, in a canonical order: vertices by size and bit set of their clade."""
    n = tree.n_taxa
    clades = list(tree.clades)
    length = tree.length.tolist()
    pairs: list[tuple[int, int]] = []  # children of internal vertices of the resolved tree, by position in `clades`
    owners: list[int] = []
    at = [-1] * tree.n_vertices
    for vertex in tree.postorder.tolist():
        if vertex < n:
            at[vertex] = vertex
            continue
        open_ = [at[child] for child in tree.children[vertex]]
        while len(open_) > 2:
            first = open_.pop(int(rng.integers(len(open_))))
            second = open_.pop(int(rng.integers(len(open_))))
            clades.append(clades[first] | clades[second])
            length.append(0.0)
            pairs.append((first, second))
            owners.append(len(clades) - 1)
            open_.append(len(clades) - 1)
        pairs.append((open_[0], open_[1]))
        owners.append(vertex)
        at[vertex] = vertex
    order = sorted(range(len(owners)), key=lambda k: (clades[owners[k]].bit_count(), clades[owners[k]]))
    number = {v: v for v in range(n)} | {owners[k]: n + rank for rank, k in enumerate(order)}
    children = np.array([sorted((number[pairs[k][0]], number[pairs[k][1]])) for k in order], dtype=np.int32)
    lengths = np.zeros(2 * n - 2)
    for vertex, rank in number.items():
        if vertex != 0:
            lengths[rank] = length[vertex]
    return children.reshape(n - 2, 2), lengths
