"""Combinatorial sequential Monte Carlo (paper, section 4): forests of subtrees merged pair by pair.

The weight of particle k at rank r is

    w = [gamma_r / gamma_{r-1}] * B(previous | new) / (q(merger) * q(branch lengths)),

gamma the product of the subtrees' likelihoods, the prior and the look-ahead, B the backward kernel. Particles are resampled
when the effective sample size falls below a share of K; in between, weights run on, and log Z-hat (Eq. 17) grows by
log sum_k W_k w_k. Z-hat is an unbiased estimate of the evidence of the stated target for every number of particles.
"""

from dataclasses import dataclass
from functools import cached_property
from math import log

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.csmc import forest as forests
from vaiphy.csmc.forest import CHUNK, Forest
from vaiphy.csmc.proposals import AnyProposal, Running
from vaiphy.csmc.resampling import ancestors
from vaiphy.csmc.targets import Target, log_backward
from vaiphy.csmc.unroot import rooted_arrays, unrooted_arrays
from vaiphy.parallel import streams
from vaiphy.weights import effective_size, log_sum_exp


@dataclass(frozen=True, eq=False)
class Particles:
    """Weighted trees and the evidence.

    `rooted_children` (K, n-1, 2): vertex n+i has those children, the last is the root; `rooted_lengths` (K, 2n-1): the branch
    above each vertex (an unrooted target's last branch is whole on one side of the root, 0 on the other). `log_weights` are
    normalised. `ess[r]` is the effective sample size after rank r+1, before resampling; `resampled[r]` whether it then
    happened, and `ancestry[r][k]` is the particle before resampling that particle k after it is a copy of.
    """

    patterns: SitePatterns
    target: Target
    log_evidence: float
    log_weights: NDArray[np.float64]
    rooted_children: NDArray[np.int32]
    rooted_lengths: NDArray[np.float64]
    log_likelihoods: NDArray[np.float64]
    ess: NDArray[np.float64]
    resampled: NDArray[np.bool_]
    ancestry: NDArray[np.int64]

    @cached_property
    def unrooted(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The particles as binary arrays rooted at taxon 0: `children` (K, n-2, 2) and `lengths` (K, 2n-2)."""
        return unrooted_arrays(self.rooted_children, self.rooted_lengths)

    @property
    def statement(self) -> str:
        """What `log_evidence` is an estimate of."""
        return self.target.statement(self.patterns.n_taxa)


def run(
    patterns: SitePatterns,
    proposal: AnyProposal,
    target: Target,
    rng: np.random.Generator,
    n_particles: int = 2048,
    resampling: str = "systematic",
    threshold: float = 0.5,
    threads: int = 1,
) -> Particles:
    """One run. Resamples when the effective sample size is below `threshold` * K: 0 never, 1 (or more) at every rank."""
    if patterns.n_taxa < 3:
        raise ValueError(f"at least 3 taxa are needed, there are {patterns.n_taxa}")
    if n_particles < 1:
        raise ValueError(f"at least one particle is needed, not {n_particles}")
    forest = forests.begin(target.data(patterns), n_particles, threads, target.model)
    running = proposal.begin(forest, target)
    chance, *pieces = streams(rng, 1 + -(-n_particles // CHUNK))
    n_ranks = patterns.n_taxa - 1
    log_weights = np.zeros(n_particles)  # untwisted, since the last resampling, up to a constant
    twist = np.zeros(n_particles)
    expected = np.zeros(n_particles)
    log_evidence = float(forest.log_likelihood[: patterns.n_taxa].sum()) + target.log_topology_prior(patterns.n_taxa)
    ess, resampled = np.empty(n_ranks), np.zeros(n_ranks, dtype=bool)
    ancestry = np.tile(np.arange(n_particles), (n_ranks, 1))
    for rank in range(n_ranks):
        last = rank == n_ranks - 1
        log_weights += extend(forest, running, target, pieces, expected)
        np.nan_to_num(log_weights, copy=False, nan=-np.inf, neginf=-np.inf)
        twist = np.zeros(n_particles)
        if running.look_ahead is not None and not last:
            twist = running.look_ahead.potential(forest, expected)
        current = log_weights + twist
        if not np.isfinite(current).any():
            raise ArithmeticError("every particle has weight zero: the data are impossible under all trees proposed")
        total = log_sum_exp(current)
        weights = np.exp(current - total)
        ess[rank] = effective_size(weights)
        if not last and (ess[rank] < threshold * n_particles or threshold >= 1):
            resampled[rank] = True
            chosen = ancestors(resampling, weights, chance)
            ancestry[rank] = chosen
            forests.resample(forest, chosen)
            log_evidence += total - log(n_particles)
            # Survivors are equal under the twisted target; the untwisted weight takes the twist back.
            log_weights = -twist[chosen]
            expected = expected[chosen]
    log_evidence += total - log(n_particles)
    children, lengths = rooted_arrays(forest)
    return Particles(
        patterns, target, float(log_evidence), current - total, children, lengths,
        forest.log_likelihood[forest.roots[:, 0]], ess, resampled, ancestry,
    )  # fmt: skip


def extend(
    forest: Forest, proposal: Running, target: Target, pieces: list[np.random.Generator], expected: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Merge two roots of every particle; the log of the untwisted weights.

    Adds to `expected` what the proposal itself expects of a merger like this one (for the look-ahead).
    """
    last = forest.n_roots == 2
    merger = proposal.merger.choose(forest, target, pieces)
    drawn = proposal.lengths.propose(forest, target, merger, pieces)
    a, b = forests.pair(forest, merger.first, merger.second)
    before = forest.log_likelihood[a] + forest.log_likelihood[b]
    forests.merge_roots(forest, merger.first, merger.second, drawn.lengths)
    gain = forest.log_likelihood[forests.newest(forest)] - before
    gain += target.log_length_prior(drawn.lengths, last)
    gain += log_backward(proposal.merger.backward, target, forest)
    if drawn.log_volume is not None:
        expected += drawn.log_volume - merger.log_q
    return gain - merger.log_q - drawn.log_q
