"""Trees as arrays.

One class serves multifurcating trees with labelled internal vertices (of any degree, one and two included) and binary
trees. Vertices 0..n_taxa-1 carry the taxa; the others are internal. Any vertex may be the root, also a taxon.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vaiphy.errors import InputError

Split = int
"""A bipartition of the taxa as a bit set: bit i for taxon i, of the side that does not hold taxon 0."""


class TreeError(InputError):
    """The arrays or the text do not describe a tree."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree over `taxa`.

    `parent[v]` is the vertex above v (-1 at the root) and `length[v]` the length of the branch between them, in
    expected substitutions per site (NaN where unknown; ignored at the root). `labels[v]` names a vertex ("" if it has no
    name; taxa carry their own), `support[v]` is the support of the branch above v (NaN if none) and `comments[v]` what
    stood in square brackets behind it (several comments are joined by "][").
    """

    taxa: tuple[str, ...]
    parent: NDArray[np.int32]
    length: NDArray[np.float64]
    labels: tuple[str, ...] | None = None
    support: NDArray[np.float64] | None = None
    comments: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent", np.ascontiguousarray(self.parent, dtype=np.int32))
        object.__setattr__(self, "length", np.ascontiguousarray(self.length, dtype=np.float64))
        if len(self.parent) != len(self.length):
            raise TreeError("parent and length differ in size")
        if len(self.parent) < len(self.taxa):
            raise TreeError("fewer vertices than taxa")
        if np.count_nonzero(self.parent < 0) != 1:
            raise TreeError("a tree has exactly one root")
        if self.parent.max() >= len(self.parent):
            raise TreeError("a parent is not a vertex of the tree")
        # Every vertex reaches the root by steps of 1, 2, 4, ... up; a cycle does not.
        up = np.where(self.parent < 0, np.arange(len(self.parent)), self.parent)
        for _ in range(len(up).bit_length()):
            up = up[up]
        if (up != up[0]).any():
            raise TreeError("the tree is not connected")

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_vertices(self) -> int:
        return len(self.parent)

    @cached_property
    def root(self) -> int:
        return int(np.flatnonzero(self.parent < 0)[0])

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Children of each vertex, ascending."""
        below: list[list[int]] = [[] for _ in range(self.n_vertices)]
        for vertex, above in enumerate(self.parent.tolist()):
            if above >= 0:
                below[above].append(vertex)
        return tuple(map(tuple, below))

    @cached_property
    def postorder(self) -> NDArray[np.int32]:
        """All vertices, children before parents, the root last."""
        order, stack = [], [self.root]
        children = self.children
        while stack:
            vertex = stack.pop()
            order.append(vertex)
            stack.extend(children[vertex])
        return np.array(order[::-1], dtype=np.int32)

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """Number of branches at each vertex."""
        degree = np.array([len(below) for below in self.children], dtype=np.int64)
        degree[self.parent >= 0] += 1
        return degree

    @property
    def is_binary(self) -> bool:
        """Unrooted binary: taxa of degree one, all other vertices of degree three."""
        return bool((self.degree[: self.n_taxa] == 1).all() and (self.degree[self.n_taxa :] == 3).all())

    def edges(self) -> Iterator[tuple[int, int]]:
        """(vertex, parent) of each branch."""
        for vertex, above in enumerate(self.parent.tolist()):
            if above >= 0:
                yield vertex, above

    def name(self, vertex: int) -> str:
        """The taxon or label of a vertex, "" if it has none."""
        if vertex < self.n_taxa:
            return self.taxa[vertex]
        return self.labels[vertex] if self.labels is not None else ""

    @cached_property
    def clades(self) -> tuple[int, ...]:
        """Bit set of the taxa at or below each vertex, for the root the tree has."""
        below = [1 << v if v < self.n_taxa else 0 for v in range(self.n_vertices)]
        for vertex in self.postorder.tolist():
            above = self.parent[vertex]
            if above >= 0:
                below[above] |= below[vertex]
        return tuple(below)

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """The split above each vertex, as the side without taxon 0 (0 at the root and above dangling parts)."""
        everything = (1 << self.n_taxa) - 1
        sides = []
        for vertex, clade in enumerate(self.clades):
            side = everything ^ clade if clade & 1 else clade
            sides.append(0 if vertex == self.root else side)
        return tuple(sides)

    @cached_property
    def topology(self) -> frozenset[Split]:
        """Non-trivial splits: equal exactly when two unrooted topologies on the same taxa are equal."""
        everything = (1 << self.n_taxa) - 1
        return frozenset(s for s in self.splits if s.bit_count() > 1 and (everything ^ s).bit_count() > 1)

    def rerooted(self, vertex: int) -> "Tree":
        """The same unrooted tree with another vertex as the root."""
        parent, length = self.parent.copy(), self.length.copy()
        support = None if self.support is None else self.support.copy()
        path = [vertex]
        while self.parent[path[-1]] >= 0:
            path.append(int(self.parent[path[-1]]))
        for below, above in pairwise(path):
            parent[above], length[above] = below, self.length[below]
            if support is not None and self.support is not None:
                support[above] = self.support[below]
        parent[vertex], length[vertex] = -1, 0.0
        if support is not None:
            support[vertex] = np.nan
        return replace(self, parent=parent, length=length, support=support)

    def with_lengths(self, length: NDArray[np.float64]) -> "Tree":
        return replace(self, length=np.asarray(length, dtype=np.float64))


