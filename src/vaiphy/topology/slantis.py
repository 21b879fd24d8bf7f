"""SLANTIS: sequential look-ahead sampling of spanning trees (paper, section 3.2, Alg. 3 and 4), made exact.

A proposal for trees whose density is a product of Bernoulli trials. The density counts every trial, accepted and
rejected, and replacements are sought among all undecided edges; only so does it sum to one over all spanning trees.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import slantis as kernels
from vaiphy.parallel import chunks, map_threads, streams
from vaiphy.topology.spanning import checked

Floats = NDArray[np.float64]
#: Trees drawn from one random stream; part of what a seed means.
CHUNK = 64


@dataclass(frozen=True)
class Trial:
    """One decision of SLANTIS: `edge` against `other` (None where it was forced)."""

    edge: tuple[int, int]
    other: tuple[int, int] | None
    in_tree: bool
    accepted: bool


@dataclass(frozen=True, eq=False)
class SlantisLaw:
    """Proposal over spanning trees of the complete graph with finite `log_weights` (n, n), symmetric, diagonal ignored.

    With `accepted_only` log-densities count accepted trials only, as the paper's pseudocode does: they do not sum to
    one and are kept to reproduce its numbers.
    """

    log_weights: Floats
    accepted_only: bool = False

    @property
    def n_vertices(self) -> int:
        return len(self.log_weights)

    @cached_property
    def _setup(self) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
        """Trial order, ends of edges, log-weights, vertices by weight, first tree (see `kernels.slantis.decide`)."""
        weights = checked(self.log_weights)
        n = self.n_vertices
        ends = np.stack(np.triu_indices(n, 1), axis=1).astype(np.int64)
        flat = weights[ends[:, 0], ends[:, 1]]
        order = np.empty(len(flat), dtype=np.int64)
        kernels.trial_order(np.argsort(-flat, kind="stable"), ends, n, order)
        np.fill_diagonal(weights, -np.inf)
        # Stable sorting by column keeps edges of equal weight in the order of their index within a row.
        by_weight = np.argsort(-weights, axis=1, kind="stable")[:, : n - 1]
        return order, ends, flat, np.ascontiguousarray(by_weight), order[: n - 1].copy()

    def sample(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> tuple[NDArray[np.int32], Floats]:
        """Draws as parent arrays (n_trees, n) rooted at vertex 0, with their log-densities."""
        parents = np.empty((n_trees, self.n_vertices), dtype=np.int32)
        log_density = np.empty((n_trees, 2))
        parts = chunks(n_trees, CHUNK)
        nothing_wanted = np.empty((1, 0), dtype=np.bool_)

        def run(item: tuple[slice, np.random.Generator]) -> None:
            part, stream = item
            self._decide(False, nothing_wanted, stream, parents[part], log_density[part])

        map_threads(run, list(zip(parts, streams(rng, len(parts)))), threads)
        return parents, log_density[:, int(self.accepted_only)]

    def log_density(self, parents: NDArray[np.int32]) -> Floats:
        """Log-density of trees given as parent arrays (T, n), whatever their roots, by replaying their decisions."""
        replayed = np.empty(parents.shape, dtype=np.int32)
        log_density = np.empty((len(parents), 2))
        self._decide(True, self._holds(parents), np.random.default_rng(0), replayed, log_density)
        return log_density[:, int(self.accepted_only)]

    def trace(self, rng: np.random.Generator) -> tuple[NDArray[np.int32], list[Trial]]:
        """One draw, as a parent array, with all its decisions."""
        ends = self._setup[1]
        parents, log_density = np.empty((1, self.n_vertices), dtype=np.int32), np.empty((1, 2))
        steps = np.zeros((len(ends), 4), dtype=np.int64)
        n_steps = self._decide(False, np.empty((1, 0), dtype=np.bool_), rng, parents, log_density, steps)

        def pair(edge: int) -> tuple[int, int]:
            return int(ends[edge, 0]), int(ends[edge, 1])

        trials = [
            Trial(pair(edge), pair(other) if other >= 0 else None, bool(in_tree), bool(accepted))
            for edge, other, accepted, in_tree in steps[:n_steps].tolist()
        ]
        return parents[0], trials

    def _decide(
        self,
        replay: bool,
        wanted: NDArray[np.bool_],
        rng: np.random.Generator,
        parents: NDArray[np.int32],
        log_density: Floats,
        trace: NDArray[np.int64] | None = None,
    ) -> int:
        n_traced = np.zeros(1, dtype=np.int64)
        steps = np.empty((0, 4), dtype=np.int64) if trace is None else trace
        kernels.decide(*self._setup, replay, wanted, rng, parents, log_density, steps, n_traced)
        return int(n_traced[0])

    def _holds(self, parents: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which edges each tree has, (T, E)."""
        n = self.n_vertices
        tree, vertex = np.nonzero(parents >= 0)
        above = parents[tree, vertex].astype(np.int64)
        low, high = np.minimum(vertex, above), np.maximum(vertex, above)
        holds = np.zeros((len(parents), n * (n - 1) // 2), dtype=np.bool_)
        holds[tree, low * n - low * (low + 1) // 2 + high - low - 1] = True
        return holds
