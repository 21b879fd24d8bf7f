"""The coordinate updates of VaiPhy as pure functions: counts, edge weights, ancestral sequences, ELBO (paper, Eq. 4-9).

Vertices 0..n-1 are the taxa, n..2n-3 internal. A quantity on edges is an array (2n-2, n-2): vertex by internal vertex
(counted from 0); the rows of internal vertices are symmetric and their diagonal means nothing. q(Z) is an array (n-2,
4, P).
"""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches.law import Moments
from vaiphy.kernels import mean_field as kernels
from vaiphy.models.jc69 import LOG_4
from vaiphy.parallel import chunks, map_threads
from vaiphy.trees.counts import log_n_augmented

Floats = NDArray[np.float64]
#: Patterns in one piece of work.
PATTERN_CHUNK = 512


@dataclass(frozen=True, eq=False)
class Columns:
    """The site patterns that coordinate ascent works on: those in which at least two taxa are observed.

    `tips` (n_taxa, 4, P) uint8, `sizes` (n_taxa, P) uint8: bases a leaf's set holds (4 = missing), `counts` (P,),
    `kept` their indices among all patterns, `observed` (P,) the share of taxa that are not missing, `log_constant`
    the log-likelihood of the columns left out: with one taxon observed it is known whatever the tree, with none it is
    0.
    """

    tips: NDArray[np.uint8]
    sizes: NDArray[np.uint8]
    counts: Floats
    kept: NDArray[np.int64]
    observed: Floats
    log_constant: float
    folded: SitePatterns

    @property
    def n_taxa(self) -> int:
        return self.tips.shape[0]

    @property
    def n_internal(self) -> int:
        return self.n_taxa - 2


def columns(patterns: SitePatterns) -> Columns:
    """Split off the columns whose likelihood no tree changes."""
    sizes = patterns.tips.sum(axis=1).astype(np.uint8)
    observed = (sizes < 4).sum(axis=0)
    kept = np.flatnonzero(observed >= 2)
    single = observed == 1
    smallest = sizes.min(axis=0, initial=4)[single].astype(np.float64)
    return Columns(
        tips=np.ascontiguousarray(patterns.tips[:, :, kept]),
        sizes=np.ascontiguousarray(sizes[:, kept]),
        counts=np.ascontiguousarray(patterns.counts[kept]),
        kept=kept,
        observed=observed[kept] / max(1, patterns.n_taxa),
        log_constant=float((patterns.counts[single] * (np.log(smallest) - LOG_4)).sum()),
        folded=patterns.folded,
    )


@dataclass(frozen=True, eq=False)
class EdgeCounts:
    """Expected counts on every edge: `statistics` (2n-2, n-2, 4) = [d, s1, s2, s3] and what its changed sites add to the
    expected log-likelihood as a constant, `log_constant` (2n-2, n-2).

    d is the paper's phi (Eq. 5): the expected number of changed sites; s1 the unchanged ones, s2 and s3 sites at
    which an ambiguous leaf's set of two or three bases holds the ancestor's. Missing leaf sites are in none of them.
    """

    statistics: Floats
    log_constant: Floats


def expected_counts(data: Columns, z: Floats, min_observed: float = 0.0, threads: int = 1) -> EdgeCounts:
    """Expected counts under q(Z) (paper, Eq. 5), from columns with at least a share `min_observed` of taxa observed."""
    n, n_internal = data.n_taxa, data.n_internal
    weights = np.where(data.observed >= min_observed, data.counts, 0.0)

    def part_sums(part: slice) -> tuple[Floats, Floats]:
        core, within = np.zeros((n_internal, n_internal)), np.zeros((3, n, n_internal))
        # Views would do, but the kernel is compiled for contiguous arrays alone.
        tips, sizes = np.ascontiguousarray(data.tips[:, :, part]), np.ascontiguousarray(data.sizes[:, part])
        kernels.agreements(tips, sizes, weights[part], np.ascontiguousarray(z[:, :, part]), core, within)
        return core, within

    sums = map_threads(part_sums, chunks(len(weights), PATTERN_CHUNK), threads)
    core = sum((s[0] for s in sums), np.zeros((n_internal, n_internal)))
    within = sum((s[1] for s in sums), np.zeros((3, n, n_internal)))
    total = weights.sum()
    statistics = np.zeros((n + n_internal, n_internal, 4))
    statistics[n:, :, 1] = np.triu(core) + np.triu(core, 1).T
    statistics[n:, :, 0] = total - statistics[n:, :, 1]
    log_constant = np.zeros((n + n_internal, n_internal))
    for k in range(3):
        size_total = ((data.sizes == k + 1) * weights).sum(axis=1)[:, None]
        outside = np.maximum(size_total - within[k], 0.0)
        statistics[:n, :, 0] += outside
        # Never exactly 0 where the leaf has such sites, so that the moments they need are computed.
        statistics[:n, :, k + 1] = np.where(size_total > 0.0, np.maximum(within[k], kernels.TINY), 0.0)
        log_constant[:n] += outside * log(k + 1.0)
    statistics[..., 0] = np.maximum(statistics[..., 0], 0.0)
    log_constant -= statistics[..., 0] * LOG_4
    return EdgeCounts(statistics, log_constant)


