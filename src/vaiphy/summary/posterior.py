"""The posterior in words a biologist uses: split support, consensus trees, credible sets, branch lengths per split.

Everything is computed from weighted trees (`SplitSample`), so it serves our own samples and anybody's tree files alike.
Trees are unrooted: support belongs to a split, and a branch length to a split.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.summary.consensus import extended_splits, maximum_credibility
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.splits import SplitSample, from_sample
from vaiphy.trees.tree import Split, Tree, from_branches, taxa_of
from vaiphy.weights import asdsf, asdsf_of_halves

Floats = NDArray[np.float64]
#: A split of the majority has more support than this: a half, and a little for rounding, so that two always share a tree.
MAJORITY = 0.5 + 1e-12


@dataclass(frozen=True, eq=False)
class SplitTable:
    """Every split of the sample: the trivial ones in taxon order, then the others by falling support.

    `support` is the posterior probability; `deviation` the standard deviation of the support between replicates (NaN if
    there is one). Branch lengths are those of the trees that have the split: `mean`, `median`, the central 95 %
    interval `lower`..`upper`, the shortest 95 % interval `hpd_lower`..`hpd_upper` and the `variance` (NaN where no length is
    known); `effective` is the effective number of trees behind them: an interval from fewer than ten means little.
    """

    taxa: tuple[str, ...]
    splits: tuple[Split, ...]
    n_trivial: int
    support: Floats
    replicate_support: Floats
    mean: Floats
    median: Floats
    lower: Floats
    upper: Floats
    hpd_lower: Floats
    hpd_upper: Floats
    variance: Floats
    effective: Floats

    def __len__(self) -> int:
        return len(self.splits)

    @cached_property
    def row(self) -> dict[Split, int]:
        """The row of each split."""
        return {split: i for i, split in enumerate(self.splits)}

    @cached_property
    def deviation(self) -> Floats:
        if len(self.replicate_support) < 2:
            return np.full(len(self.splits), np.nan)
        return self.replicate_support.std(axis=0, ddof=1)

    def tree(self, rows: Iterable[int]) -> Tree:
        """The tree of the splits in these rows, with mean lengths and supports."""
        return from_branches(self.taxa, ((self.splits[k], float(self.mean[k]), float(self.support[k])) for k in rows))

    def members(self, row: int) -> tuple[str, ...]:
        """Names of the taxa on the side of the split that does not hold the first taxon."""
        return tuple(self.taxa[i] for i in taxa_of(self.splits[row]))


@dataclass(frozen=True, eq=False)
class TopologyTable:
    """Distinct topologies in order of decreasing probability; `topologies[i]` holds the non-trivial splits of the i-th."""

    topologies: tuple[frozenset[Split], ...]
    probability: Floats

    def __len__(self) -> int:
        return len(self.topologies)

    def credible_set(self, level: float) -> int:
        """How many of the most probable topologies it takes to hold `level` of the probability."""
        return int(np.searchsorted(np.cumsum(self.probability), level * (1 - 1e-12))) + 1 if len(self) else 0


@dataclass(frozen=True, eq=False)
class Posterior:
    """All summaries of a weighted sample of trees.

    `majority` holds the splits with more than half of the probability, `extended` also the next best ones that fit,
    `credible` is the sampled topology with the highest product of split supports (maximum clade credibility). All three
    carry mean branch lengths and supports. `asdsf`, the average standard deviation of split
    frequencies, is NaN for a single replicate.
    """

    taxa: tuple[str, ...]
    splits: SplitTable
    topologies: TopologyTable
    majority: Tree
    credible: Tree
    asdsf: float
    n_samples: int
    effective_size: float
    n_replicates: int
    tree_length: tuple[float, float, float]
    """Mean and central 95 % interval of the sum of all branch lengths."""

    @cached_property
    def extended(self) -> Tree:
        table = self.splits
        inner = table.splits[table.n_trivial :]
        majority = inner[: np.count_nonzero(table.support[table.n_trivial :] > MAJORITY)]
        chosen = extended_splits(inner, len(self.taxa), majority)
        return table.tree([*range(table.n_trivial), *(table.row[split] for split in chosen)])


def summarise(trees: SplitSample | TreeSample, halves: bool = False) -> Posterior:
    """Summaries of weighted trees; O(n_samples * n_taxa) apart from sorting the lengths of each split.

    `halves`: compare split frequencies between two halves of the replicates (many small ones), not between all of them.
    """
    sample = from_sample(trees) if isinstance(trees, TreeSample) else trees
    table = split_table(sample)
    row = np.empty(len(sample.splits), dtype=np.int64)
    row[_order(sample)[0]] = np.arange(len(table))
    trivial = range(table.n_trivial)
    majority = [*trivial, *np.flatnonzero(table.support[table.n_trivial :] > MAJORITY) + table.n_trivial]
    best = [s for s in sample.members[maximum_credibility(sample)] if s >= 0 and not sample.trivial[s]]
    total = np.nansum(sample.lengths, axis=1)
    unknown = np.isnan(sample.lengths).all(axis=1)
    support = table.replicate_support[:, table.n_trivial :]
    share = np.bincount(sample.replicate, weights=sample.weights, minlength=sample.n_replicates).astype(np.float64)
    return Posterior(
        sample.taxa,
        table,
        topology_table(sample),
        table.tree(majority),
        table.tree([*trivial, *row[best]]),
        asdsf_of_halves(support, share) if halves else asdsf(support),
        sample.n_samples,
        sample.effective_size,
        sample.n_replicates,
        (np.nan,) * 3 if unknown.any() else _mean_and_interval(total, sample.weights),
    )


def split_table(sample: SplitSample) -> SplitTable:
    """Support and branch lengths of every split."""
    support = sample.support()
    order, n_trivial = _order(sample)
    lengths = _length_summaries(sample)[:, order]
    return SplitTable(
        sample.taxa,
        tuple(sample.splits[s] for s in order),
        n_trivial,
        np.minimum(support[order], 1.0),
        np.minimum(sample.replicate_support()[:, order], 1.0),
        *lengths,
    )


def _order(sample: SplitSample) -> tuple[NDArray[np.int64], int]:
    """The splits of the sample in the order of its table, and how many of them are trivial."""
    support = sample.support()
    everything = (1 << sample.n_taxa) - 1
    # The trivial split of taxon 0 is the side without it, so it has to be turned round to sort by taxon.
    trivial = sorted(np.flatnonzero(sample.trivial).tolist(), key=lambda s: min(sample.splits[s], everything ^ sample.splits[s]))
    others = sorted(np.flatnonzero(~sample.trivial & (support > 0)).tolist(), key=lambda s: (-support[s], sample.splits[s]))
    return np.array(trivial + others, dtype=np.int64), len(trivial)


def topology_table(sample: SplitSample) -> TopologyTable:
    """Distinct topologies with their probabilities."""
    probability = sample.topology_weights
    order = np.lexsort((np.arange(len(probability)), -probability))
    rows = [sample.members[t] for t in order if probability[t] > 0]
    found = tuple(frozenset(sample.splits[s] for s in row if s >= 0 and not sample.trivial[s]) for row in rows)
    return TopologyTable(found, probability[order][: len(rows)])


def weighted_quantiles(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Quantiles of sorted `values` by the midpoint rule; for equal weights Hazen's definition."""
    edges = np.cumsum(weights)
    return np.interp(levels, (edges - weights / 2) / edges[-1], values)


