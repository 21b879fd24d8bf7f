"""Derivatives of the log-likelihood in branch lengths, from the ratios of `kernels.edges`."""

import numpy as np

from vaiphy.likelihood import branch_terms


def branch_derivatives(tree, patterns):
    """First and second derivative of the JC69 log-likelihood in each branch length (0 at the root)."""
    ratio = branch_terms(tree, patterns).ratio
    u = np.exp(-4 / 3 * np.where(np.arange(tree.n_vertices) == tree.root, 0.0, tree.length))
    r = ratio / (1 + u[:, None] * ratio)
    slope, curvature = r @ patterns.counts, -(r * r) @ patterns.counts
    return -4 / 3 * u * slope, 16 / 9 * (u * slope + u * u * curvature)
