"""Exact evidence of tiny data sets: enumeration of trees, and branch lengths integrated by Gauss-Jacobi quadrature.

The likelihood under an equal-input model (JC69, or F81 with frequencies `pi`) is a polynomial of degree at most M (sites) in each
u = exp(-beta b), beta = 1 / (1 - sum pi^2), and under b ~ Exp(rate) u is a Beta(rate / beta, 1) variable; ceil((M + 1)/2) nodes a
branch integrate it exactly. Likelihoods are summed over all
internal states, so nothing here shares code or ideas with the pruning kernels.

A tree is a list of edges (i, j); vertices 0..n_taxa-1 are the taxa. Sites are bit sets (A=1, C=2, G=4, T=8,
missing=15), one column per site (no pattern counts: repeat a column).
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from math import inf, log

import numpy as np
from scipy.special import roots_sh_jacobi

Edges = tuple[tuple[int, int], ...]
Pi = tuple[float, ...]
EQUAL: Pi = (0.25, 0.25, 0.25, 0.25)


def spanning_trees(n_vertices: int) -> list[Edges]:
    """All n^(n-2) labelled trees on vertices 0..n-1, by Prufer sequences; edges (i, j) with i < j, sorted."""
    if n_vertices == 1:
        return [()]
    if n_vertices == 2:
        return [((0, 1),)]
    trees = []
    for sequence in product(range(n_vertices), repeat=n_vertices - 2):
        degree = [1 + sequence.count(v) for v in range(n_vertices)]
        edges = []
        for v in sequence:
            leaf = degree.index(1)
            edges.append((min(leaf, v), max(leaf, v)))
            degree[leaf] -= 1
            degree[v] -= 1
        first, second = [v for v in range(n_vertices) if degree[v] == 1]
        edges.append((first, second))
        trees.append(tuple(sorted(edges)))
    return trees


def augmented_trees(n_taxa: int) -> list[Edges]:
    """All (n-2)^(2n-4) trees on 2n-2 labelled vertices with the first n as leaves (other degrees are free)."""
    internal = range(n_taxa, 2 * n_taxa - 2)
    cores = [tuple((n_taxa + i, n_taxa + j) for i, j in tree) for tree in spanning_trees(n_taxa - 2)]
    return [tuple(enumerate(hosts)) + core for core in cores for hosts in product(internal, repeat=n_taxa)]


def unrooted_topologies(n_taxa: int) -> list[Edges]:
    """All (2n-5)!! unrooted binary trees: internal vertices n..2n-3, by adding taxa one at a time."""
    trees: list[Edges] = [((0, n_taxa), (1, n_taxa), (2, n_taxa))]
    for taxon in range(3, n_taxa):
        trees = [grown for tree in trees for grown in _attach(tree, taxon, n_taxa + taxon - 2)]
    return trees


def rooted_topologies(n_taxa: int) -> list[Edges]:
    """All (2n-3)!! rooted binary trees: internal vertices n..2n-2, the root is 2n-2 (degree two)."""
    root = 2 * n_taxa - 2
    trees: list[Edges] = [((0, root), (1, root))]
    for taxon in range(2, n_taxa):
        vertex = n_taxa + taxon - 2
        grown_trees = []
        for tree in trees:
            grown_trees.extend(_attach(tree, taxon, vertex))
            # Above the root: the old root becomes `vertex`, and the root's name passes to the new one.
            renamed = tuple((i, vertex) if j == root else (i, j) for i, j in tree)
            grown_trees.append((*renamed, (vertex, root), (taxon, root)))
        trees = grown_trees
    return trees


def _attach(tree: Edges, taxon: int, vertex: int) -> Iterator[Edges]:
    for k, (i, j) in enumerate(tree):
        yield (*tree[:k], (i, vertex), (vertex, j), *tree[k + 1 :], (taxon, vertex))


@cache
def quadrature(n_sites: int, rate: float, pi: Pi = EQUAL) -> tuple[np.ndarray, np.ndarray]:
    """Nodes u and weights (summing to one), exact for polynomials of degree n_sites in u(b), b ~ Exp(rate)."""
    shape = rate * (1.0 - sum(p * p for p in pi))
    nodes, weights = roots_sh_jacobi((n_sites + 2) // 2, shape, shape)
    return nodes, weights / weights.sum()


def site_likelihoods(edges: Edges, decay: np.ndarray, codes: np.ndarray, pi: Pi = EQUAL) -> np.ndarray:
    """Likelihood (grid, site) of each site at each row of `decay` (grid, edge): a sum over all internal states."""
    n_taxa, n_sites = codes.shape
    n_vertices = 1 + max(max(edge) for edge in edges)
    total = np.zeros((decay.shape[0], n_sites))
    for states in product(range(4), repeat=n_vertices - n_taxa):
        # The product of all vertices' frequencies and of P_ij / pi_j of all branches, which is symmetric.
        term = np.full((decay.shape[0], n_sites), np.prod([pi[state] for state in states]))
        for e, (i, j) in enumerate(edges):
            if i < n_taxa and j < n_taxa:
                raise ValueError("an edge between two taxa")
            if min(i, j) >= n_taxa:
                one, other = states[i - n_taxa], states[j - n_taxa]
                term *= (decay / pi[one] * (one == other) + 1.0 - decay)[:, e, None]
            else:
                leaf, state = min(i, j), states[max(i, j) - n_taxa]
                holds = (codes[leaf] >> state & 1).astype(float)
                chance = np.array([sum(pi[a] for a in range(4) if int(code) >> a & 1) for code in codes[leaf]])
                term *= decay[:, e, None] * holds + (1.0 - decay[:, e, None]) * chance
        total += term
    return total


def tree_evidence(edges: Edges, codes: np.ndarray, rate: float = 10.0, pi: Pi = EQUAL) -> float:
    """Integral of p(X | tree, B) under independent Exp(rate) branch lengths, exact to rounding."""
    nodes, weights = quadrature(codes.shape[1], rate, pi)
    grid = np.array(list(product(nodes, repeat=len(edges))))
    mass = np.array([np.prod(w) for w in product(weights, repeat=len(edges))])
    return float(mass @ site_likelihoods(edges, grid, codes, pi).prod(axis=1))


def log_evidence(trees: list[Edges], codes: np.ndarray, rate: float = 10.0, pi: Pi = EQUAL) -> float:
    """log p(X) under a uniform prior over `trees` and Exp(rate) branch lengths.

    Trees that differ in the names of internal vertices only are integrated once.
    """
    distinct = Counter(_canonical(tree, codes.shape[0]) for tree in trees)
    total = sum(times * tree_evidence(tree, codes, rate, pi) for tree, times in distinct.items())
    return log(total / len(trees)) if total > 0 else -inf


def _canonical(edges: Edges, n_taxa: int) -> Edges:
    internal = range(n_taxa, 1 + max(max(edge) for edge in edges))
    renamed = []
    for order in permutations(internal):
        name = dict(zip(internal, order))
        pairs = ((name.get(i, i), name.get(j, j)) for i, j in edges)
        renamed.append(tuple(sorted((min(pair), max(pair)) for pair in pairs)))
    return min(renamed)


def brute_log_likelihood(edges: Edges, lengths: np.ndarray, codes: np.ndarray) -> float:
    """log p(X | tree, B) for one set of branch lengths, in the order of `edges`."""
    decay = np.exp(-4.0 / 3.0 * np.asarray(lengths, dtype=float))[None, :]
    return float(np.log(site_likelihoods(edges, decay, codes)[0]).sum())
