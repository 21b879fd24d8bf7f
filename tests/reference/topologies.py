"""All unrooted binary topologies as binary arrays, and the subsplit law written down with sets (an oracle)."""

import numpy as np
from reference.exact import Edges, unrooted_topologies

from vaiphy.trees.sample import binary_arrays, parents_of
from vaiphy.trees.tree import Tree

Clade = frozenset[int]
Subsplit = frozenset[Clade]


def names(n_taxa: int) -> tuple[str, ...]:
    return tuple(f"t{i}" for i in range(n_taxa))


def tree_of_edges(edges: Edges, n_taxa: int) -> Tree:
    """The tree with these edges, rooted at leaf 0, branches of length 0.1."""
    n_vertices = 2 * n_taxa - 2
    return Tree(names(n_taxa), parents_of_edges(edges, n_vertices), np.full(n_vertices, 0.1))


def parents_of_edges(edges: Edges, n_vertices: int, root: int = 0) -> np.ndarray:
    """The tree with these edges as an array of parents, -1 for the root."""
    around: dict[int, list[int]] = {}
    for i, j in edges:
        around.setdefault(i, []).append(j)
        around.setdefault(j, []).append(i)
    parent = np.full(n_vertices, -1, dtype=np.int32)
    waiting = [root]
    for v in waiting:
        for w in around.get(v, ()):
            if w != parent[v]:
                parent[w] = v
                waiting.append(w)
    return parent


def all_children(n_taxa: int) -> np.ndarray:
    """Binary arrays of all (2n - 5)!! topologies, in the order of `exact.unrooted_topologies`."""
    return np.array([binary_arrays(tree_of_edges(edges, n_taxa))[0] for edges in unrooted_topologies(n_taxa)])


def tree_of(children: np.ndarray, lengths: np.ndarray | None = None) -> Tree:
    """The Tree of binary arrays."""
    n_taxa = len(children) + 2
    return Tree(names(n_taxa), parents_of(children), np.full(2 * n_taxa - 2, 0.1) if lengths is None else lengths)


def subsplits(children: np.ndarray) -> list[tuple[Clade, Clade, Subsplit]]:
    """Clade, sister (empty at the top) and split of every clade with three or more taxa."""
    n = len(children) + 2
    clades = [frozenset([v]) for v in range(n)]
    for a, b in children.tolist():
        clades.append(clades[a] | clades[b])
    sister = {2 * n - 3: frozenset()}
    for a, b in children.tolist():
        sister[a], sister[b] = clades[b], clades[a]
    rows = ((n + k, clades[a], clades[b]) for k, (a, b) in enumerate(children.tolist()))
    return [(clades[v], sister[v], frozenset([x, y])) for v, x, y in rows if len(clades[v]) > 2]


class SlowSubsplitLaw:
    """The law as the documentation states it, with dictionaries of sets."""

    def __init__(self, trees: np.ndarray, weights: np.ndarray, floor: float, sharing: float, recombined: float) -> None:
        self.floor, self.sharing, self.recombined = floor, sharing, recombined
        n = trees.shape[1] + 2
        total = float(weights.sum())
        self.pairs: dict[tuple[Clade, Clade], dict[Subsplit, float]] = {}
        self.clades: dict[Clade, dict[Subsplit, float]] = {}
        self.frequency = {frozenset([v]): 1.0 for v in range(1, n)}
        for tree, weight in zip(trees, weights.tolist()):
            if weight > 0:
                for clade, sister, split in subsplits(tree):
                    for table in (self.pairs.setdefault((clade, sister), {}), self.clades.setdefault(clade, {})):
                        table[split] = table.get(split, 0.0) + weight
                    for side in split:
                        if len(side) > 1:
                            self.frequency[side] = self.frequency.get(side, 0.0) + weight / total

    def by_clade(self, clade: Clade, split: Subsplit) -> float:
        seen = self.clades[clade]
        recombined = {
            frozenset([side, clade - side]): frequency * self.frequency[clade - side]
            for side, frequency in self.frequency.items()
            if side < clade and clade - side in self.frequency
        }
        fresh = recombined.get(split, 0.0) / sum(recombined.values())
        return (1 - self.recombined) * seen.get(split, 0.0) / sum(seen.values()) + self.recombined * fresh

    def density(self, tree: np.ndarray) -> float:
        density = 1.0
        for clade, sister, split in subsplits(tree):
            uniform = 1.0 / (2 ** (len(clade) - 1) - 1)
            if clade not in self.clades:
                density *= uniform
                continue
            learned = self.by_clade(clade, split)
            if (clade, sister) in self.pairs:
                seen = self.pairs[clade, sister]
                share = sum(seen.values()) / (sum(seen.values()) + self.sharing)
                learned = share * seen.get(split, 0.0) / sum(seen.values()) + (1 - share) * learned
            density *= (1 - self.floor) * learned + self.floor * uniform
        return density
