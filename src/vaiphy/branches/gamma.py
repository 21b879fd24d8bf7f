"""Branch lengths given an unrooted binary topology: one Gamma per branch, matched to the branch's conditional at the mode."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import gamma as kernels
from vaiphy.parallel import chunks, map_threads
from vaiphy.target import SimpleTarget

Floats = NDArray[np.float64]
Children = NDArray[np.int32]
TREES_PER_TASK = 16


@dataclass(frozen=True)
class GammaFit:
    """Distributions of the branch lengths of T topologies; arrays (T, 2n - 2) by vertex, entry 0 unused.

    `modes`: maximum-posterior lengths; `shapes`, `rates`: the Gammas; `masses` (T,): log p(X, B | topology) - log q(B) at the
    Gammas' means, an estimate of log p(X | topology) without noise.
    """

    modes: Floats
    shapes: Floats
    rates: Floats
    masses: Floats


def fit(
    children: Children,
    lengths: Floats,
    target: SimpleTarget,
    threads: int = 1,
    tolerance: float = 0.01,
    max_sweeps: int = 10,
) -> GammaFit:
    """Optimise the lengths of each topology under their prior, starting from `lengths`, and match the Gammas.

    Sweeps stop when one gains less than `tolerance` log units.
    """
    n_trees, n_vertices = lengths.shape
    modes = lengths.copy()
    shapes, rates = np.ones((n_trees, n_vertices)), np.ones((n_trees, n_vertices))
    masses = np.empty(n_trees)

    def run(part: slice) -> None:
        kernels.fit(
            target.model, children[part], modes[part], target.patterns.tips, target.patterns.counts, target.prior_rate,
            tolerance, max_sweeps, shapes[part], rates[part], masses[part],
        )  # fmt: skip

    map_threads(run, chunks(n_trees, TREES_PER_TASK), threads)
    return GammaFit(modes, shapes, rates, masses)