def shortest_interval(values: Floats, weights: Floats, level: float = 0.95) -> tuple[float, float]:
    """The shortest interval between two of the sorted `values` that holds `level` of the weight."""
    edges = np.concatenate([[0.0], np.cumsum(weights)])
    edges /= edges[-1]
    last = np.searchsorted(edges[1:], edges[:-1] + level * (1 - 1e-12))
    first = np.flatnonzero(last < len(values))
    best = first[np.argmin(values[last[first]] - values[first])]
    return float(values[best]), float(values[last[best]])


def _length_summaries(sample: SplitSample) -> Floats:
    """Mean, median, central and shortest 95 % interval and variance of each split's lengths, and the effective number of
    lengths, shape (8, n_splits)."""
    out = np.full((8, len(sample.splits)), np.nan)
    out[7] = 0.0
    which = sample.members[sample.topology]
    known = (which >= 0) & ~np.isnan(sample.lengths) & (sample.weights > 0)[:, None]
    split = which[known]
    order = np.argsort(split, kind="stable")
    value = sample.lengths[known][order]
    weight = np.broadcast_to(sample.weights[:, None], which.shape)[known][order]
    ends = np.cumsum(np.bincount(split, minlength=len(sample.splits)))
    levels = np.array([0.5, 0.025, 0.975])
    for s, (start, end) in enumerate(zip(np.concatenate([[0], ends[:-1]]), ends)):
        if start == end:
            continue
        rank = np.argsort(value[start:end])
        v, w = value[start:end][rank], weight[start:end][rank]
        out[0, s] = np.average(v, weights=w)
        out[1:4, s] = weighted_quantiles(v, w, levels)
        out[4:6, s] = shortest_interval(v, w)
        out[6, s] = np.average(np.square(v - out[0, s]), weights=w)
        share = w / w.max()  # weights may be so small that their squares vanish
        out[7, s] = share.sum() ** 2 / np.square(share).sum()
    return out


def _mean_and_interval(values: Floats, weights: Floats) -> tuple[float, float, float]:
    rank = np.argsort(values)
    low, high = weighted_quantiles(values[rank], weights[rank], np.array([0.025, 0.975]))
    return float(values @ weights), float(low), float(high)
