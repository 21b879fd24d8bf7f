"""The vanilla proposals: any two subtrees with equal probability, branch lengths from the prior."""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc.forest import Forest
from vaiphy.csmc.proposals import Lengths, Merger
from vaiphy.csmc.targets import Backward, Target


@dataclass(frozen=True)
class UniformMerger:
    """Each of the R(R-1)/2 pairs is as likely as any other."""

    backward: Backward = "uniform"

    def choose(self, forest: Forest, target: Target, streams: list[np.random.Generator]) -> Merger:
        n_roots, n_particles = forest.n_roots, forest.n_particles
        draws = streams[0].integers(n_roots * (n_roots - 1) // 2, size=n_particles)
        first, second = (side[draws] for side in np.triu_indices(n_roots, 1))
        return Merger(first, second, np.full(n_particles, -log(n_roots * (n_roots - 1) / 2)))


@dataclass(frozen=True)
class PriorLengths:
    """Both branches from their exponential prior."""

    def propose(self, forest: Forest, target: Target, merger: Merger, streams: list[np.random.Generator]) -> Lengths:
        lengths: NDArray[np.float64] = streams[0].exponential(1.0 / target.prior_rate, size=(forest.n_particles, 2))
        last = forest.n_roots == 2
        if last and not target.rooted:
            lengths[:, 1] = 0.0
        return Lengths(lengths, target.log_length_prior(lengths, last))
