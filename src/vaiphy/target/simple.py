"""The posterior of trees and branch lengths under one model that has no parameters: what CSMC's search looks at."""

from dataclasses import dataclass

from vaiphy.alignment import SitePatterns
from vaiphy.models.replacement import Replacement


@dataclass(frozen=True, eq=False)
class SimpleTarget:
    """Patterns that the model can tell apart, the model, and the rate of the exponential prior of branch lengths."""

    patterns: SitePatterns
    model: Replacement
    prior_rate: float

    @property
    def n_taxa(self) -> int:
        return self.patterns.n_taxa
