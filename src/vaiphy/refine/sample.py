"""The final sample: laws frozen, fresh draws, and every figure that is reported.

A draw is a topology from one replicate's law and several branch-length vectors from that topology's Gammas; its weight is the
mean of theirs, and one of them, chosen by weight, is kept. The branch laws are common to all replicates, so the density of a
draw under the mixture of all replicates is that of its topology under the mixture of their topology laws.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from vaiphy.branches import gamma
from vaiphy.branches.gamma import Correction, GammaFit
from vaiphy.evidence import (
    effective_sample_size,
    log_mean_exp,
    log_sum_exp,
    normalised,
    pareto_k,
    pareto_smoothed,
    standard_error,
)
from vaiphy.model import log_n_unrooted
from vaiphy.rearrange import Problem, topology_hashes
from vaiphy.refine.adapt import Replicate
from vaiphy.refine.explore import Archive
from vaiphy.topology.subsplit import SubsplitLaw
from vaiphy.treesample import TreeSample

Floats = NDArray[np.float64]

#: Topologies drawn by a replicate in one batch, and branch-length vectors for each: more of them where over this share of the
#: draws are topologies of their own, since each of these costs a fit.
BATCH, VECTORS, VECTORS_IF_DISTINCT, DISTINCT_SHARE = 1000, 4, 8, 0.3
CALIBRATION_DRAWS = 500
#: Topologies whose Gammas are kept, at most.
MOST_FITS = 20_000
#: Splits below this frequency in every replicate do not count towards the ASDSF (as in MrBayes).
ASDSF_MINIMUM = 0.1
PARETO_LIMIT, ASDSF_LIMIT, FLOOR_LIMIT = 0.7, 0.02, 0.05


@dataclass(frozen=True)
class Frozen:
    """What is drawn from: a topology law per replicate; where a split's branch starts; corrected and guarded Gammas.

    `fits` are the Gammas found so far, before correction, by the bytes of `children`: they depend on these and the starts
    alone, so that each topology is fitted once.
    """

    problem: Problem
    laws: tuple[SubsplitLaw, ...]
    starts: Archive
    correction: Correction = gamma.NO_CORRECTION
    guard: float = 0.0
    fits: dict[bytes, GammaFit] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class Draws:
    """Weighted draws: arrays with one entry (row) per draw.

    `log_ratio`: log p(X, B | topology) - log q(B | topology), averaged (as ratios) over the vectors drawn; `mean_log_ratio`:
    the mean of its logarithm; `densities` (N, R): log-density of the topology under each replicate's law; `from_floor`:
    whether a split came from the floor of the law.
    """

    children: NDArray[np.int32]
    lengths: Floats
    log_ratio: Floats
    mean_log_ratio: Floats
    densities: Floats
    replicate: NDArray[np.int32]
    from_floor: NDArray[np.bool_]


@dataclass(frozen=True)
class Refinement:
    """Weighted trees, the log evidence with its standard error, and how far it can be trusted (`reasons` says why not)."""

    sample: TreeSample
    log_evidence: float
    std_error: float
    replicate_log_evidence: Floats
    replicate_std_error: Floats
    ess: float
    pareto_k: float
    asdsf: float
    elbo: float
    floor_share: float
    trust_ok: bool
    reasons: tuple[str, ...]
    n_samples: int
    log_weights: Floats
    trace: tuple[tuple[int, int, float, float], ...]


def freeze(replicates: list[Replicate], guard: float = 0.0) -> Frozen:
    """The replicates' laws, with the split lengths that any of them knows (the first that does is asked)."""
    problem = replicates[0].archive.problem
    lengths: dict[int, float] = {}
    for replicate in reversed(replicates):
        lengths.update(replicate.archive.split_length)
    laws = tuple(replicate.law for replicate in replicates if replicate.law is not None)
    return Frozen(problem, laws, Archive(problem, split_length=lengths), guard=guard)


def calibrate(frozen: Frozen, rng: np.random.Generator, threads: int = 1) -> Frozen:
    """Correct the Gammas from weighted draws. Weights are truncated, for steadiness; these draws are used for nothing else."""
    children = np.concatenate([law.sample(CALIBRATION_DRAWS, rng)[0] for law in frozen.laws])
    trees, topology = _distinct(children)
    base = _fitted(frozen, trees, threads)
    law = gamma.correct(base, trees, frozen.correction)
    which = np.repeat(topology, VECTORS)
    lengths, log_ratio = gamma.draw(law, trees, which, frozen.problem.patterns, frozen.problem.rate, rng, threads, frozen.guard)
    log_weights = log_ratio - _mixture(_densities(frozen, trees))[which]
    ceiling = log_mean_exp(log_weights) + 0.5 * np.log(len(log_weights))
    weights = normalised(np.minimum(log_weights, ceiling))
    return replace(frozen, correction=gamma.learn(base, trees, which, lengths, weights))


