"""Probabilities of a proposal's splits, from what was seen of them, and the tables that kernels look them up in."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clades
from vaiphy.kernels.constraints import Rules
from vaiphy.kernels.recombined import recombine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Recombined splits with less than this share of their clade's probability are left to the uniform trees.
LEAST_SHARE = 1e-5


@dataclass(frozen=True)
class SplitSmoothing:
    """How far splits that were not seen are trusted.

    `novelty`: draws' worth of a clade's other splits, for each split seen once (where every draw brought a new one, the next
    probably does too; one seen ten times counts a tenth); `context_novelty`: the same in a context. `floor`: the least share that
    they get. A context's other splits are those of the clade; a clade's others are made of clades that were seen (a share of
    `recombined`) or, the rest, as in uniform trees: most of those are bad, but every tree must be possible.
    """

    floor: float = 0.002
    novelty: float = 10.0
    context_novelty: float = 10.0
    recombined: float = 0.98


class Seen(NamedTuple):
    """What `clades.describe` finds in trees."""

    split: NDArray[np.uint64]
    uniform: Floats
    parts: NDArray[np.uint64]
    sets: NDArray[np.uint64]
    standing: Ints
    clade: NDArray[np.uint64]
    context: NDArray[np.uint64]


class SplitLaw(NamedTuple):
    """Log-probabilities (`value`) of splits, of clades and in contexts, in an open-addressing table (`key`).

    For drawing: `head`, the clades and contexts; their splits are `first` up to `last` of `part` (the taxa of the part with the
    lowest one) and `cumulative`; `log_other`: the log-probability of splits that are not among these.
    """

    key: NDArray[np.uint64]
    value: Floats
    head: NDArray[np.uint64]
    first: Ints
    last: Ints
    log_other: Floats
    part: NDArray[np.uint64]
    cumulative: Floats


class Splits(NamedTuple):
    """Distinct (place, split) pairs, sorted by place, and where each place begins.

    `part`: the part with the lowest taxon; `uniform`: probability in a uniform tree; `seen`: draws' worth; `share`: if the clade
    is split into seen clades.
    """

    head: NDArray[np.uint64]
    split: NDArray[np.uint64]
    part: NDArray[np.uint64]
    uniform: Floats
    seen: Floats
    share: Floats
    begins: Ints
    sizes: Ints

    def over_place(self, values: Floats) -> Floats:
        """The sum of the values over the place of each pair."""
        return np.repeat(np.add.reduceat(values, self.begins), self.sizes)


class Recombined(NamedTuple):
    """Splits of seen clades into seen clades: clade, split, the part with the lowest taxon, share of the clade's probability, and
    log-probability in a uniform tree.
    """

    head: NDArray[np.uint64]
    split: NDArray[np.uint64]
    part: NDArray[np.uint64]
    share: Floats
    uniform: Floats


def split_law(rules: Rules, keys: NDArray, log_trees: Floats, seen: Seen, counts: Floats, smoothing: SplitSmoothing) -> SplitLaw:
    """Probabilities of splits from trees as `clades.describe` has them; `counts`: draws' worth of each internal vertex."""
    n, words = seen.split.shape[1] + 2, seen.parts.shape[2]
    clade, context, parts = seen.clade[:, n:].ravel(), seen.context[:, n:].ravel(), seen.parts.reshape(-1, words)
    split, uniform, nothing = seen.split.ravel(), seen.uniform.ravel(), np.zeros(seen.split.size)
    new = _recombined(rules, keys, log_trees, clade, seen.sets.reshape(-1, words), seen.standing, counts)
    alone = splits_of(
        np.concatenate([clade, new.head]), np.concatenate([split, new.split]), np.concatenate([parts, new.part]),
        np.concatenate([uniform, new.uniform]), np.concatenate([counts, np.zeros(len(new.share))]),
        np.concatenate([nothing, new.share]),
    )  # fmt: skip
    within = splits_of(context, split, parts, uniform, counts, nothing)
    # Of a clade: as seen, shrunk towards what can be made of seen clades, and that towards uniform trees.
    other = unseen(alone, smoothing.novelty, smoothing.floor)
    listed = (1.0 - other) * alone.seen / alone.over_place(alone.seen) + other * smoothing.recombined * alone.share
    uniformly = other * (1.0 - smoothing.recombined)
    of_clade = listed + uniformly * alone.uniform
    # In a context: as seen, shrunk towards those of the clade.
    other_within = unseen(within, smoothing.context_novelty, smoothing.floor)
    seen_within = within.seen / within.over_place(within.seen)
    order = np.argsort(alone.split)
    base = of_clade[order[np.searchsorted(alone.split, within.split, sorter=order)]]
    joint = np.empty(len(within.split), dtype=np.uint64)
    clades.joint_identities(within.head, within.split, joint)
    key, place = placed(np.concatenate([alone.split, joint]))
    value = np.zeros(len(key))
    value[place] = np.log(np.concatenate([of_clade, (1.0 - other_within) * seen_within + other_within * base]))
    begins = np.concatenate([alone.begins, len(alone.split) + within.begins])
    return SplitLaw(
        key,
        value,
        np.concatenate([alone.head[alone.begins], within.head[within.begins]]),
        begins,
        begins + np.concatenate([alone.sizes, within.sizes]),
        np.log(np.concatenate([uniformly[alone.begins], other_within[within.begins]])),
        np.ascontiguousarray(np.concatenate([alone.part, within.part])),
        np.concatenate([_cumulative(alone, listed), _cumulative(within, seen_within)]),
    )


