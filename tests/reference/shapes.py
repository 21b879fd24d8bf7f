"""Random trees of any shape, lengths by split, interchanges, random patterns with ambiguities, and kernels as plain Python."""

from collections.abc import Iterator

import numpy as np

from vaiphy.alignment import SitePatterns
from vaiphy.trees.tree import Tree


def random_shape(n_taxa: int, n_vertices: int, rng: np.random.Generator, dangling: bool = False, scale: float = 0.3) -> Tree:
    """A tree of any degrees with any root, taxa inside it included; internal vertices of degree one only if `dangling`."""
    while True:
        order = rng.permutation(n_vertices)
        parent = np.full(n_vertices, -1)
        for k in range(1, n_vertices):
            parent[order[k]] = order[rng.integers(k)]
        tree = Tree(tuple(f"t{i}" for i in range(n_taxa)), parent, rng.exponential(scale, n_vertices))
        if dangling or (tree.degree[n_taxa:] > 1).all():
            return tree


def random_patterns(taxa: tuple[str, ...], n_patterns: int, rng: np.random.Generator, ambiguous: bool = True) -> SitePatterns:
    """Patterns with single bases, all IUPAC sets and missing data, and counts that are not all one."""
    n = len(taxa)
    codes = 1 << rng.integers(4, size=(n, n_patterns))
    if ambiguous:
        codes = np.where(rng.random(codes.shape) < 0.3, rng.integers(1, 16, size=codes.shape), codes)
    counts = rng.integers(1, 6, size=n_patterns).astype(float)
    return SitePatterns(taxa, codes.astype(np.uint8), counts, np.repeat(np.arange(n_patterns), counts.astype(int)))


def interchanges(tree: Tree) -> Iterator[Tree]:
    """All 2(n - 3) nearest-neighbour interchanges: a child changes places with its parent's sister."""
    rooted = tree.rerooted(0)
    for v in range(tree.n_taxa, tree.n_vertices):
        above = int(rooted.parent[v])
        if above < tree.n_taxa:
            continue
        (sister,) = (c for c in rooted.children[above] if c != v)
        for c in rooted.children[v]:
            parent = rooted.parent.copy()
            parent[c], parent[sister] = above, v
            yield Tree(tree.taxa, parent, rooted.length)


def interpret(monkeypatch, *modules) -> None:
    """Replace every compiled function of the modules by the plain Python it was made from."""
    for module in modules:
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)


def branch_lengths(tree: Tree) -> dict[int, float]:
    """Length of each split of an unrooted tree; branches around vertices of degree two are added up."""
    everything = (1 << tree.n_taxa) - 1
    total: dict[int, float] = {}
    for split, length in zip(tree.splits, tree.length.tolist()):
        if 0 < split < everything:
            total[split] = total.get(split, 0.0) + length
    return total
