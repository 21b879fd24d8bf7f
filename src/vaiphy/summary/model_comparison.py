"""Models compared by their evidences: Bayes factors and posterior probabilities, all models equally likely beforehand."""

from dataclasses import dataclass
from functools import cached_property
from math import hypot

import numpy as np
from numpy.typing import NDArray

#: 2 ln BF from which a difference is called so (Kass and Raftery 1995).
WORDS = ((10.0, "very strong"), (6.0, "strong"), (2.0, "positive"), (0.0, "not worth more than a bare mention"))


@dataclass(frozen=True)
class ModelEvidence:
    """A model's log evidence with its standard error; `reasons` speak against it if it did not converge.

    `n_parameters` counts the free parameters of models and rates of parts, branch lengths not among them.
    """

    model: str
    log_evidence: float
    std_error: float
    n_parameters: int
    converged: bool
    reasons: tuple[str, ...] = ()
    started_from: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class ModelComparison:
    """Models by falling evidence."""

    rows: tuple[ModelEvidence, ...]

    @property
    def best(self) -> ModelEvidence:
        return self.rows[0]

    @cached_property
    def twice_log_bayes_factors(self) -> NDArray[np.float64]:
        """2 ln of the Bayes factor of the best model against each."""
        return np.array([2.0 * (self.best.log_evidence - row.log_evidence) for row in self.rows])

    @cached_property
    def errors(self) -> NDArray[np.float64]:
        """Standard errors of `twice_log_bayes_factors`."""
        return np.array([0.0, *(2.0 * hypot(row.std_error, self.best.std_error) for row in self.rows[1:])])

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """Posterior probabilities of the models, all equally likely beforehand."""
        weights = np.exp(-0.5 * self.twice_log_bayes_factors)
        return weights / weights.sum()

    def verdict(self) -> str:
        """Which model won, and by how much."""
        if len(self.rows) == 1:
            return f"{self.best.model} is the only model"
        value, error = float(self.twice_log_bayes_factors[1]), float(self.errors[1])
        strength = next(word for least, word in WORDS if value >= least)
        unsure = "; within the errors the two could change places" if value < 2.0 * error else ""
        return f"{self.best.model} wins over {self.rows[1].model} by 2 ln BF = {value:.2f} ± {error:.2f} ({strength}{unsure})"


def compared(rows: list[ModelEvidence]) -> ModelComparison:
    """The models sorted; raises ValueError without any."""
    if not rows:
        raise ValueError("no models to compare")
    return ModelComparison(tuple(sorted(rows, key=lambda row: -row.log_evidence)))
