"""A law over unrooted binary topologies: the subsplit Bayesian network, rooted at leaf 0.

From leaf 0 downwards every clade of three or more taxa is split in two, with a probability that depends on the clade and on
its sister. Four sources are mixed: what was seen of this clade beside this sister; what was seen of this clade beside any
sister; with a small weight, all ways to split it into two clades that were seen anywhere, by how often these were; and, with
a tiny one, a fair coin for each taxon, so that every topology has positive probability. All of it is exactly normalised:
log-densities sum to one over the (2n - 5)!! topologies.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import subsplit as kernels
from vaiphy.kernels.binary import taxon_keys

#: Clades rarer than this (relative to the most frequent), or beyond this many, are not recombined; nor are more splits listed.
RARE, MOST_CLADES, MOST_SPLITS = 1e-5, 4000, 400_000


@dataclass(frozen=True)
class Table:
    """Subsplits sorted by key; see `kernels.subsplit`. `total` is the weight seen of each key."""

    keys: NDArray[np.uint64]
    start: NDArray[np.int64]
    child: NDArray[np.uint64]
    probability: NDArray[np.float64]
    bits: NDArray[np.uint64]
    total: NDArray[np.float64]


@dataclass(frozen=True)
class SubsplitLaw:
    """Sample topologies with their log-density; log-density of given topologies. Built by `fit`."""

    n_taxa: int
    pairs: Table
    pair_share: NDArray[np.float64]
    clades: Table
    floor: float

    def to_arrays(self) -> dict[str, NDArray]:
        """The law as plain arrays, for `from_arrays`."""
        arrays: dict[str, NDArray] = {"size": np.array([self.n_taxa]), "floor": np.array([self.floor]), "share": self.pair_share}
        for prefix, table in (("pair", self.pairs), ("clade", self.clades)):
            arrays.update({f"{prefix}_{field.name}": getattr(table, field.name) for field in fields(table)})
        return arrays

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray]) -> "SubsplitLaw":
        pairs, clades = (Table(*(arrays[f"{prefix}_{field.name}"] for field in fields(Table))) for prefix in ("pair", "clade"))
        return cls(int(arrays["size"][0]), pairs, arrays["share"], clades, float(arrays["floor"][0]))

    def sample(self, n: int, rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int32]]:
        """n topologies (n, n_taxa - 2, 2), their log-densities, and how many of each one's splits came from the floor."""
        children = np.empty((n, self.n_taxa - 2, 2), dtype=np.int32)
        log_q, n_floor = np.empty(n), np.empty(n, dtype=np.int32)
        p, c = self.pairs, self.clades
        kernels.sample(
            rng, taxon_keys(self.n_taxa), p.keys, p.start, self.pair_share, p.child, p.probability, p.bits,
            c.keys, c.start, c.child, c.probability, c.bits, self.floor, children, log_q, n_floor,
        )  # fmt: skip
        return children, log_q, n_floor

    def log_density(self, children: NDArray[np.int32]) -> NDArray[np.float64]:
        """Log-probability of each topology."""
        out = np.empty(len(children))
        p, c = self.pairs, self.clades
        kernels.log_density(
            children, taxon_keys(self.n_taxa), np.empty(2 * self.n_taxa - 2, dtype=np.int32), p.keys, p.start, self.pair_share,
            p.child, p.probability, c.keys, c.start, c.child, c.probability, self.floor, out,
        )  # fmt: skip
        return out


