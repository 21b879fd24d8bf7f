"""Resampling schemes. Each turns random numbers into sorted uniforms; the survivors follow from those alone."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels.resampling import inverse_cdf


def multinomial(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Sorted independent uniforms, from the spacings of a Poisson process."""
    arrivals = np.cumsum(rng.exponential(size=n + 1))
    return arrivals[:-1] / arrivals[-1]


def stratified(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """One uniform in each of n equal intervals."""
    return (np.arange(n) + rng.random(n)) / n


def systematic(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """One uniform, repeated at equal distances: the least variance in the numbers of offspring."""
    return (np.arange(n) + rng.random()) / n


SCHEMES: dict[str, Callable[[int, np.random.Generator], NDArray[np.float64]]] = {
    "multinomial": multinomial,
    "stratified": stratified,
    "systematic": systematic,
}


def ancestors(scheme: str, weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices of the surviving particles, ascending; `weights` are normalised. Each i has n * weights[i] offspring on average."""
    if scheme not in SCHEMES:
        raise ValueError(f"resampling {scheme!r} is not one of {', '.join(SCHEMES)}")
    chosen = np.empty(len(weights), dtype=np.int64)
    inverse_cdf(SCHEMES[scheme](len(weights), rng), weights, chosen)
    return chosen
