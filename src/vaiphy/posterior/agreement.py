"""How well the bridges agree on the splits of the tree."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import rooted
from vaiphy.posterior.particles import Particles
from vaiphy.posterior.proposal import clade_keys
from vaiphy.weights import asdsf_of_halves, normalised

Floats = NDArray[np.float64]


class SplitFrequencies(NamedTuple):
    """Identities of the splits of a bridge's trees, ascending, and their frequencies."""

    names: NDArray[np.uint64]
    values: Floats


class Supports(NamedTuple):
    """Frequencies of all splits (n_bridges, n_splits) but the trivial ones, and the share of the evidence of each bridge."""

    frequencies: Floats
    share: Floats

    @property
    def pooled(self) -> Floats:
        return (self.share[:, None] * self.frequencies).sum(axis=0)


def frequencies(particles: Sequence[Particles], log_weights: Floats) -> SplitFrequencies:
    """Of particles after each of some sweeps, whose log-weights are the same after each."""
    n_taxa = particles[0].children.shape[1] + 2
    keys, names = clade_keys(n_taxa), []
    for after in particles:
        identity = np.empty((len(after), 2 * n_taxa - 2), dtype=np.uint64)
        rooted.vertex_identities(after.children, after.tops, keys, identity)
        names.append(identity[:, n_taxa:].ravel())
    found, which = np.unique(np.concatenate(names), return_inverse=True)
    weights = np.repeat(normalised(log_weights) / len(particles), n_taxa - 2)
    values = np.bincount(which.ravel(), weights=np.tile(weights, len(particles))).astype(np.float64)
    return SplitFrequencies(found, values)


def supports(bridges: Sequence[SplitFrequencies], log_evidences: Floats) -> Supports:
    """Frequencies of splits in several bridges, side by side."""
    found = np.unique(np.concatenate([one.names for one in bridges]))
    values = np.zeros((len(bridges), len(found)))
    for row, one in zip(values, bridges):
        row[np.searchsorted(found, one.names)] = one.values
    everything = int(np.argmax(values.sum(axis=0)))  # all taxa but the first are a clade of every tree
    return Supports(np.delete(values, everything, axis=1), normalised(log_evidences))


def split_deviation(found: Supports) -> float:
    """Average standard deviation of split frequencies between two halves of the bridges, each weighed by its evidence.

    As in MrBayes, over all splits of at least 0.1 that not every tree has by definition: those that all trees have count too.
    """
    return asdsf_of_halves(found.frequencies, found.share)


def split_error(found: Supports, known: float) -> float:
    """Standard error of a split's frequency by the scatter of the bridges: root mean square over splits that are not known:
    those rarer than `known`, or as nearly in all trees, are."""
    n_bridges = len(found.frequencies)
    if n_bridges < 2:
        return float("nan")
    doubtful = found.frequencies[:, (found.pooled > known) & (found.pooled < 1.0 - known)]
    if not doubtful.size:
        return 0.0
    apart = doubtful - (found.share[:, None] * doubtful).sum(axis=0)
    variance = np.square(found.share[:, None] * apart).sum(axis=0) * n_bridges / (n_bridges - 1)
    return float(np.sqrt(variance.mean()))


def wanted_trees(found: Supports, error: float, known: float) -> float:
    """Independent trees that bring `split_error` down to `error`."""
    doubtful = found.pooled[(found.pooled > known) & (found.pooled < 1.0 - known)]
    return float((doubtful * (1.0 - doubtful)).mean() / error**2) if doubtful.size else 0.0
