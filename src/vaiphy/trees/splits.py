"""Weighted trees as splits: the common form of our own samples and of anybody's tree files.

An unrooted tree on n taxa has at most 2n - 3 branches, and each branch is a split. A sample is therefore two tables
with 2n - 3 columns: which splits a topology has, and how long the branches of a tree are.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Split, Tree, TreeError, from_splits, with_taxa
from vaiphy.weights import effective_size


@dataclass(frozen=True, eq=False)
class SplitSample:
    """Weighted unrooted trees over `taxa`, binary or not.

    `splits` are the distinct splits, trivial ones included; `members` (n_topologies, 2n-3) int32 the splits of each
    distinct topology, ascending, -1 behind the last; `topology` (n_samples,) the topology of each tree; `lengths`
    (n_samples, 2n-3) float64 its branch lengths in the order of `members` (NaN where unknown or absent); `weights` sum
    to one; `replicate` is the run or file a tree comes from; `replicate_weights` sum to one within each replicate.
    """

    taxa: tuple[str, ...]
    splits: tuple[Split, ...]
    members: NDArray[np.int32]
    topology: NDArray[np.int32]
    lengths: NDArray[np.float64]
    weights: NDArray[np.float64]
    replicate: NDArray[np.int32]
    replicate_weights: NDArray[np.float64]

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_samples(self) -> int:
        return len(self.topology)

    @property
    def n_replicates(self) -> int:
        return int(self.replicate.max(initial=-1)) + 1

    @property
    def effective_size(self) -> float:
        """Kish's effective sample size."""
        return effective_size(self.weights)

    @cached_property
    def trivial(self) -> NDArray[np.bool_]:
        """Which splits cut off a single taxon."""
        return np.array([min(s.bit_count(), self.n_taxa - s.bit_count()) < 2 for s in self.splits], dtype=bool)

    @cached_property
    def topology_weights(self) -> NDArray[np.float64]:
        return _totals(self.topology, self.weights, len(self.members))

    def support(self, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Total weight of the trees that have each split (`weights` per topology, default: the sample's)."""
        per_topology = self.topology_weights if weights is None else weights
        filled = self.members >= 0
        spread = np.broadcast_to(per_topology[:, None], self.members.shape)[filled]
        return _totals(self.members[filled], spread, len(self.splits))

    def replicate_support(self) -> NDArray[np.float64]:
        """Support of each split within each replicate, shape (n_replicates, n_splits)."""
        rows = []
        for r in range(self.n_replicates):
            chosen = self.replicate == r
            rows.append(self.support(_totals(self.topology[chosen], self.replicate_weights[chosen], len(self.members))))
        return np.array(rows).reshape(self.n_replicates, len(self.splits))

    def tree(self, sample: int) -> Tree:
        """One tree of the sample."""
        row = self.members[self.topology[sample]]
        return from_splits(self.taxa, {self.splits[s]: float(b) for s, b in zip(row, self.lengths[sample]) if s >= 0})


def from_sample(sample: TreeSample) -> SplitSample:
    """The splits of a sample of binary trees; topologies written in two ways are recognised as one."""
    n = sample.n_taxa
    splits, members = _clades(sample.children)
    order = np.argsort(members, axis=1, kind="stable")
    members = np.take_along_axis(members, order, axis=1)
    members, merged = np.unique(members, axis=0, return_inverse=True)
    lengths = np.take_along_axis(sample.lengths[:, 1:], order[sample.topology], axis=1)
    return SplitSample(
        sample.taxa,
        splits,
        members.astype(np.int32).reshape(-1, 2 * n - 3),
        merged.ravel()[sample.topology].astype(np.int32),
        lengths,
        sample.weights,
        sample.replicate,
        sample.replicate_weights,
    )


def from_trees(
    trees: Iterable[Tree], weights: Sequence[float] | None = None, replicate: Sequence[int] | None = None
) -> SplitSample:
    """Trees of any kind on the same taxa, in any taxon order, with any root; equal weights unless given."""
    taxa: tuple[str, ...] = ()
    number: dict[Split, int] = {}
    topologies: dict[tuple[int, ...], int] = {}
    topology, lengths = [], []
    for tree in trees:
        taxa = taxa or tree.taxa
        branches: dict[int, float] = {}
        for split, length in _branches(tree if tree.taxa == taxa else with_taxa(tree, taxa)):
            k = number.setdefault(split, len(number))
            branches[k] = branches.get(k, 0.0) + length
        row = sorted(branches.items())
        topology.append(topologies.setdefault(tuple(s for s, _ in row), len(topologies)))
        lengths.append([length for _, length in row])
    if not topology:
        raise TreeError("no trees")
    width = 2 * len(taxa) - 3
    raw = np.ones(len(topology)) if weights is None else np.asarray(weights, dtype=np.float64)
    if len(raw) != len(topology) or not np.isfinite(raw).all() or raw.min() < 0 or raw.sum() <= 0:
        raise TreeError("tree weights must be one non-negative number for each tree, not all zero")
    runs = np.zeros(len(topology), np.int32) if replicate is None else np.asarray(replicate, dtype=np.int32)
    return SplitSample(
        taxa,
        tuple(number),
        _padded(list(topologies), width, -1, np.int32),
        np.array(topology, dtype=np.int32),
        _padded(lengths, width, np.nan, np.float64),
        raw / raw.sum(),
        runs,
        raw / np.maximum(np.bincount(runs, weights=raw), 1e-300)[runs],
    )


def joined(samples: Sequence[SplitSample]) -> SplitSample:
    """Several samples on the same taxa as one, each with the same total weight and its own replicate numbers."""
    if len(samples) == 1:
        return samples[0]
    taxa = samples[0].taxa
    number: dict[Split, int] = {}
    members, topology, replicate, topologies, runs = [], [], [], 0, 0
    for sample in samples:
        if sample.taxa != taxa:
            raise TreeError("the samples are not on the same taxa in the same order")
        table = np.array([number.setdefault(split, len(number)) for split in sample.splits] + [-1], dtype=np.int32)
        members.append(table[sample.members])
        topology.append(sample.topology + topologies)
        replicate.append(sample.replicate + runs)
        topologies += len(sample.members)
        runs += sample.n_replicates
    stacked = np.concatenate(members)
    key = np.where(stacked < 0, len(number), stacked)  # so that padding sorts to the end
    order = np.argsort(key, axis=1, kind="stable")
    rows, merged = np.unique(np.take_along_axis(key, order, axis=1), axis=0, return_inverse=True)
    which = np.concatenate(topology)
    return SplitSample(
        taxa,
        tuple(number),
        np.where(rows == len(number), -1, rows).astype(np.int32),
        merged.ravel()[which].astype(np.int32),
        np.take_along_axis(np.concatenate([s.lengths for s in samples]), order[which], axis=1),
        np.concatenate([s.weights for s in samples]) / len(samples),
        np.concatenate(replicate).astype(np.int32),
        np.concatenate([s.replicate_weights for s in samples]),
    )


def _branches(tree: Tree) -> Iterator[tuple[Split, float]]:
    """Split and length of each branch that divides the taxa; a split occurs twice where a vertex has degree two."""
    everything = (1 << tree.n_taxa) - 1
    lengths = tree.length.tolist()
    return ((split, lengths[vertex]) for vertex, split in enumerate(tree.splits) if 0 < split < everything)


def _clades(children: NDArray[np.int32]) -> tuple[tuple[Split, ...], NDArray[np.int64]]:
    """Distinct splits of binary topologies, and the number of the split above each vertex but leaf 0."""
    count, n = len(children), children.shape[1] + 2
    words = (n + 63) // 64
    clade = np.zeros((count, 2 * n - 2, words), dtype=np.uint64)
    for leaf in range(n):
        clade[:, leaf, leaf // 64] = np.uint64(1) << np.uint64(leaf % 64)
    rows = np.arange(count)
    for k in range(n - 2):
        clade[:, n + k] = clade[rows, children[:, k, 0]] | clade[rows, children[:, k, 1]]
    flat = clade[:, 1:].reshape(-1, words)
    # Equal clades have equal hashes; that different clades never share one is checked, not assumed.
    odd = np.random.default_rng(0).integers(1, 2**63, size=words, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = flat * odd
    key = np.bitwise_xor.reduce(mixed ^ (mixed >> np.uint64(29)), axis=1) if words > 1 else flat[:, 0]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    if not (flat[first][inverse] == flat).all():
        _, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    splits = tuple(int.from_bytes(row.astype("<u8").tobytes(), "little") for row in flat[first])
    return splits, inverse.reshape(count, 2 * n - 3)


def _totals(index: NDArray[np.int32], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.bincount(index, weights=weights, minlength=size).astype(np.float64, copy=False)


def _padded(rows: Sequence[Sequence[float]], width: int, fill: float, dtype: type) -> NDArray:
    table: NDArray = np.full((len(rows), width), fill, dtype=dtype)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return table