def splits_of(head: NDArray, split: NDArray, parts: NDArray, log_uniform: Floats, counts: Floats, share: Floats) -> Splits:
    """Splits seen at each place (`head`), counted."""
    joint = np.empty(len(split), dtype=np.uint64)
    clades.joint_identities(head, split, joint)
    _, first, which = np.unique(joint, return_index=True, return_inverse=True)
    order = np.argsort(head[first], kind="stable")
    seen, shares = (np.bincount(which.ravel(), weights=column)[order].astype(np.float64) for column in (counts, share))
    first = first[order]
    _, begins, sizes = np.unique(head[first], return_index=True, return_counts=True)
    return Splits(head[first], split[first], parts[first], np.exp(log_uniform[first]), seen, shares, begins, sizes)


def unseen(splits: Splits, novelty: float, floor: float) -> Floats:
    """For each pair, the share of its place's probability that is kept for splits not seen there."""
    once = np.where(splits.seen > 0.0, 1.0 / np.maximum(splits.seen, 1.0), 0.0)
    new = novelty * splits.over_place(once)
    return np.maximum(new / (splits.over_place(splits.seen) + new), floor)


def placed(keys: NDArray) -> tuple[NDArray, Ints]:
    """An open-addressing table at most half full, and where each key went."""
    size = 4
    while size < 2 * len(keys):
        size *= 2
    table, place = np.zeros(size, dtype=np.uint64), np.empty(len(keys), dtype=np.int64)
    clades.place_all(np.ascontiguousarray(keys), table, place)
    return table, place


def _recombined(
    rules: Rules, keys: NDArray, log_trees: Floats, clade: NDArray, sets: NDArray, standing: Ints, counts: Floats
) -> Recombined:
    """`clade`, `sets`, `counts` of every internal vertex of every tree; `standing` (trees, vertices)."""
    n, words = standing.shape[1] // 2 + 1, sets.shape[1]
    names, at, which = np.unique(clade, return_index=True, return_inverse=True)
    frequency = np.bincount(which.ravel(), weights=counts) / counts.sum() * (n - 2)
    taxa = np.zeros((n - 1, words), dtype=np.uint64)
    taxon = np.arange(1, n)
    taxa[taxon - 1, taxon >> 6] = np.uint64(1) << (taxon & 63).astype(np.uint64)
    identity, members = np.concatenate([keys[1:n], names]), np.concatenate([taxa, sets[at]])
    log_frequency = np.concatenate([np.zeros(n - 1), np.log(frequency)])
    stands = np.concatenate([standing[0, 1:n], standing[:, n:].ravel()[at]])
    order = np.argsort(np.bitwise_count(members).sum(axis=1), kind="stable")
    identity, members, log_frequency, stands = identity[order], members[order], log_frequency[order], stands[order]
    word = (members != 0).argmax(axis=1)
    low = members[np.arange(len(members)), word]
    lowest = 64 * word + np.bitwise_count((low & (~low + np.uint64(1))) - np.uint64(1)).astype(np.int64)
    first = np.full(n, -1, dtype=np.int64)
    first[lowest[::-1]] = np.arange(len(members))[::-1]
    table, place = placed(identity)
    index = np.zeros(len(table), dtype=np.int64)
    index[place] = np.arange(len(identity))
    whole, split, one, share, uniform = recombine(
        identity, members, stands, log_frequency, lowest, first, table, index, rules, log_trees, LEAST_SHARE
    )
    return Recombined(identity[whole], split, members[one], share, uniform)


def _cumulative(splits: Splits, values: Floats) -> Floats:
    """Running sums of the values at each place, which are made to sum to one there."""
    total = np.cumsum(values / splits.over_place(values))
    return total - np.repeat(np.concatenate([[0.0], total[splits.begins[1:] - 1]]), splits.sizes)
