"""Variational CSMC (Moretti et al. 2021): uniform mergers, exponential branch lengths with a learned rate for each rank and side.

The rates maximise E[log Z-hat] by stochastic gradients: branches are b = e / rate with e from Exp(1), and the derivative of a
weight in a rate goes through every branch of the merged subtree. What resampling contributes is left out, as in their paper.
The weights are exact, the prior stays the prior, and Z-hat is unbiased whatever the rates; their program differs from its
description in all three (`docs/csmc.md`), so its figures are not those of this module.
"""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.csmc import engine
from vaiphy.csmc import forest as forests
from vaiphy.csmc.forest import CHUNK, Forest
from vaiphy.csmc.proposals import Lengths, Merger, Proposal, Streams
from vaiphy.csmc.resampling import ancestors
from vaiphy.csmc.targets import Target
from vaiphy.csmc.vanilla import UniformMerger
from vaiphy.kernels import subtrees
from vaiphy.kernels.adam import ascend
from vaiphy.parallel import streams
from vaiphy.weights import log_sum_exp

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """How rates are learned: the settings of the VaiPhy paper's comparison.

    `epochs` over all sites in batches of `batch` sites, `particles` in each run, Adam with `rate` on the logarithms of the rates,
    which start at that of the prior.
    """

    epochs: int = 100
    particles: int = 256
    batch: int = 256
    rate: float = 0.001

    def __post_init__(self) -> None:
        if min(self.epochs, self.particles, self.batch) < 1 or not self.rate > 0:
            raise ValueError("epochs, particles and sites in a batch must be at least 1, the learning rate positive")


@dataclass(frozen=True, eq=False)
class ExponentialLengths:
    """Branch lengths from exponential distributions; `rates` (n - 1, 2) by rank and side."""

    rates: Floats

    def propose(self, forest: Forest, target: Target, merger: Merger, pieces: Streams) -> Lengths:
        rates = self.rates[forest.rank]
        single = forest.n_roots == 2 and not target.rooted
        lengths: Floats = pieces[0].exponential(size=(forest.n_particles, 2)) / rates
        log_q = np.log(rates) - rates * lengths
        if single:
            lengths[:, 1] = 0.0
        return Lengths(lengths, log_q[:, 0] if single else log_q.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Learned:
    """Rates by rank and side of the best epoch, by log Z-hat of all sites, and log Z-hat after every epoch (the first: none)."""

    rates: Floats
    trace: Floats

    @property
    def best_epoch(self) -> int:
        return int(self.trace.argmax())

    @property
    def proposal(self) -> Proposal:
        return Proposal(UniformMerger(), ExponentialLengths(self.rates))


def train(
    patterns: SitePatterns, target: Target, rng: np.random.Generator, training: Training | None = None, threads: int = 1
) -> Learned:
    """Learn the rates. The best epoch's own log Z-hat is too high by selection: run its proposal anew to report it."""
    how = training or Training()
    n_ranks = patterns.n_taxa - 1
    logs = np.full(2 * n_ranks, log(target.prior_rate), dtype=np.float32)
    first, second = np.zeros_like(logs), np.zeros_like(logs)
    everything = patterns.folded
    iteration = 0
    kept, trace = [], []
    for epoch in range(how.epochs + 1):
        if epoch:
            sites = rng.permutation(patterns.n_sites)
            for begin in range(0, patterns.n_sites, how.batch):
                iteration += 1
                chosen = batch_of(everything, sites[begin : begin + how.batch])
                slope, _ = gradient(chosen, _rates(logs), target, rng, how.particles, threads)
                ascend(logs, slope.ravel().astype(np.float32), first, second, iteration, how.rate, 0.9, 0.999, 1e-8)
        kept.append(_rates(logs))
        trial = Proposal(UniformMerger(), ExponentialLengths(kept[-1]))
        trace.append(engine.run(everything, trial, target, rng, how.particles, "multinomial", 1.0, threads).log_evidence)
    return Learned(kept[int(np.argmax(trace))], np.array(trace))


def batch_of(patterns: SitePatterns, sites: NDArray[np.int64]) -> SitePatterns:
    """The patterns of some of the sites."""
    counts = np.bincount(patterns.site_pattern[sites], minlength=patterns.n_patterns).astype(np.float64)
    kept = np.flatnonzero(counts)
    place = np.full(patterns.n_patterns, -1)
    place[kept] = np.arange(len(kept))
    codes = np.ascontiguousarray(patterns.codes[:, kept])
    return SitePatterns(patterns.taxa, codes, counts[kept], place[patterns.site_pattern[sites]], patterns.alphabet)


def gradient(
    patterns: SitePatterns, rates: Floats, target: Target, rng: np.random.Generator, n_particles: int, threads: int = 1
) -> tuple[Floats, float]:
    """The derivative (n - 1, 2) of log Z-hat in the log-rates along one run that resamples at every rank, and log Z-hat."""
    n = patterns.n_taxa
    forest = forests.begin(patterns, n_particles, threads, target.model)
    proposal = Proposal(UniformMerger(), ExponentialLengths(rates))
    leaves, _ = forests.leaves(patterns, target.model)
    chance, *pieces = streams(rng, 1 + -(-n_particles // CHUNK))
    log_evidence = float(forest.log_likelihood[:n].sum()) + target.log_topology_prior(n)
    # Of every vertex ever made: the derivative of its subtree's log-likelihood.
    slopes = np.zeros((len(forest.size), n - 1, 2))
    result = np.zeros((n - 1, 2))
    for rank in range(n - 1):
        log_weights = engine.extend(forest, proposal, target, pieces, np.zeros(n_particles))
        np.nan_to_num(log_weights, copy=False, nan=-np.inf, neginf=-np.inf)
        total = log_sum_exp(log_weights)
        log_evidence += total - log(n_particles)
        weights = np.exp(log_weights - total)
        made = np.arange(n_particles) + forests.newest(forest).start
        subtrees.rate_slopes(
            target.model.weights, target.model.beta, made, forest.children, forest.lengths, forest.born, n, leaves,
            patterns.counts, slopes[made[0] :],
        )  # fmt: skip
        a, b = forest.children[made].T
        result += np.tensordot(weights, slopes[made] - slopes[a] - slopes[b], axes=1)
        # The prior and the proposal of the two new branches: -rate b and +log(rate) - e, with b = e / rate.
        used = 1 if rank == n - 2 and not target.rooted else 2
        result[rank, :used] += weights @ (target.prior_rate * forest.lengths[made, :used] - 1.0)
        if rank < n - 2:
            forests.resample(forest, ancestors("multinomial", weights, chance))
    return result, log_evidence


def _rates(logs: NDArray[np.float32]) -> Floats:
    return np.exp(logs.astype(np.float64)).reshape(-1, 2)
