"""Temperatures of a bridge: how far the next may be, and those that were found, fixed for what is reported."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.posterior.parameters import Walk
from vaiphy.weights import log_sum_exp

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ladder:
    """Everything that a reported bridge has fixed beforehand: temperatures and the random walks of the parameters at each."""

    betas: tuple[float, ...]
    walks: tuple[Walk | None, ...]


#: A last step may be so much bolder, if that saves another one.
BOLDER = 0.06


def furthest(effective: Callable[[float], float], wanted: float, most: float) -> float:
    """The furthest temperature up to `most` at which draws are still worth `wanted` (bisection)."""
    low, high = 0.0, most
    if effective(most) >= wanted:
        return most
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= wanted else (low, middle)
    return max(low, 1e-9)


def next_beta(beta: float, gain: Callable[[float], Floats], log_weights: Floats, wanted: float) -> float:
    """The furthest temperature at which the conditional effective size is still `wanted` of all particles (bisection).

    `gain`: log-weights from here to another temperature.
    """
    weights = np.exp(log_weights - log_sum_exp(log_weights))

    def share(new: float) -> float:
        x = gain(new)
        x = np.exp(x - x.max())
        return float((weights @ x) ** 2 / (weights @ (x * x)))

    if share(1.0) >= wanted - BOLDER:
        return 1.0
    low, high = beta, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) >= wanted else (low, middle)
    return max(low, beta + 1e-9)
