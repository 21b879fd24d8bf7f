"""Particles out: rooted arrays from the list of vertices, and the unrooted trees they stand for."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc.forest import Forest
from vaiphy.kernels import particle_trees


def rooted_arrays(forest: Forest) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Finished particles as `children` (K, n-1, 2) and `lengths` (K, 2n-1); children before parents, the root last."""
    n, n_particles = forest.n_taxa, forest.n_particles
    children = np.empty((n_particles, n - 1, 2), dtype=np.int32)
    lengths = np.zeros((n_particles, 2 * n - 1))
    particle_trees.flatten(forest.roots[:, 0], forest.children, forest.lengths, n, children, lengths)
    return children, lengths


def unrooted_arrays(children: NDArray[np.int32], lengths: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Binary arrays rooted at taxon 0: the root of degree two is suppressed, its two branches added."""
    n_trees, n = children.shape[0], children.shape[1] + 1
    out_children = np.empty((n_trees, n - 2, 2), dtype=np.int32)
    out_lengths = np.zeros((n_trees, 2 * n - 2))
    particle_trees.unroot(children, lengths, out_children, out_lengths)
    return out_children, out_lengths
