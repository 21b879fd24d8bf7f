"""Evidence from importance weights: IWELBO (paper, Eq. 16), MISELBO, standard errors, Pareto k.

Everything here takes log-weights log p(X, B, tau) - log q(B, tau) and knows nothing about where they come from. The
mean of the weights estimates the evidence p(X) without bias; its logarithm is, in expectation, a lower bound of log
p(X).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vaiphy.parallel import streams

Floats = NDArray[np.float64]


class WeightedSampler(Protocol):
    """A proposal for an evidence: draws from it, each with its log-weight log p(X, z) - log q(z)."""

    def sample_log_weights(self, n_samples: int, rng: np.random.Generator, threads: int = 1) -> Floats: ...


Component = TypeVar("Component", bound="MixtureComponent")


class MixtureComponent(Protocol):
    """A proposal that can also be evaluated at the draws of others of its kind."""

    def sample_mixture_log_weights(
        self: Component, components: Sequence[Component], n_samples: int, rng: np.random.Generator, threads: int = 1
    ) -> Floats: ...


@dataclass(frozen=True)
class Evidence:
    """Repeated estimates of a log-evidence from importance weights.

    `mean` and `standard_deviation` are over the repeats' log-estimates (the IWELBO's mean, and the honest spread
    between independent streams); `pooled` is the log of the mean of all weights. `effective_sample_size` and
    `pareto_k` are of the pooled weights: k above 0.7 says that the weights' mean, hence every figure here, cannot be
    trusted as an estimate of the evidence; as a lower bound in expectation it stands.
    """

    log_estimates: Floats
    pooled: float
    n_samples: int
    effective_sample_size: float
    pareto_k: float

    @property
    def mean(self) -> float:
        return float(self.log_estimates.mean())

    @property
    def standard_deviation(self) -> float:
        """Sample standard deviation between repeats (NaN for a single one)."""
        return float(self.log_estimates.std(ddof=1)) if len(self.log_estimates) > 1 else float("nan")

    @property
    def standard_error(self) -> float:
        """Of `mean`."""
        return self.standard_deviation / sqrt(len(self.log_estimates))

    @property
    def trustworthy(self) -> bool:
        return self.pareto_k < 0.7


def iwelbo(
    proposal: WeightedSampler,
    n_samples: int = 3000,
    repeats: int = 10,
    *,
    rng: np.random.Generator,
    threads: int = 1,
) -> Evidence:
    """IWELBO (paper, Eq. 16) with L = `n_samples`, repeated with independent streams.

    In expectation each log-estimate is a lower bound of the log-evidence, tighter with more samples.
    """
    weights = [proposal.sample_log_weights(n_samples, stream, threads) for stream in streams(rng, repeats)]
    return summarise(np.stack(weights))


def miselbo(
    components: Sequence[Component],
    n_samples: int = 3000,
    repeats: int = 10,
    *,
    rng: np.random.Generator,
    threads: int = 1,
) -> Evidence:
    """MISELBO: the importance-weighted bound of the uniform mixture of `components`.

    `n_samples` draws from each component, each weighted against the mixture of all their densities
    (deterministic-mixture importance sampling), so that every draw is evaluated under every component.
    """
    if not components:
        raise ValueError("a mixture needs at least one component")
    rows = []
    for stream in streams(rng, repeats):
        parts = [
            component.sample_mixture_log_weights(components, n_samples, own, threads)
            for component, own in zip(components, streams(stream, len(components)))
        ]
        rows.append(np.concatenate(parts))
    return summarise(np.stack(rows))


def summarise(log_weights: Floats) -> Evidence:
    """Estimates from log-weights of shape (repeats, n_samples)."""
    log_weights = np.atleast_2d(np.asarray(log_weights, dtype=np.float64))
    estimates = np.array([log_mean_exp(row) for row in log_weights])
    return Evidence(
        log_estimates=estimates,
        pooled=log_mean_exp(log_weights),
        n_samples=int(log_weights.shape[1]),
        effective_sample_size=effective_sample_size(log_weights),
        pareto_k=pareto_k(log_weights),
    )


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


def effective_sample_size(log_weights: Floats) -> float:
    """Kish's effective number of samples, (sum w)^2 / sum w^2, from 1 to the number of weights."""
    weights = normalised(log_weights)
    return float(1.0 / np.square(weights).sum())


def standard_error(log_weights: Floats) -> float:
    """Standard error of `log_mean_exp(log_weights)` for independent weights, by the delta method."""
    size = np.size(log_weights)
    if size < 2:
        return float("nan")
    relative = normalised(log_weights) * size
    return float(relative.std(ddof=1) / sqrt(size))


def pareto_k(log_weights: Floats) -> float:
    """Shape of the generalised Pareto law fitted to the largest weights (Pareto smoothed importance sampling).

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


def pareto_smoothed(log_weights: Floats) -> Floats:
    """Log-weights whose largest are replaced by the quantiles of the generalised Pareto law fitted to them (one dimension).

    For averages over weighted samples: a single draw of enormous weight no longer decides them. Ranks are kept, and no weight
    exceeds the largest there was. Weights without a tail to fit are returned as they are.
    """
    order = np.argsort(log_weights, kind="stable")
    values = np.asarray(log_weights, dtype=np.float64)[order]
    n_tail = _tail_size(values.size)
    if n_tail < 5:
        return np.array(log_weights, dtype=np.float64)
    top = values[-1]
    scaled = np.exp(values[-n_tail - 1 :] - top)
    excess = scaled[1:] - scaled[0]
    if excess[0] <= 0.0:
        return np.array(log_weights, dtype=np.float64)
    k, scale = _fit_generalised_pareto(excess)
    if not np.isfinite(k) or not np.isfinite(scale):
        return np.array(log_weights, dtype=np.float64)
    levels = (np.arange(1, n_tail + 1) - 0.5) / n_tail
    stretched = -np.log1p(-levels) if abs(k) < 1e-9 else np.expm1(-k * np.log1p(-levels)) / k
    out = np.array(log_weights, dtype=np.float64)
    out[order[-n_tail:]] = np.minimum(np.log(scaled[0] + scale * stretched), 0.0) + top
    return out


def _tail_size(n_weights: int) -> int:
    return int(min(0.2 * n_weights, 3.0 * sqrt(n_weights)))


def _fit_generalised_pareto(excess: Floats) -> tuple[float, float]:
    """Shape k and scale of a generalised Pareto law on sorted positive values (Zhang & Stephens 2009, empirical Bayes).

    The profile likelihood of theta = -k/sigma is averaged over a data-driven grid; k is then shrunk towards 1/2 with
    the weight of ten observations, which matters for short tails only.
    """
    n = excess.size
    n_grid = 30 + int(sqrt(n))
    quartile = excess[int(n / 4.0 + 0.5) - 1] if n >= 2 else excess[0]
    theta = 1.0 / excess[-1] + (1.0 - np.sqrt(n_grid / (np.arange(1, n_grid + 1) - 0.5))) / (3.0 * quartile)
    with np.errstate(divide="ignore", invalid="ignore"):
        shape = np.log1p(-theta[:, None] * excess).mean(axis=1)
        log_profile = n * (np.log(-theta / shape) - shape - 1.0)
    log_profile[~np.isfinite(log_profile)] = -inf
    if not np.isfinite(log_profile.max()):
        return inf, inf
    weight = normalised(log_profile)
    best = float((theta * weight).sum())
    k = float(np.log1p(-best * excess).mean())
    return (n * k + 5.0) / (n + 10.0), -k / best
