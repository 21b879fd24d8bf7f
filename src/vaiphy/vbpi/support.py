"""Trees whose subsplits the network can draw: bootstrap trees of our own, as Zhang takes those of IQ-TREE.

BIONJ trees of resampled sites alone miss splits of DS1 with a tenth of the posterior; climbing on the resampled sites by
likelihood, as a bootstrap of maximum likelihood does, finds them. The regraftings of the best trees fill in what chance has
left out.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches import gamma
from vaiphy.models.jc69 import JC69
from vaiphy.search.climb import climb, neighbours
from vaiphy.search.rearrange import first_of_each
from vaiphy.search.starts import bionj, distances
from vaiphy.target import SimpleTarget
from vaiphy.trees.sample import binary_arrays
from vaiphy.vbpi.settings import Settings
from vaiphy.weights import tempered

Children = NDArray[np.int32]
Floats = NDArray[np.float64]


def bootstrap(patterns: SitePatterns, settings: Settings, rng: np.random.Generator) -> tuple[Children, Floats]:
    """One bootstrap tree: resampled sites, their BIONJ tree, and a climb from it on the same sites."""
    counts = rng.multinomial(int(patterns.counts.sum()), patterns.counts / patterns.counts.sum()).astype(np.float64)
    return _climbed(replace(patterns, counts=counts), settings)


def best_tree(patterns: SitePatterns, settings: Settings) -> tuple[Children, Floats]:
    """Where a climb on the data themselves ends."""
    return _climbed(patterns, settings)


@dataclass(frozen=True, eq=False)
class Support:
    """Distinct topologies (T, n-2, 2), Gammas of their branch lengths given the data, (T, 2n-2), and weights to start from."""

    trees: Children
    shapes: Floats
    rates: Floats
    weights: Floats


def fitted(patterns: SitePatterns, trees: Children, lengths: Floats, settings: Settings) -> Support:
    """Each topology once, and good neighbours of the best ones, branch lengths fitted to all the data.

    Half of the weight is the same for all trees, half goes by their masses (estimates of log p(X | topology)), tempered until
    a number of trees count. With bootstrap frequencies alone an island of trees that few resampled data sets lead to is
    forgotten in training, though it may have most of the posterior (DS1 has one such).
    """
    trees, lengths = _distinct(trees, lengths)
    target = SimpleTarget(patterns, JC69, settings.prior_rate)
    law = gamma.fit(trees, lengths, target)
    for place in np.argsort(-law.masses, kind="stable")[: settings.expansions].tolist():
        near, starts, _ = neighbours(target, trees[place], law.modes[place], settings.margin, settings.neighbours)
        trees, lengths = np.concatenate([trees, near]), np.concatenate([lengths, starts])
    trees, lengths = _distinct(trees, lengths)
    law = gamma.fit(trees, lengths, target)
    by_mass = tempered(law.masses, min(settings.least_effective, len(trees) / 2))
    return Support(trees, law.shapes, law.rates, 0.5 / len(trees) + 0.5 * by_mass / by_mass.sum())


def _distinct(trees: Children, lengths: Floats) -> tuple[Children, Floats]:
    first = first_of_each(trees)
    return np.ascontiguousarray(trees[first]), np.ascontiguousarray(lengths[first])


def _climbed(patterns: SitePatterns, settings: Settings) -> tuple[Children, Floats]:
    """Where a climb from the BIONJ tree ends."""
    target = SimpleTarget(patterns, JC69, settings.prior_rate)
    return climb(target, *binary_arrays(bionj(distances(patterns), patterns.taxa)))
