"""An order of trees in which neighbours share splits, for systematic resampling.

Systematic resampling takes as many trees from every stretch of the order as its weight says, but for one. Where a stretch holds
the trees of a split, the split's frequency is kept: resampling adds little to the error of frequencies of splits. Any order that
depends on the trees and weights alone leaves it unbiased.
"""

import numpy as np
from numpy.typing import NDArray

from vaiphy.posterior.particles import Particles
from vaiphy.posterior.tree_law import splits_in

#: Splits that the order goes by; splits rarer than this, or as nearly in all trees, do not count.
MOST_SPLITS, RARE = 14, 0.005


def by_splits(particles: Particles, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """The order, for weights that sum to one: first by the split that says most about all others, then by the next, ...

    Where one split changes, the next is passed backwards (as in a Gray code), so that trees on both sides of the change agree in
    it.
    """
    has = _doubtful(particles, weights)
    share = (weights[:, None] * has).sum(axis=0)
    apart = (has - share) * np.sqrt(weights)[:, None]
    together = apart.T @ apart
    place, backwards = np.zeros(len(weights), dtype=np.int64), np.zeros(len(weights), dtype=bool)
    for _ in range(min(MOST_SPLITS, has.shape[1])):
        own = np.diag(together)
        said = np.where(own > 1e-6, np.square(together).sum(axis=0) / np.maximum(own, 1e-12), 0.0)
        split = int(np.argmax(said))
        if said[split] <= 0.0:
            break
        place = 2 * place + (has[:, split] ^ backwards)
        backwards = has[:, split]
        together = together - np.outer(together[:, split], together[:, split]) / together[split, split]
    return np.argsort(place, kind="stable")


def _doubtful(particles: Particles, weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which trees have which of the splits that are neither rare nor in nearly all trees."""
    n = particles.children.shape[1] + 2
    found, which = splits_in(particles.children, particles.tops)
    share = np.bincount(which.ravel(), weights=np.repeat(weights, n - 2), minlength=len(found))
    seen = np.flatnonzero((share > RARE) & (share < 1.0 - RARE))
    column = np.full(len(found), len(seen))
    column[seen] = np.arange(len(seen))
    has = np.zeros((len(weights), len(seen) + 1), dtype=bool)
    has[np.arange(len(weights))[:, None], column[which]] = True
    return has[:, :-1]
