"""Random unrooted binary trees by adding one taxon after another to a random branch (uniform over topologies)."""

import numpy as np

from vaiphy.trees.tree import Tree


def random_binary_tree(n: int, rng: np.random.Generator, taxa: tuple[str, ...] | None = None, rate: float = 10.0) -> Tree:
    """A uniformly random unrooted binary topology with Exp(rate) branch lengths, rooted at an internal vertex."""
    parent = {0: n, 1: n, 2: n, n: -1}
    for leaf in range(3, n):
        below = int(rng.choice(sorted(v for v in parent if parent[v] >= 0)))
        middle = n + leaf - 2
        parent[middle], parent[below], parent[leaf] = parent[below], middle, middle
    size = 2 * n - 2
    names = taxa or tuple(f"t{i + 1}" for i in range(n))
    return Tree(names, np.array([parent[v] for v in range(size)]), rng.exponential(1 / rate, size))