def draw(frozen: Frozen, replicate: int, rng: np.random.Generator, threads: int = 1) -> Draws:
    """One batch from one replicate's law."""
    problem = frozen.problem
    drawn, _, n_floor = frozen.laws[replicate].sample(BATCH, rng)
    trees, topology = _distinct(drawn)
    law = gamma.correct(_fitted(frozen, trees, threads), trees, frozen.correction)
    vectors = VECTORS_IF_DISTINCT if len(trees) > DISTINCT_SHARE * BATCH else VECTORS
    which = np.repeat(topology, vectors)
    lengths, log_ratio = gamma.draw(law, trees, which, problem.patterns, problem.rate, rng, threads, frozen.guard)
    log_ratio = log_ratio.reshape(BATCH, vectors)
    chosen = np.argmax(log_ratio + rng.gumbel(size=log_ratio.shape), axis=1)
    lengths = lengths.reshape(BATCH, vectors, -1)[np.arange(BATCH), chosen]
    return Draws(
        trees[topology],
        lengths,
        np.logaddexp.reduce(log_ratio, axis=1) - np.log(vectors),
        log_ratio.mean(axis=1),
        _densities(frozen, trees)[topology],
        np.full(BATCH, replicate, dtype=np.int32),
        n_floor > 0,
    )


def evidence(draws: Draws, n_taxa: int) -> tuple[float, float, Floats]:
    """Pooled log evidence with its standard error, and the log-weights under the mixture of all laws."""
    log_weights = draws.log_ratio - _mixture(draws.densities) - log_n_unrooted(n_taxa)
    return log_mean_exp(log_weights), standard_error(log_weights), log_weights


def summarise(
    draws: Draws, taxa: tuple[str, ...], accuracy: float, trace: tuple[tuple[int, int, float, float], ...], notes: tuple[str, ...]
) -> Refinement:
    """All figures from the draws so far. `notes` are reasons for distrust known from elsewhere."""
    n_taxa = len(taxa)
    pooled, error, log_weights = evidence(draws, n_taxa)
    own = draws.log_ratio - draws.densities[np.arange(len(draws.replicate)), draws.replicate] - log_n_unrooted(n_taxa)
    replicates = range(int(draws.replicate.max()) + 1)
    estimates = np.array([log_mean_exp(own[draws.replicate == r]) for r in replicates])
    errors = np.array([standard_error(own[draws.replicate == r]) for r in replicates])
    elbo = float((own + draws.mean_log_ratio - draws.log_ratio).mean())
    weights = normalised(log_weights)
    floor_share = float(weights[draws.from_floor].sum())
    trees, topology = _distinct(draws.children)
    # The evidence rests on the weights as they are, which is unbiased; averages over trees on smoothed ones, which is steadier.
    smooth = pareto_smoothed(log_weights)
    own_smooth = own.copy()
    for r in replicates:
        own_smooth[draws.replicate == r] = pareto_smoothed(own[draws.replicate == r])
    found = Refinement(
        TreeSample(taxa, trees, topology, draws.lengths, smooth - log_sum_exp(smooth), draws.replicate, own_smooth),
        pooled,
        error,
        estimates,
        errors,
        effective_sample_size(log_weights),
        pareto_k(log_weights),
        _asdsf(trees, topology, own_smooth, draws.replicate),
        elbo,
        floor_share,
        True,
        (),
        len(log_weights),
        log_weights,
        trace,
    )
    disagree, spread = _disagreement(estimates, errors)
    reasons = (*notes, *_reasons(found, accuracy, disagree, spread))
    if disagree:
        found = replace(found, std_error=max(error, spread / np.sqrt(len(estimates))))
    return replace(found, trust_ok=not reasons, reasons=reasons)


def n_distinct(draws: Draws) -> int:
    """How many different topologies were drawn."""
    return len(np.unique(topology_hashes(draws.children)))


