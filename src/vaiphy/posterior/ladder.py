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


@dataclass(frozen=True)
class Reach:
    """How far draws are carried at once, and how far a step goes.

    Draws are weighed at most so far that the tail of their weights (Pareto's k, which goes with the temperature) is as light as
    `steady`, where weights have a finite variance; as far as `safe` in any case; and if they carry further than `nearly`, to the
    posterior itself: a stage more would cost much and bring little. At the first temperature a share `reached` of the draws that
    count at zero does so still, or more. Draws of a law say nothing about their tail if they are fewer than `few`, or have less
    of the weight than `nothing`. Trees with a split, and those without, are looked at on their own if the split's share is
    between `known` and 1 - `known`; their k must be below `finite`, but for `chance` standard errors. A last step may be bolder
    by `bolder` of a conditional effective size, if that saves another one.
    """

    steady: float = 0.5
    safe: float = 0.4
    nearly: float = 0.95
    reached: float = 0.8
    few: int = 100
    nothing: float = 0.001
    known: float = 0.05
    finite: float = 0.5
    chance: float = 2.0
    bolder: float = 0.06


REACH = Reach()


def furthest(effective: Callable[[float], float], wanted: float, most: float) -> float:
    """The furthest temperature up to `most` at which draws are still worth `wanted` (bisection)."""
    low, high = 0.0, most
    if effective(most) >= wanted:
        return most
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) >= wanted else (low, middle)
    return max(low, 1e-9)


def next_beta(
    beta: float, gain: Callable[[float], Floats], log_weights: Floats, wanted: float, bolder: float = REACH.bolder
) -> float:
    """The furthest temperature at which the conditional effective size is still `wanted` of all particles (bisection).

    `gain`: log-weights from here to another temperature.
    """
    weights = np.exp(log_weights - log_sum_exp(log_weights))

    def share(new: float) -> float:
        x = gain(new)
        x = np.exp(x - x.max())
        return float((weights @ x) ** 2 / (weights @ (x * x)))

    if share(1.0) >= wanted - bolder:
        return 1.0
    low, high = beta, 1.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share(middle) >= wanted else (low, middle)
    return max(low, beta + 1e-9)
