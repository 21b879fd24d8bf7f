"""Evidence from importance weights: IWELBO (paper, Eq. 16) and MISELBO, with standard errors and diagnostics.

Everything here takes log-weights log p(X, B, tau) - log q(B, tau) and knows nothing about where they come from. The
mean of the weights estimates the evidence p(X) without bias; its logarithm is, in expectation, a lower bound of log
p(X).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vaiphy.parallel import streams
from vaiphy.weights import effective_sample_size, log_mean_exp, pareto_k

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
    return evidence_of(np.stack(weights))


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
    return evidence_of(np.stack(rows))


def evidence_of(log_weights: Floats) -> Evidence:
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