def join(batches: list[Draws]) -> Draws:
    """All batches as one."""
    return Draws(*(np.concatenate([getattr(b, name) for b in batches]) for name in Draws.__dataclass_fields__))


def _reasons(found: Refinement, accuracy: float, disagree: bool, spread: float) -> list[str]:
    reasons = []
    if disagree:
        listed = ", ".join(f"{value:.2f}" for value in found.replicate_log_evidence)
        reasons.append(
            f"the replicates disagree by more than their own errors: log evidence {listed} (standard deviation {spread:.2f}); "
            "some of them have missed trees that matter"
        )
    if not found.pareto_k <= PARETO_LIMIT:
        reasons.append(
            f"Pareto k-hat is {found.pareto_k:.2f}, above {PARETO_LIMIT}: a few draws carry the estimate, "
            "and its standard error is unreliable"
        )
    if not found.std_error <= accuracy:
        reasons.append(f"the standard error of the log evidence is {found.std_error:.3f}, above the {accuracy:g} asked for")
    if not found.asdsf <= ASDSF_LIMIT:
        reasons.append(
            f"split frequencies differ between replicates: average standard deviation {found.asdsf:.3f}, above {ASDSF_LIMIT}"
        )
    if found.floor_share > FLOOR_LIMIT:
        reasons.append(
            f"{100 * found.floor_share:.0f} % of the evidence comes from splits that the law had not learned; "
            "there may be more of them"
        )
    return reasons


def _disagreement(estimates: Floats, errors: Floats) -> tuple[bool, float]:
    """Whether estimates scatter more than their errors allow (one chance in a thousand), and their standard deviation."""
    if len(estimates) < 2:
        return False, 0.0
    spread = float(estimates.std(ddof=1))
    precision = 1.0 / np.maximum(errors, 1e-6) ** 2
    mean = np.average(estimates, weights=precision)
    statistic = float((precision * (estimates - mean) ** 2).sum())
    return statistic > chi2.isf(1e-3, len(estimates) - 1) and spread > 0.1, spread


def _asdsf(trees: NDArray[np.int32], topology: NDArray[np.int32], own: Floats, replicate: NDArray[np.int32]) -> float:
    """Average standard deviation of split frequencies between the replicates, each by its own weights."""
    n_replicates = int(replicate.max()) + 1
    if n_replicates < 2:
        return float("nan")
    keys = gamma.splits_of(trees)[:, trees.shape[1] + 2 : -1]
    unique, index = np.unique(keys, return_inverse=True)
    index = index.reshape(keys.shape)
    frequency = np.empty((n_replicates, len(unique)))
    for r in range(n_replicates):
        mine = replicate == r
        by_tree = np.bincount(topology[mine], weights=normalised(own[mine]), minlength=len(trees))
        frequency[r] = np.bincount(index.ravel(), weights=np.repeat(by_tree, keys.shape[1]), minlength=len(unique))
    counted = frequency[:, frequency.max(axis=0) >= ASDSF_MINIMUM] if len(unique) else frequency
    return float(counted.std(axis=0, ddof=1).mean()) if counted.size else 0.0


def _fitted(frozen: Frozen, trees: NDArray[np.int32], threads: int) -> GammaFit:
    """The trees' Gammas; those not met before are fitted, and kept while there is room."""
    keys = [tree.tobytes() for tree in trees]
    known = [frozen.fits.get(key) for key in keys]
    new = [i for i, fit in enumerate(known) if fit is None]
    if new:
        fresh = frozen.starts.fitted(np.ascontiguousarray(trees[new]), threads)
        for row, i in enumerate(new):
            known[i] = fit = GammaFit(fresh.modes[row], fresh.shapes[row], fresh.rates[row], fresh.masses[row])
            if len(frozen.fits) < MOST_FITS:
                frozen.fits[keys[i]] = fit
    return GammaFit(*(np.array([getattr(fit, f.name) for fit in known]) for f in fields(GammaFit)))


def _densities(frozen: Frozen, trees: NDArray[np.int32]) -> Floats:
    return np.stack([law.log_density(trees) for law in frozen.laws], axis=1)


def _mixture(densities: Floats) -> Floats:
    return np.logaddexp.reduce(densities, axis=1) - np.log(densities.shape[1])


def _distinct(children: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Distinct topologies and which of them each row is."""
    _, first, inverse = np.unique(topology_hashes(children), return_index=True, return_inverse=True)
    return np.ascontiguousarray(children[first]), inverse.ravel().astype(np.int32)
