"""Nested CSMC (VNCSMC, Moretti et al. 2021): every merger is tried with M draws of its branches, and one is chosen by its weight.

A particle's weight is the mean weight of its tries, summed over all pairs of roots, so that Z-hat stays unbiased; the price is
a likelihood for every pair, particle and try.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc.forest import CHUNK, Forest
from vaiphy.csmc.proposals import Lengths, Merger, Streams
from vaiphy.csmc.targets import Backward, Target
from vaiphy.kernels import subtrees
from vaiphy.parallel import chunks, map_threads

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NestedProposal:
    """`rates` (n - 1, 2) of the exponential branch proposals by rank and side, and `tries` (M) for each pair of roots."""

    rates: Floats
    tries: int = 1

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise ValueError(f"at least one try is needed for each pair, not {self.tries}")

    def begin(self, forest: Forest, target: Target) -> "_Running":
        return _Running(self)


class _Running:
    """The proposal in one run: mergers and lengths are chosen together, the lengths handed over when they are asked for."""

    look_ahead = None
    backward: Backward = "uniform"

    def __init__(self, proposal: NestedProposal) -> None:
        self._proposal = proposal
        self._lengths = np.zeros((0, 2))

    @property
    def merger(self) -> "_Running":
        return self

    @property
    def lengths(self) -> "_Running":
        return self

    def choose(self, forest: Forest, target: Target, pieces: Streams) -> Merger:
        n_particles, last = forest.n_particles, forest.n_roots == 2
        first, second = np.empty(n_particles, dtype=np.int64), np.empty(n_particles, dtype=np.int64)
        lengths, log_q = np.empty((n_particles, 2)), np.empty(n_particles)
        rates = self._proposal.rates[forest.rank]
        log_final = (0.0 if target.rooted else -float(np.log(2 * forest.n_taxa - 3))) if last else float("nan")
        parts = chunks(n_particles, CHUNK)

        def work(piece: int) -> None:
            part = parts[piece]
            subtrees.try_all(
                target.model.weights, target.model.beta,
                pieces[piece], forest.roots[part], forest.slot, forest.size, forest.pool, forest.patterns.counts, rates,
                target.prior_rate, last and not target.rooted, log_final, self._proposal.tries,
                first[part], second[part], lengths[part], log_q[part],
            )  # fmt: skip

        map_threads(work, list(range(len(parts))), forest.threads)
        self._lengths = lengths
        return Merger(first, second, log_q)

    def propose(self, forest: Forest, target: Target, merger: Merger, pieces: Streams) -> Lengths:
        return Lengths(self._lengths, np.zeros(forest.n_particles))
