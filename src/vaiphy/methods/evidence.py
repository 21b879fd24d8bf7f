"""The posterior method tuned for its evidence alone, for comparing models; it may start from the trees of another model."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods.posterior import PosteriorMethod, tuning_for
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import target_for
from vaiphy.posterior import states
from vaiphy.posterior.settings import Settings as Tuning
from vaiphy.posterior.starts import GivenTrees
from vaiphy.target import Target
from vaiphy.trees.sample import TreeSample
from vaiphy.weights import systematic

#: Trees of a sample that the next model starts from, and searches that do so.
N_GIVEN, REPLICATES = 1000, 2


class EvidenceMethod(PosteriorMethod):
    """`PosteriorMethod` without what trees need beyond the evidence.

    With `given` trees fewer replicates are needed, and their bridges are short. They matter before the first step alone: a
    saved state holds what came of them.
    """

    def __init__(self, given: GivenTrees | None = None, reused: bool = False) -> None:
        self._given, self._reused = given, reused or given is not None

    def initialise(self, patterns: SitePatterns, settings: Settings) -> Any:
        target = target_for(patterns, settings)
        return states.initialise(target, self.tuning(target, settings), settings.seed, self._given)

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> Any:
        target = target_for(patterns, settings)
        return states.from_arrays(arrays, target, self.tuning(target, settings))

    def tuning(self, target: Target, settings: Settings) -> Tuning:
        # Where gamma and invariable sites compete the posterior of their parameters is bent, and few particles miss its tail.
        bent = any(part.model.string.gamma and part.model.string.invariable for part in target.parts)
        few, trees = (384, 300.0) if bent else (96, 100.0)
        usual = tuning_for(settings, target)
        quick = replace(usual, min_effective=trees, max_deviation=1.0, max_split_error=1.0, sweep_share=0.0, min_particles=few)
        return replace(quick, kinds=("given",), replicates=REPLICATES) if self._reused else quick


def given_trees(sample: TreeSample) -> GivenTrees:
    """Trees of a weighted sample, few enough to fit a proposal to at once."""
    chosen = systematic(sample.weights, min(N_GIVEN, sample.n_samples), 0.5)
    size = len(chosen)
    return GivenTrees(sample.children[sample.topology[chosen]], sample.lengths[chosen], np.full(size, 1.0 / size))