def taxa_of(split: Split) -> list[int]:
    """Numbers of the taxa in a bit set, ascending.

    >>> taxa_of(0b1101)
    [0, 2, 3]
    """
    return [taxon for taxon, bit in enumerate(bin(split)[:1:-1]) if bit == "1"]


def from_splits(taxa: tuple[str, ...], splits: dict[Split, float]) -> Tree:
    """The tree made of compatible splits (sides without taxon 0), each with its branch length; rooted inside.

    Trivial splits that are missing get length NaN. Raises `TreeError` if two splits are incompatible.
    """
    return replace(from_branches(taxa, ((split, length, np.nan) for split, length in splits.items())), support=None)


def from_branches(taxa: tuple[str, ...], branches: Iterable[tuple[Split, float, float]]) -> Tree:
    """The tree made of branches: split (the side without taxon 0), length and support; as `from_splits`.

    Clades are put together from the small to the large, each from the largest clades there are, so the work grows with
    the number of branches. Branches of taxa have no support.
    """
    n = len(taxa)
    inner, outer = [], [np.nan] * n
    for split, length, support in branches:
        size = split.bit_count()
        if 1 < size < n - 1:
            inner.append((split, length, support))
        elif size:
            outer[split.bit_length() - 1 if size == 1 else 0] = length
    inner.sort(key=lambda branch: -branch[0].bit_count())
    root = n
    parent = np.full(n + 1 + len(inner), -1, dtype=np.int32)
    clade = [1 << t for t in range(n)] + [(1 << n) - 1] + [split for split, *_ in inner]
    largest = list(range(n))  # the largest clade so far whose first taxon this is
    for vertex in range(n + len(inner), root - 1, -1):
        rest, first = clade[vertex], _first(clade[vertex])
        while rest:
            child = largest[_first(rest)]
            if parent[child] >= 0 or clade[child] & ~rest:
                raise TreeError("the splits are not compatible with each other")
            parent[child] = vertex
            rest ^= clade[child]
        largest[first] = vertex
    lengths = np.array([*outer, 0.0, *(length for _, length, _ in inner)])
    supports = np.array([*[np.nan] * (n + 1), *(support for *_, support in inner)])
    return Tree(taxa, parent, lengths, support=supports)


def _first(members: int) -> int:
    return (members & -members).bit_length() - 1


def simplified(tree: Tree) -> Tree:
    """The same unrooted tree for people: dangling internal vertices pruned, those of degree two suppressed.

    Lengths along a suppressed path add up. The root is the vertex next to taxon 0; vertices keep their order.
    """
    if tree.n_taxa < 2:
        return tree
    rooted = tree.rerooted(0)
    parent, length = rooted.parent.copy(), rooted.length.copy()
    support = None if rooted.support is None else rooted.support.copy()
    keep = np.ones(tree.n_vertices, dtype=bool)
    below: list[list[int]] = [list(children) for children in rooted.children]
    for vertex in rooted.postorder.tolist()[:-1]:
        if vertex < tree.n_taxa or len(below[vertex]) > 1:
            continue
        keep[vertex] = False
        above = int(parent[vertex])
        below[above].remove(vertex)
        for child in below[vertex]:
            parent[child] = above
            length[child] += length[vertex]
            below[above].append(child)
            if support is not None and np.isnan(support[child]):
                support[child] = support[vertex]
    kept = _selected(replace(rooted, parent=parent, length=length, support=support), np.flatnonzero(keep), parent)
    neighbours = kept.children[0]
    return kept.rerooted(neighbours[0]) if len(neighbours) == 1 and neighbours[0] >= tree.n_taxa else kept


def with_taxa(tree: Tree, taxa: tuple[str, ...]) -> Tree:
    """The same tree with its taxa in another order. Raises `TreeError` if the names differ."""
    if sorted(taxa) != sorted(tree.taxa):
        raise TreeError("the trees are not on the same taxa")
    where = {taxon: vertex for vertex, taxon in enumerate(tree.taxa)}
    order = [where[taxon] for taxon in taxa] + list(range(tree.n_taxa, tree.n_vertices))
    return replace(_selected(tree, np.array(order, dtype=np.int64), tree.parent), taxa=taxa)


def _selected(tree: Tree, order: NDArray[np.int64], parent: NDArray[np.int32]) -> Tree:
    """The tree with vertex `order[k]` as vertex k; `order` holds all taxa first."""
    new = np.full(tree.n_vertices + 1, -1, dtype=np.int32)
    new[order] = np.arange(len(order))
    return replace(
        tree,
        parent=new[parent[order]],
        length=tree.length[order],
        labels=None if tree.labels is None else tuple(tree.labels[v] for v in order),
        support=None if tree.support is None else tree.support[order],
        comments=None if tree.comments is None else tuple(tree.comments[v] for v in order),
    )
