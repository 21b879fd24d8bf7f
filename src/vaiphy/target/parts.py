"""Sites that share a model."""

from dataclasses import dataclass

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

    @property
    def observed(self) -> tuple[Floats, Floats]:
        """Tips and counts; where only variable sites were scored, the constant patterns follow with count 0."""
        if not self.model.ascertained:
            return self.tips, self.counts
        n, s, _ = self.tips.shape
        constant = np.broadcast_to(np.eye(s), (n, s, s))
        return np.concatenate([self.tips, constant], axis=2), np.concatenate([self.counts, np.zeros(s)])

    @property
    def unobserved(self) -> tuple[Floats, Floats]:
        """One pattern without data, which does not count."""
        return np.ones((self.tips.shape[0], self.tips.shape[1], 1)), np.zeros(1)
