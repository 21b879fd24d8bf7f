"""The exact weighted spanning-tree distribution: q(tree) proportional to the product of its edges' weights.

This is the mean-field optimum q*(tau) (paper, Eq. 7) on the internal vertices, with its normaliser, its edge
probabilities and exact sampling, all by star-mesh elimination (`kernels.spanning`): nothing is left to importance
sampling.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import spanning as kernels
from vaiphy.parallel import chunks, map_threads, streams

Floats = NDArray[np.float64]
#: Trees drawn from one random stream; part of what a seed means.
CHUNK = 256


@dataclass(frozen=True, eq=False)
class SpanningLaw:
    """Distribution over spanning trees of the complete graph with finite `log_weights` (n, n), symmetric, diagonal ignored.

    Setting it up costs O(n^3) time and n^3/6 numbers of memory, a draw O(n^2).
    """

    log_weights: Floats

    @property
    def n_vertices(self) -> int:
        return len(self.log_weights)

    @cached_property
    def _elimination(self) -> tuple[float, Floats, Floats, Floats]:
        n = self.n_vertices
        work = checked(self.log_weights).copy()
        log_sum, column = np.zeros(n), np.zeros((n, n))
        odds = np.empty(n * (n - 1) * (n - 2) // 6)
        return kernels.eliminate(work, log_sum, column, odds), log_sum, column, odds

    @property
    def log_normaliser(self) -> float:
        """log of the sum over all spanning trees of the product of their weights."""
        return self._elimination[0]

    @cached_property
    def edge_probabilities(self) -> Floats:
        """Probability of each edge, (n, n): rows are expected degrees, the upper triangle sums to n - 1. O(n^3)."""
        out = np.empty((self.n_vertices, self.n_vertices))
        kernels.marginals(*self._elimination[1:], out)
        return out

    def sample(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Exact draws as parent arrays (n_trees, n) rooted at vertex 0, with their log-densities."""
        parents = np.empty((n_trees, self.n_vertices), dtype=np.int32)
        parts = chunks(n_trees, CHUNK)
        stored = self._elimination[1:]

        def run(item: tuple[slice, np.random.Generator]) -> None:
            kernels.sample(*stored, item[1], parents[item[0]])

        map_threads(run, list(zip(parts, streams(rng, len(parts)))), threads)
        return parents, self.log_density(parents)

    def log_density(self, parents: NDArray[np.int32]) -> Floats:
        """Log-probability of trees given as parent arrays (T, n), whatever their roots."""
        return tree_sums(self.log_weights, parents) - self.log_normaliser


def tree_sums(edge_values: Floats, parents: NDArray[np.int32]) -> Floats:
    """Sum of `edge_values` (n, n) over the edges of each tree (T, n)."""
    has_parent = parents >= 0
    vertex = np.arange(parents.shape[1])
    values = edge_values[vertex[None, :], np.where(has_parent, parents, 0)]
    return np.where(has_parent, values, 0.0).sum(axis=1)


def checked(log_weights: Floats) -> Floats:
    """The weights as a contiguous array with a zero diagonal; raises unless they are finite and symmetric off it."""
    weights = np.array(log_weights, dtype=np.float64)
    if weights.ndim != 2 or weights.shape[0] != weights.shape[1] or not len(weights):
        raise ValueError(f"log_weights has the shape {weights.shape}, expected (n, n) with n >= 1")
    np.fill_diagonal(weights, 0.0)
    if not np.isfinite(weights).all() or not np.array_equal(weights, weights.T):
        raise ValueError("log_weights must be finite and symmetric off the diagonal")
    return weights
