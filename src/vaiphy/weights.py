"""Weights in log space: sums, effective sample size, Pareto k, tempering, resampling, agreement between replicates.

Nothing here knows where the weights come from. The mean of importance weights estimates the evidence without bias.
"""

from math import inf, isfinite, log, sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: Splits rarer than this in every replicate do not enter the average standard deviation of split frequencies.
ASDSF_MINIMUM = 0.1


def log_sum_exp(values: Floats) -> float:
    """log of the sum of exponentials of all elements; -inf for none."""
    values = np.asarray(values, dtype=np.float64)
    top = values.max(initial=-inf)
    if not np.isfinite(top):
        return float(top)
    return float(top + log(np.exp(values - top).sum()))


def log_mean_exp(log_weights: Floats) -> float:
    """log of the mean of exp(log_weights) over all elements."""
    log_weights = np.asarray(log_weights, dtype=np.float64)
    return log_sum_exp(log_weights) - log(log_weights.size) if log_weights.size else -inf


def normalised(log_weights: Floats) -> Floats:
    """Weights that sum to one over all elements."""
    log_weights = np.asarray(log_weights, dtype=np.float64)
    top = log_weights.max(initial=-inf)
    if not np.isfinite(top):
        raise ValueError("no weight is positive and finite")
    weights = np.exp(log_weights - top)
    return weights / weights.sum()


def log_normalised(log_weights: Floats) -> Floats:
    """Log-weights whose exponentials sum to one."""
    return log_weights - log_sum_exp(log_weights)


def effective_sample_size(log_weights: Floats) -> float:
    """Kish's effective number of samples, (sum w)^2 / sum w^2, from 1 to the number of weights."""
    return effective_size(normalised(log_weights))


def effective_size(weights: Floats) -> float:
    """The same of weights that sum to one."""
    return float(1.0 / np.square(weights).sum())


def standard_error(log_weights: Floats) -> float:
    """Standard error of `log_mean_exp(log_weights)` for independent weights, by the delta method."""
    size = np.size(log_weights)
    if size < 2:
        return float("nan")
    relative = normalised(log_weights) * size
    return float(relative.std(ddof=1) / sqrt(size))


def pareto_k(log_weights: Floats) -> float:
    """Shape of the generalised Pareto distribution fitted to the largest weights (Pareto smoothed importance sampling).

    Below 0.5 the weights behave as if of finite variance; up to 0.7 their mean is usable; above it, it is not. Too few
    weights for a fit (fewer than 25) give infinity; weights with no tail at all (the largest are equal) give 0.
    """
    values = np.sort(np.asarray(log_weights, dtype=np.float64).ravel())
    if values.size and (np.isnan(values[-1]) or values[-1] == inf):
        raise ValueError("log-weights must be numbers below infinity")
    n_tail = _tail_size(values.size)
    if n_tail < 5:
        return inf
    values = np.exp(values - values[-1])
    excess = values[-n_tail:] - values[-n_tail - 1]
    if excess[-1] <= 0.0:
        return 0.0
    return _fit_generalised_pareto(excess[excess > 0.0])[0]


def pareto_k_and_error(log_weights: Floats) -> tuple[float, float]:
    """As `pareto_k`, with its standard error: (1 + k) / sqrt(size of the tail), that of the maximum of the likelihood."""
    k = pareto_k(log_weights)
    return k, (1.0 + k) / sqrt(_tail_size(np.size(log_weights))) if isfinite(k) else 0.0


def tempered(log_weights: Floats, least_effective: float) -> Floats:
    """Normalised weights exp(b * log_weights) with the largest b <= 1 that leaves at least so many effective entries."""

    def raised(power: float) -> Floats:
        return normalised(power * (log_weights - log_weights.max()))

    low, high = 0.0, 1.0
    if effective_size(raised(high)) >= least_effective:
        return raised(high)
    for _ in range(40):
        middle = 0.5 * (low + high)
        if effective_size(raised(middle)) < least_effective:
            high = middle
        else:
            low = middle
    return raised(low)


def systematic(weights: NDArray[np.float64], size: int, uniform: float) -> NDArray[np.int64]:
    """Systematic resampling: `size` indices, index i floor(size w_i) or ceil(size w_i) times, ascending.

    `weights` sum to one, `uniform` is one uniform number in [0, 1).
    """
    edges = np.cumsum(weights)
    points = (np.arange(size) + uniform) / size * edges[-1]
    return np.minimum(np.searchsorted(edges, points, side="right"), len(weights) - 1)


def asdsf(replicate_support: Floats, minimum: float = ASDSF_MINIMUM) -> float:
    """Average standard deviation of split frequencies between replicates (n_replicates, n_splits), as MrBayes has it.

    Over the splits whose frequency is at least `minimum` in some replicate; 0 if there are none, NaN for one replicate.
    """
    if len(replicate_support) < 2:
        return float("nan")
    common = replicate_support[:, (replicate_support >= minimum).any(axis=0)]
    return float(common.std(axis=0, ddof=1).mean()) if common.size else 0.0


def asdsf_of_halves(replicate_support: Floats, share: Floats) -> float:
    """As `asdsf`, between every other replicate and the rest, each half pooled by the replicates' shares of the weight."""
    if len(replicate_support) < 2:
        return float("nan")
    halves = [(share[k::2, None] * replicate_support[k::2]).sum(axis=0) / share[k::2].sum() for k in (0, 1)]
    return asdsf(np.stack(halves))


def _tail_size(n_weights: int) -> int:
    return int(min(0.2 * n_weights, 3.0 * sqrt(n_weights)))


def _fit_generalised_pareto(excess: Floats) -> tuple[float, float]:
    """Shape k and scale of a generalised Pareto distribution on sorted positive values (Zhang & Stephens 2009, empirical Bayes).

    The profile likelihood of theta = -k/sigma is averaged over a data-driven grid; k is then shrunk towards 1/2 with
    the weight of ten observations, which matters for short tails only.
    """
    n = excess.size
    n_grid = 30 + int(sqrt(n))
    quartile = excess[int(n / 4.0 + 0.5) - 1] if n >= 2 else excess[0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        theta = 1.0 / excess[-1] + (1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (3.0 * quartile)
        shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
        log_profile = n * (np.log(-theta / shape) - shape - 1.0)
    log_profile[~np.isfinite(log_profile)] = -inf
    if not np.isfinite(log_profile.max()):
        return inf, inf
    weight = normalised(log_profile)
    best = float((np.where(weight > 0.0, theta, 0.0) * weight).sum())  # a point of the grid at infinity has no weight
    k = float(np.log1p(-best * excess).mean())
    return (n * k + 5.0) / (n + 10.0), -k / best
