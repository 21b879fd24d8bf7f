"""Trees of the augmented space: every taxon is a leaf; the n - 2 internal vertices carry labels and may have any degree."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.trees.tree import Tree
from vaiphy.weights import normalised

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AugmentedTrees:
    """Trees of the augmented space with branch lengths: `parents` and `lengths` (T, 2n-2), rooted at an internal vertex.

    Vertices below n are the taxa, all of degree one; internal vertices are labelled and may have any degree.
    `log_density` is log q(tau, B) under the distribution they were drawn from.
    """

    taxa: tuple[str, ...]
    parents: NDArray[np.int32]
    lengths: Floats
    log_density: Floats

    def __len__(self) -> int:
        return len(self.parents)

    def tree(self, index: int) -> Tree:
        """One tree, its internal vertices named; dangling vertices and those of degree two are still there."""
        return Tree(self.taxa, self.parents[index], self.lengths[index], vertex_labels(self.taxa))


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """Weighted trees of the augmented space, with the states at their vertices: (n_internal, 4, n_patterns)."""

    trees: AugmentedTrees
    log_weights: Floats
    states: Floats

    @property
    def n_samples(self) -> int:
        return len(self.trees)

    @property
    def labels(self) -> tuple[str, ...]:
        return vertex_labels(self.trees.taxa)

    @property
    def weights(self) -> Floats:
        return normalised(self.log_weights)

    def tree(self, sample: int) -> Tree:
        return self.trees.tree(sample)

    def to_arrays(self) -> dict[str, NDArray]:
        trees = {name: getattr(self.trees, name) for name in ("parents", "lengths", "log_density")}
        return trees | {"log_weights": self.log_weights, "states": self.states}

    @classmethod
    def from_arrays(cls, taxa: tuple[str, ...], arrays: dict[str, NDArray]) -> "LabelledSample":
        trees = AugmentedTrees(taxa, arrays["parents"], arrays["lengths"], arrays["log_density"])
        return cls(trees, arrays["log_weights"], arrays["states"])


def vertex_labels(taxa: tuple[str, ...]) -> tuple[str, ...]:
    """Labels of all vertices: none for taxa, which have their own, then V1, V2, ... for internal ones."""
    n = len(taxa)
    return ("",) * n + tuple(f"V{k + 1}" for k in range(n - 2))
