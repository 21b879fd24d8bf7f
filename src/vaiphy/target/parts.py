"""Sites that share a model."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.models.substitution import Model

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Part:
    """Sites that share a model: `tips` (n_taxa, S, P) float64, `counts` (P,).

    `patterns` (P,): which of the alignment's patterns these are; None where several were merged into one.
    """

    name: str
    tips: Floats
    counts: Floats
    model: Model
    patterns: NDArray[np.int64] | None = None

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """Patterns by how often they occur, those of count 1 after all that occur more often (or a part of once)."""
        key = np.where(self.counts == 1.0, 1, np.where(self.counts == 0.0, 0, 2))
        return np.argsort(-key, kind="stable")

    @property
    def observed(self) -> tuple[Floats, Floats]:
        """Tips and counts in that order; where only variable sites were scored, the constant patterns follow with count 0."""
        tips, counts = self.tips[:, :, self.order], self.counts[self.order]
        if not self.model.ascertained:
            return tips, counts
        n, s, _ = self.tips.shape
        constant = np.broadcast_to(np.eye(s), (n, s, s))
        return np.concatenate([tips, constant], axis=2), np.concatenate([counts, np.zeros(s)])

    @property
    def unobserved(self) -> tuple[Floats, Floats]:
        """One pattern without data, which does not count."""
        return np.ones((self.tips.shape[0], self.tips.shape[1], 1)), np.zeros(1)