def log_edge_weights(edge_counts: EdgeCounts, rows: Floats, moments: Moments, rate: float) -> Floats:
    """log w_e = E_q[log-likelihood of the edge] - KL(q(b_e) || Exp(rate)), for branch distributions q given by `rows` (..., 5).

    For the optimal distribution this is the log of its normaliser: the edge's own evidence.
    """
    logs = (moments.log_changed, moments.log_same, moments.log_within_2, moments.log_within_3)
    value = edge_counts.log_constant + moments.log_norm + log(0.75 * rate)
    for k, expected in enumerate(logs):
        value += (edge_counts.statistics[..., k] - rows[..., k + 1]) * expected
    value -= (rate - 4.0 / 3.0 * rows[..., 0]) * moments.length
    return cleared(value)


def log_likelihood_weights(edge_counts: EdgeCounts, lengths: Floats) -> Floats:
    """W (paper, Eq. 9 as a log-probability): expected log-likelihood of each edge at fixed branch lengths."""
    v = -np.expm1(-4.0 / 3.0 * lengths)
    d, s1, s2, s3 = np.moveaxis(edge_counts.statistics, -1, 0)
    value = edge_counts.log_constant + d * np.log(v)
    return cleared(value + s1 * np.log1p(-0.75 * v) + s2 * np.log1p(-0.5 * v) + s3 * np.log1p(-0.25 * v))


def sensitivities(moments: Moments) -> Floats:
    """kappa_k = E[log P(k-set | ancestor inside) - log P(k-set | outside)], k = 1, 2, 3, as (2n-2, n-2, 3)."""
    within = (moments.log_same, moments.log_within_2, moments.log_within_3)
    return np.stack([w - moments.log_changed + LOG_4 - log(k + 1.0) for k, w in enumerate(within)], axis=-1)


def sensitivities_at(lengths: Floats) -> Floats:
    """`sensitivities` at fixed branch lengths."""
    v = -np.expm1(-4.0 / 3.0 * lengths)
    shares = (0.75, 0.5, 0.25)
    return np.stack([np.log1p(-c * v) - np.log(v) + LOG_4 - log(k + 1.0) for k, c in enumerate(shares)], axis=-1)


def sweep_ancestral(
    data: Columns,
    z: Floats,
    edge_probability: Floats,
    sensitivity: Floats,
    step: float = 1.0,
    mix_probabilities: bool = False,
    threads: int = 1,
) -> tuple[Floats, float]:
    """One sequential sweep over the internal vertices (paper, Eq. 6): the new q(Z) and its entropy."""
    n = data.n_taxa
    pull = edge_probability[..., None] * sensitivity
    core, leaf = np.ascontiguousarray(pull[n:, :, 0]), np.ascontiguousarray(pull[:n])

    def run(part: slice) -> tuple[Floats, float]:
        own = z[:, :, part].copy()
        tips, sizes = np.ascontiguousarray(data.tips[:, :, part]), np.ascontiguousarray(data.sizes[:, part])
        h = kernels.sweep(tips, sizes, data.counts[part], core, leaf, step, mix_probabilities, own)
        return own, h

    results = map_threads(run, chunks(z.shape[2], PATTERN_CHUNK), threads)
    if not results:
        return z.copy(), 0.0
    new = results[0][0] if len(results) == 1 else np.concatenate([r[0] for r in results], axis=2)
    return new, float(sum(r[1] for r in results))


def entropy(data: Columns, z: Floats) -> float:
    """Entropy of q(Z) summed over sites."""
    return float(-(data.counts * (z * np.log(np.maximum(z, kernels.TINY))).sum(axis=(0, 1))).sum())


def elbo(data: Columns, leaf_log_normalisers: Floats, core_log_normaliser: float, ancestral_entropy: float) -> float:
    """The ELBO (paper, Eq. 4) in closed form, with q(tau) at its optimum given the edge weights.

    sum over leaves of log sum_i w_leaf,i + log Z + H(q(Z)) - M log 4 - log of the number of trees, plus the constant
    of the columns that were left out.
    """
    value = float(leaf_log_normalisers.sum()) + core_log_normaliser + ancestral_entropy
    return value - float(data.counts.sum()) * LOG_4 - log_n_augmented(data.n_taxa) + data.log_constant


def cleared(values: Floats) -> Floats:
    """Zero on the meaningless diagonal of the internal rows; symmetric there to the last bit."""
    n_internal = values.shape[1]
    core = values[-n_internal:]
    core[:] = 0.5 * (core + core.T)
    np.fill_diagonal(core, 0.0)
    return values