def fit(
    children: NDArray[np.int32],
    weights: NDArray[np.float64],
    floor: float = 1e-4,
    sharing: float = 10.0,
    recombined: float = 0.02,
) -> SubsplitLaw:
    """The law with the weighted frequencies of the given trees.

    `weights` are counts of trees: where a pair of clade and sister has been seen with weight N, its own frequencies get the
    share N/(N + sharing) and those of the clade beside any sister the rest; of these, a share `recombined` goes to all splits
    into known clades.
    """
    seen = weights > 0.0
    children, weights = np.ascontiguousarray(children[seen]), weights[seen]
    n_trees, n_inner, _ = children.shape
    n_taxa = n_inner + 2
    size = n_trees * n_inner
    pair, clade, child = (np.empty(size, dtype=np.uint64) for _ in range(3))
    bits = np.empty((size, (n_taxa + 63) // 64), dtype=np.uint64)
    weight = np.empty(size)
    n_rows = kernels.extract(children, taxon_keys(n_taxa), weights, pair, clade, child, bits, weight)
    used = slice(0, n_rows)
    pairs = _table(pair[used], child[used], bits[used], weight[used])
    clades = _with_recombined(_table(clade[used], child[used], bits[used], weight[used]), n_taxa, recombined)
    return SubsplitLaw(n_taxa, pairs, pairs.total / (pairs.total + sharing), clades, floor)


def _with_recombined(seen: Table, n_taxa: int, share: float) -> Table:
    """The table by clade with the share given to all splits into two known clades.

    Only clades that make up a noticeable part of the weight take part, the most frequent ones if there are very many: the
    cost is quadratic.
    """
    if share <= 0.0 or not len(seen.keys):
        return seen
    hashes, bits, weight = _known_clades(seen, n_taxa)
    total = weight.max()
    limit = max(total * RARE, np.sort(weight)[-MOST_CLADES] if len(weight) > MOST_CLADES else 0.0)
    chosen = weight >= limit
    hashes, bits, weight = hashes[chosen], np.ascontiguousarray(bits[chosen]), weight[chosen] / total
    sizes = np.bitwise_count(bits).sum(axis=1).astype(np.int64)
    parents = np.flatnonzero((sizes >= 3) & np.isin(hashes, seen.keys))
    out_parent, out_child = np.empty(MOST_SPLITS, dtype=np.int64), np.empty(MOST_SPLITS, dtype=np.int64)
    out_weight = np.empty(MOST_SPLITS)
    n = kernels.recombine(hashes, bits, sizes, weight, parents, out_parent, out_child, out_weight)
    parent, child, product = out_parent[:n], out_child[:n], out_weight[:n]
    per_parent = np.bincount(parent, weights=product, minlength=len(hashes))
    scale = seen.total[np.searchsorted(seen.keys, hashes[parent])] * share / (1.0 - share)
    product = product / per_parent[parent] * scale
    small = np.minimum(hashes[child], hashes[parent] ^ hashes[child])
    side = np.where((small == hashes[child])[:, None], bits[child], bits[parent] & ~bits[child])
    seen_key = np.repeat(seen.keys, np.diff(seen.start))
    seen_weight = seen.probability * np.repeat(seen.total, np.diff(seen.start))
    return _table(
        np.concatenate([seen_key, hashes[parent]]),
        np.concatenate([seen.child, small]),
        np.concatenate([seen.bits, side]),
        np.concatenate([seen_weight, product]),
    )


def _known_clades(seen: Table, n_taxa: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.float64]]:
    """All clades that occur (single taxa too), sorted by hash: hash, bits and summed weight."""
    words = seen.bits.shape[1]
    keys = taxon_keys(n_taxa)
    key = np.repeat(seen.keys, np.diff(seen.start))
    weight = seen.probability * np.repeat(seen.total, np.diff(seen.start))
    everything = np.zeros((1, words), dtype=np.uint64)
    singles = np.zeros((n_taxa - 1, words), dtype=np.uint64)
    for taxon in range(1, n_taxa):
        singles[taxon - 1, taxon >> 6] = np.uint64(1) << np.uint64(taxon & 63)
        everything |= singles[taxon - 1]
    top = np.bitwise_xor.reduce(keys[1:n_taxa])
    # The bits of a clade are known where it is a child; those of the other child follow from its parent, from the top down.
    heavy = float(seen.total[np.searchsorted(seen.keys, top)])
    hashes = np.concatenate([seen.child, keys[1:n_taxa], np.array([top])])
    bits = np.concatenate([seen.bits, singles, everything])
    weights = np.concatenate([weight, np.full(n_taxa - 1, heavy), np.array([heavy])])
    other = key ^ seen.child
    known, first = np.unique(hashes, return_index=True)
    pending = np.arange(len(key))
    while len(pending):
        place = np.minimum(np.searchsorted(known, key[pending]), len(known) - 1)
        solved = known[place] == key[pending]
        if not solved.any():
            break
        rows = pending[solved]
        hashes = np.concatenate([hashes, other[rows]])
        bits = np.concatenate([bits, bits[first[place[solved]]] & ~seen.bits[rows]])
        weights = np.concatenate([weights, weight[rows]])
        known, first = np.unique(hashes, return_index=True)
        pending = pending[~solved]
    _, inverse = np.unique(hashes, return_inverse=True)
    summed = np.bincount(inverse.ravel(), weights=weights)
    return known, bits[first], np.minimum(summed, heavy)


def _table(key: NDArray[np.uint64], child: NDArray[np.uint64], bits: NDArray[np.uint64], weight: NDArray[np.float64]) -> Table:
    """Sum the weights of equal (key, child) and normalise within each key."""
    order = np.lexsort((child, key))
    key, child = key[order], child[order]
    new_row = np.ones(len(key), dtype=bool)
    new_row[1:] = (key[1:] != key[:-1]) | (child[1:] != child[:-1])
    rows = np.flatnonzero(new_row)
    sums = np.add.reduceat(weight[order], rows) if len(rows) else np.zeros(0)
    row_key = key[rows]
    new_key = np.ones(len(rows), dtype=bool)
    new_key[1:] = row_key[1:] != row_key[:-1]
    first = np.flatnonzero(new_key)
    start = np.append(first, len(rows)).astype(np.int64)
    total = np.add.reduceat(sums, first) if len(first) else np.zeros(0)
    probability = sums / np.repeat(total, np.diff(start))
    return Table(row_key[first], start, child[rows], probability, np.ascontiguousarray(bits[order][rows]), total)
