"""The substitution model and the priors.

JC69: all bases and all changes equally likely; a branch of length b (expected substitutions per site) keeps a base with
probability (1 + 3u)/4 and changes it to each particular other base with probability (1 - u)/4, where u = exp(-4b/3).
"""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

LOG_4 = log(4.0)
#: Branch lengths are kept inside this range by every optimiser (substitutions per site).
MIN_LENGTH, MAX_LENGTH = 1e-8, 20.0


@dataclass(frozen=True)
class Prior:
    """Independent Exp(rate) branch lengths and a uniform topology."""

    rate: float = 10.0

    def log_density(self, lengths: NDArray[np.float64]) -> float:
        """Log prior density of the branch lengths given (all of them; pass only real branches)."""
        return float(lengths.size * log(self.rate) - self.rate * lengths.sum())


def decay(length: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """u(b) = exp(-4b/3)."""
    return np.exp(-4.0 / 3.0 * np.asarray(length, dtype=np.float64))


def length_of_same(p_same: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """f(p) = -3/4 log((4p - 1)/3): the branch length at which a base is kept with probability p > 1/4."""
    return -0.75 * np.log((4.0 * np.asarray(p_same, dtype=np.float64) - 1.0) / 3.0)
