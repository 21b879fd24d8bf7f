"""The substitution model and the priors.

JC69: all bases and all changes equally likely; a branch of length b (expected substitutions per site) keeps a base with
probability (1 + 3u)/4 and changes it to each particular other base with probability (1 - u)/4, where u = exp(-4b/3).
"""

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

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


def log_double_factorial(n: int) -> float:
    """log n!! for odd n >= -1."""
    k = (n + 1) // 2
    return float(gammaln(2 * k + 1) - k * log(2.0) - gammaln(k + 1))


def log_n_unrooted(n_taxa: int) -> float:
    """Log number of unrooted binary topologies, (2n - 5)!!."""
    return log_double_factorial(2 * n_taxa - 5) if n_taxa >= 3 else 0.0


def log_n_rooted(n_taxa: int) -> float:
    """Log number of rooted binary topologies, (2n - 3)!!."""
    return log_double_factorial(2 * n_taxa - 3) if n_taxa >= 2 else 0.0


def log_n_augmented(n_taxa: int) -> float:
    """Log number of trees on 2n - 2 labelled vertices of which n are leaves, (n - 2)^(2n - 4)."""
    return (2 * n_taxa - 4) * log(n_taxa - 2) if n_taxa >= 3 else 0.0
