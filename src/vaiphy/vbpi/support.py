"""Trees whose subsplits the network can draw: bootstrap trees of our own, as Zhang takes those of IQ-TREE.

BIONJ trees of resampled sites alone miss splits of DS1 with a tenth of the posterior; climbing on the resampled sites by
likelihood, as a bootstrap of maximum likelihood does, finds them. The regraftings of the data's own best tree fill in what
chance has left out.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches import gamma
from vaiphy.search.climb import bootstrap_tree, climb, neighbours
from vaiphy.search.rearrange import Problem, first_of_each
from vaiphy.vbpi.settings import Settings

Children = NDArray[np.int32]
Floats = NDArray[np.float64]


def bootstrap(patterns: SitePatterns, settings: Settings, rng: np.random.Generator) -> tuple[Children, Floats]:
    """One bootstrap tree: resampled sites, their BIONJ tree, and a climb from it on the same sites."""
    counts = rng.multinomial(int(patterns.counts.sum()), patterns.counts / patterns.counts.sum()).astype(np.float64)
    problem = Problem(replace(patterns, counts=counts), settings.prior_rate)
    return climb(problem, *bootstrap_tree(problem, None))


def best_and_neighbours(patterns: SitePatterns, settings: Settings) -> tuple[Children, Floats]:
    """The tree that a climb on the data themselves ends at, and its good neighbours; with lengths."""
    problem = Problem(patterns, settings.prior_rate)
    children, lengths = climb(problem, *bootstrap_tree(problem, None))
    trees, starts, _ = neighbours(problem, children, lengths, settings.margin, settings.neighbours)
    return np.concatenate([children[None], trees]), np.concatenate([lengths[None], starts])


@dataclass(frozen=True, eq=False)
class Support:
    """Distinct topologies (T, n-2, 2), and Gammas of their branch lengths given all the data, (T, 2n-2)."""

    trees: Children
    shapes: Floats
    rates: Floats


def fitted(patterns: SitePatterns, trees: Children, lengths: Floats, prior_rate: float) -> Support:
    """Each topology once, its branch lengths fitted to all the data."""
    first = first_of_each(trees)
    trees = np.ascontiguousarray(trees[first])
    law = gamma.fit(trees, np.ascontiguousarray(lengths[first]), patterns, prior_rate)
    return Support(trees, law.shapes, law.rates)
