"""A distribution of the model parameters z that can be drawn from and evaluated: a few Student t's and a share of the prior.

One bell is not enough: with gamma rates and invariable sites together, the posterior of alpha and p_inv is a bent ridge whose far
end a single one misses, without any sign of it. Several, fitted by expectation and maximisation, follow the bend.
"""

from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from vaiphy.target import Target

Floats = NDArray[np.float64]
#: No parameters are taken to change the logarithm of the tree length by more.
MOST_SCALING = 2.0


@dataclass(frozen=True)
class ParameterFitting:
    """How the distribution is fitted: `freedom` of the t's; `prior_share` of the prior in the mixture; at most `most_parts` t's,
    one for every `draws_a_part` effective draws; `pseudo`: draws' worth of the common covariance in each one's own (and of a
    diagonal in the common one); `rounds` of expectation and maximisation; `widening`: factor on the standard deviations.
    """

    freedom: float = 6.0
    prior_share: float = 0.05
    most_parts: int = 4
    draws_a_part: float = 40.0
    pseudo: float = 10.0
    rounds: int = 20
    widening: float = 1.1


@dataclass(frozen=True, eq=False)
class ParameterLaw:
    """A mixture of t's (`shares`, `means`, Cholesky factors of their scales) and the prior; without `means`, the prior alone."""

    target: Target
    shares: Floats | None = None
    means: Floats | None = None
    factors: Floats | None = None
    freedom: float = 6.0
    prior_share: float = 0.05

    def sample(self, n: int, rng: np.random.Generator) -> Floats:
        z = self.target.draw_parameters(n, rng)
        if self.shares is None or self.means is None or self.factors is None:
            return z
        learned = rng.random(n) >= self.prior_share
        part = rng.choice(len(self.shares), size=n, p=self.shares)
        normal = rng.standard_normal(z.shape)
        spread = np.sqrt(self.freedom / rng.chisquare(self.freedom, size=(n, 1)))
        drawn = self.means[part] + spread * np.einsum("nij,nj->ni", self.factors[part], normal)
        z[learned] = drawn[learned]
        return z

    def log_density(self, z: Floats) -> Floats:
        prior = self.target.log_parameter_prior(z)
        if self.shares is None or self.means is None or self.factors is None:
            return prior
        d, v = z.shape[1], self.freedom
        terms = [np.full(len(z), log(self.prior_share)) + prior]
        constant = gammaln(0.5 * (v + d)) - gammaln(0.5 * v) - 0.5 * d * log(v * np.pi) + np.log1p(-self.prior_share)
        for share, mean, factor in zip(self.shares, self.means, self.factors):
            log_t = constant - np.log(np.diag(factor)).sum() - 0.5 * (v + d) * np.log1p(_squares(z, mean, factor) / v)
            terms.append(np.log(share) + log_t)
        density: Floats = logsumexp(terms, axis=0)
        return density


def fit(target: Target, z: Floats, weights: Floats, fitting: ParameterFitting) -> ParameterLaw:
    """The mixture fitted to weighted points (weights sum to one)."""
    if not target.n_parameters:
        return ParameterLaw(target)
    effective = float(1.0 / np.square(weights).sum())
    mean, factor = moments(z, weights, effective, fitting.pseudo)
    n_parts = int(np.clip(effective // fitting.draws_a_part, 1, fitting.most_parts))
    shares, means, factors = _mixture(z, weights, effective, mean, factor, n_parts, fitting)
    # A Student t with the same covariance is narrower at its centre.
    shrink = np.sqrt((fitting.freedom - 2.0) / fitting.freedom) * fitting.widening
    return ParameterLaw(target, shares, means, factors * shrink, fitting.freedom, fitting.prior_share)


class LengthScaling(NamedTuple):
    """How the tree length goes with the parameters: its logarithm changes by `slopes` with z, and is as usual at `mean`."""

    mean: Floats
    slopes: Floats

    def factors(self, z: Floats) -> Floats:
        """Factor on the expected lengths of each tree."""
        return np.exp(np.clip(((z - self.mean) * self.slopes).sum(axis=1), -MOST_SCALING, MOST_SCALING))


def length_scaling(z: Floats, lengths: Floats, weights: Floats, pseudo: float) -> tuple[LengthScaling, NDArray]:
    """Fitted to weighted trees; also the Cholesky factor of the covariance of z."""
    mean, factor = moments(z, weights, float(1.0 / np.square(weights).sum()), pseudo)
    size = np.log(lengths[:, 1:].sum(axis=1))
    # Plain sums: matrix products may round otherwise when the arrays lie otherwise in memory.
    apart = weights * (size - (weights * size).sum())
    together = (apart[:, None] * (z - mean)).sum(axis=0)
    return LengthScaling(mean, np.linalg.solve(factor.T, np.linalg.solve(factor, together))), factor


def moments(z: Floats, weights: Floats, effective: float, pseudo: float) -> tuple[Floats, NDArray]:
    """Weighted mean of z and a Cholesky factor of its covariance, shrunk towards its diagonal."""
    mean = (weights[:, None] * z).sum(axis=0)  # not a product: that may round otherwise when arrays lie otherwise in memory
    covariance = _covariance(z - mean, weights)
    trust = effective / (effective + pseudo)
    diagonal = np.diag(np.maximum(np.diag(covariance), 1e-6))
    return mean, np.linalg.cholesky(trust * covariance + (1.0 - trust) * diagonal + 1e-9 * diagonal)


def _mixture(
    z: Floats, weights: Floats, effective: float, mean: Floats, factor: Floats, n_parts: int, fitting: ParameterFitting
) -> tuple[Floats, Floats, Floats]:
    """Shares, means and factors of `n_parts` normal distributions; they start as slices across the most skewed parameter."""
    common = factor @ factor.T
    scaled = (z - mean) / np.sqrt(np.diag(common))
    skewed = int(np.argmax(np.abs(weights @ scaled**3)))
    order = np.argsort(scaled[:, skewed], kind="stable")
    slices = np.minimum((np.cumsum(weights[order]) * n_parts).astype(np.int64), n_parts - 1)
    belongs = np.zeros((n_parts, len(z)))
    belongs[slices, order] = 1.0
    shares, means, factors = np.ones(1), mean[None], factor[None]
    for _ in range(fitting.rounds if n_parts > 1 else 0):
        own = belongs * weights
        shares = np.maximum(own.sum(axis=1), 1e-3)
        shares = shares / shares.sum()
        own = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)
        means = own @ z
        trust = shares * effective / (shares * effective + fitting.pseudo)
        factors = np.stack(
            [np.linalg.cholesky(t * _covariance(z - m, o) + (1.0 - t) * common) for t, m, o in zip(trust, means, own)]
        )
        logs = np.stack(
            [np.log(share) - np.log(np.diag(f)).sum() - 0.5 * _squares(z, m, f) for share, m, f in zip(shares, means, factors)]
        )
        belongs = np.exp(logs - logsumexp(logs, axis=0))
    return shares, means, factors


def _covariance(centred: Floats, weights: Floats) -> Floats:
    covariance: Floats = (weights[:, None] * centred).T @ centred
    return covariance


def _squares(z: Floats, mean: Floats, factor: Floats) -> Floats:
    """Squared distances from the mean in units of the covariance."""
    squares: Floats = (np.linalg.solve(factor, (z - mean).T) ** 2).sum(axis=0)
    return squares
