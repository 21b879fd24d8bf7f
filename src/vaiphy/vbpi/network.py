"""The support of the tree distribution: all subsplits of given trees as tables that can be walked (Zhang and Matsen 2018).

Trees are rooted at taxon 0. A row is a clade beside its sister, an entry a way to split it; the probability of a tree is the
product of its entries' conditional probabilities. A row has every split of its clade that was seen beside any sister: any tree
whose clades are all split as in some given tree can be drawn.
Branches have numbers by which they find their parameters: one of the split, one each of the primary subsplit pairs below and
above it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import binary, subsplits

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Network:
    """The tables, as `kernels.subsplits` reads them.

    `start` (rows + 1): entries of each row; `row_of`, `below`, `split_of`, `down_of`, `up_of`: by entry, its row, the rows of its
    two halves, the number of its clade's split and of the subsplit pairs below its branch and above those of its halves;
    `taxon_split` (n,): numbers of the taxa's own splits. Numbers run from 0 to `n_numbers` - 1; the last two stand for
    "nothing below" (a taxon's branch) and "nothing above" (that of taxon 0). `seen` counts how often each entry occurred, a
    tree of average weight once; `splits` are the hashes of the clades, ascending: split number i is the clade splits[i].
    """

    n_taxa: int
    start: Ints
    row_of: Ints
    below: Ints
    split_of: Ints
    down_of: Ints
    up_of: Ints
    taxon_split: Ints
    n_numbers: int
    seen: Floats
    splits: NDArray[np.uint64]

    @property
    def n_entries(self) -> int:
        return len(self.row_of)

    @property
    def n_branches(self) -> int:
        return 2 * self.n_taxa - 3

    def probabilities(self, logits: NDArray) -> tuple[Floats, Floats]:
        """Conditional probabilities of all entries and their logarithms."""
        probability, log_probability = np.empty(self.n_entries), np.empty(self.n_entries)
        subsplits.normalise(self.start, logits, probability, log_probability)
        return probability, log_probability


@dataclass(frozen=True, eq=False)
class Topologies:
    """Drawn trees: binary arrays, the entries of their vertices, log-probabilities, and the numbers of their branches.

    `numbers[t, v - 1]` are the three numbers of the branch above vertex v.
    """

    children: NDArray[np.int32]
    chosen: Ints
    log_q: Floats
    numbers: Ints


def draw(network: Network, probability: Floats, log_probability: Floats, n_trees: int, rng: np.random.Generator) -> Topologies:
    """Independent trees from the distribution with these conditional probabilities."""
    n = network.n_taxa
    chosen = np.empty((n_trees, n - 2), dtype=np.int64)
    return _walked(network, probability, log_probability, rng.random((n_trees, n - 2)), chosen)


def replay(network: Network, log_probability: Floats, chosen: Ints) -> Topologies:
    """The trees with the given entries."""
    return _walked(network, log_probability, log_probability, np.empty((0, 0)), chosen)


def _walked(network: Network, probability: Floats, log_probability: Floats, uniforms: Floats, chosen: Ints) -> Topologies:
    n_trees, n = len(chosen), network.n_taxa
    children, log_q = np.empty((n_trees, n - 2, 2), dtype=np.int32), np.empty(n_trees)
    subsplits.draw(network.start, network.below, probability, log_probability, uniforms, chosen, children, log_q)
    numbers = np.empty((n_trees, 2 * n - 3, 3), dtype=np.int64)
    last = network.n_numbers
    subsplits.identify(
        children, chosen, network.split_of, network.down_of, network.up_of, network.taxon_split, last - 2, last - 1, numbers
    )
    return Topologies(children, chosen, log_q, numbers)


def split_numbers(network: Network, trees: NDArray[np.int32]) -> Ints:
    """Numbers of the splits of trees that the network was made from, (T, 2n-3), by vertex from 1 on."""
    return np.searchsorted(network.splits, clades_of(trees)[:, 1:]).astype(np.int64)


def clades_of(trees: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Hashes of the clades below all vertices, (T, 2n-2)."""
    n = trees.shape[1] + 2
    clades = np.empty((len(trees), 2 * n - 2), dtype=np.uint64)
    subsplits.clade_hashes(trees, binary.taxon_keys(n), clades)
    return clades


def network_of(trees: NDArray[np.int32], weights: Floats | None = None) -> Network:
    """The network of topologies given as binary arrays (T, n-2, 2), n at least 3; `weights` (T,) sum to one."""
    n = trees.shape[1] + 2
    clades = clades_of(trees)
    rows = np.arange(len(trees))[:, None]
    halves = [clades[rows, trees[:, :, side]] for side in range(2)]
    sister = np.full_like(clades, clades[0, 0])
    for side in range(2):
        sister[rows, trees[:, :, side]] = halves[1 - side]
    low, high = np.minimum(*halves), np.maximum(*halves)
    table = np.stack([clades[:, n:], sister[:, n:], low, high], axis=-1).reshape(-1, 4)
    shares = np.full(len(trees), 1.0) if weights is None else weights * len(trees)
    found, place_of = np.unique(table, axis=0, return_inverse=True)
    times = np.bincount(place_of.ravel(), weights=np.repeat(shares, n - 2)).astype(np.float64)
    entries, seen = _completed(found, times)
    # The clade of all taxa but 0 has no sister but taxon 0: its row comes first.
    top = clades[0, 2 * n - 3]
    order = np.argsort(entries[:, 0] != top, kind="stable")
    entries, seen = entries[order], seen[order]
    fresh = np.ones(len(entries), dtype=bool)
    fresh[1:] = (entries[1:, :2] != entries[:-1, :2]).any(axis=1)
    row_of = np.cumsum(fresh) - 1
    place = {(clade, other): row for row, (clade, other) in enumerate(entries[fresh, :2].tolist())}
    taxon = {key: v for v, key in enumerate(clades[0, :n].tolist())}

    def half(clade: int, other: int) -> int:
        return -1 - taxon[clade] if clade in taxon else place[clade, other]

    below = np.array([[half(a, b), half(b, a)] for a, b in entries[:, 2:].tolist()], dtype=np.int64)
    splits = np.unique(np.concatenate([entries[:, 0], clades[0, 1:n]]))
    down, down_of = np.unique(entries[:, [0, 2, 3]], axis=0, return_inverse=True)
    pairs = np.concatenate([entries[:, 2:], entries[:, :1:-1]])
    up, up_of = np.unique(pairs, axis=0, return_inverse=True)
    first_down, first_up = len(splits), len(splits) + len(down)
    taxon_split = np.zeros(n, dtype=np.int64)
    taxon_split[1:] = np.searchsorted(splits, clades[0, 1:n])
    return Network(
        n,
        np.append(np.flatnonzero(fresh), len(entries)).astype(np.int64),
        row_of.astype(np.int64),
        below,
        np.searchsorted(splits, entries[:, 0]).astype(np.int64),
        first_down + down_of.ravel().astype(np.int64),
        first_up + np.ascontiguousarray(up_of.ravel().reshape(2, -1).T).astype(np.int64),
        taxon_split,
        first_up + len(up) + 2,
        seen,
        splits,
    )


def _completed(entries: NDArray[np.uint64], times: Floats) -> tuple[NDArray[np.uint64], Floats]:
    """Entries (clade, sister, two halves), ascending, with those that were seen beside other sisters only, and their counts.

    All splits of a clade together count as one more tree, so that a split not seen beside this sister has less than one.
    """
    pairs = np.unique(entries[:, :2], axis=0)
    splits, place = np.unique(entries[:, [0, 2, 3]], axis=0, return_inverse=True)
    total = np.bincount(place.ravel(), weights=times)
    first, last = (np.searchsorted(splits[:, 0], pairs[:, 0], side=side) for side in ("left", "right"))
    row = np.repeat(np.arange(len(pairs)), last - first)
    split = np.concatenate([np.arange(a, b) for a, b in zip(first.tolist(), last.tolist())])
    full = np.column_stack([pairs[row], splits[split, 1:]])
    seen = total[split] / np.repeat([total[a:b].sum() for a, b in zip(first.tolist(), last.tolist())], last - first)
    known = dict(zip(map(tuple, entries.tolist()), times.tolist()))
    return full, seen + np.array([known.get(entry, 0) for entry in map(tuple, full.tolist())], dtype=np.float64)
