"""Distributions over the augmented tree space: n leaves, each hung on one of n - 2 labelled internal vertices that form a tree.

Vertices 0..n-1 are the taxa, n..2n-3 internal. A distribution is one of spanning trees on the internal vertices times
independent categoricals for the leaves (paper, Alg. 3): both factors of the mean-field optimum, which is a product over edges.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Parents = NDArray[np.int32]


class CoreLaw(Protocol):
    """A distribution over spanning trees of the internal vertices, numbered from 0."""

    @property
    def n_vertices(self) -> int: ...

    def sample(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> tuple[Parents, Floats]: ...

    def log_density(self, parents: Parents) -> Floats: ...


@dataclass(frozen=True, eq=False)
class LeafLaw:
    """Each leaf hangs on an internal vertex with probability proportional to exp(log_weights[leaf, vertex])."""

    log_weights: Floats

    @cached_property
    def log_normalisers(self) -> Floats:
        """log of each leaf's total weight, (n_taxa,)."""
        top = self.log_weights.max(axis=1)
        return top + np.log(np.exp(self.log_weights - top[:, None]).sum(axis=1))

    @cached_property
    def log_probabilities(self) -> Floats:
        return self.log_weights - self.log_normalisers[:, None]

    def sample(self, n_trees: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """Internal vertex (from 0) of each leaf, (n_trees, n_taxa)."""
        cumulative = np.cumsum(np.exp(self.log_probabilities), axis=1)
        uniforms = rng.random((n_trees, len(cumulative))) * cumulative[:, -1]
        hosts = np.empty(uniforms.shape, dtype=np.int32)
        for leaf, row in enumerate(cumulative):
            hosts[:, leaf] = np.minimum(np.searchsorted(row, uniforms[:, leaf], side="right"), len(row) - 1)
        return hosts

    def log_density(self, hosts: NDArray[np.int32]) -> Floats:
        return self.log_probabilities[np.arange(hosts.shape[1]), hosts].sum(axis=1)


@dataclass(frozen=True, eq=False)
class AugmentedLaw:
    """Product of a distribution on the internal tree and a distribution on the leaves; trees as parent arrays (T, 2n - 2)."""

    core: CoreLaw
    leaves: LeafLaw

    @property
    def n_taxa(self) -> int:
        return len(self.leaves.log_weights)

    def sample(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> tuple[Parents, Floats]:
        """Trees rooted at the first internal vertex, with their log-densities."""
        core_rng, leaf_rng = rng.spawn(2)
        core, log_core = self.core.sample(n_trees, core_rng, threads)
        hosts = self.leaves.sample(n_trees, leaf_rng)
        n = self.n_taxa
        parents = np.concatenate([hosts + n, np.where(core >= 0, core + n, -1)], axis=1).astype(np.int32)
        return parents, log_core + self.leaves.log_density(hosts)

    def log_density(self, parents: Parents) -> Floats:
        """Log-density of trees rooted at an internal vertex; -inf where a taxon is not a leaf."""
        n = self.n_taxa
        valid = (parents[:, :n] >= n).all(axis=1) & ((parents[:, n:] >= n) | (parents[:, n:] < 0)).all(axis=1)
        result = np.full(len(parents), -np.inf)
        if valid.any():
            core = np.where(parents[valid, n:] >= 0, parents[valid, n:] - n, -1).astype(np.int32)
            result[valid] = self.core.log_density(core) + self.leaves.log_density(parents[valid, :n] - n)
        return result
