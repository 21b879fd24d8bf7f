"""The JC sampler (paper, section 3.3, Alg. 2): branch lengths directly from the Jukes-Cantor model.

With `same` unchanged and `different` changed sites, p_same has the distribution Beta(same + alpha, different + beta) truncated
to p > 1/4 (saturation), and b = f(p_same). The density is divided by the mass above 1/4, so it integrates to one
whatever the counts; sampling never rejects saturated draws one by one, so counts at or beyond saturation cost nothing
extra.

As a distribution over v = 1 - exp(-4b/3) it is the family of `branches.law` with a = 1, that is, under the prior Exp(4/3).
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vaiphy.branches.law import LengthLaw, moments
from vaiphy.models.jc69 import length_of_same

Floats = NDArray[np.float64]
#: Largest share of changed sites that the closed-form lengths admit: just short of saturation.
MAX_CHANGED = 0.7499


def jc_rows(statistics: Floats, prior: tuple[float, float] = (1.0, 1.0)) -> Floats:
    """Distributions (..., 5) from expected counts (..., 4) = [d, s1, s2, s3], under the prior Beta(alpha, beta) on p_same."""
    rows = np.empty((*statistics.shape[:-1], 5))
    rows[..., 0] = 1.0
    rows[..., 1:] = statistics
    rows[..., 1] += prior[1] - 1.0
    rows[..., 2] += prior[0] - 1.0
    return rows


def sample(
    same: ArrayLike, different: ArrayLike, rng: np.random.Generator, prior: tuple[float, float] = (1.0, 1.0)
) -> tuple[Floats, Floats]:
    """One branch length (substitutions per site) for each pair of counts, with its log-density.

    `same` and `different` are expected counts of unchanged and changed sites, broadcast against each other.

    >>> lengths, log_density = sample(1900.0, [0.0, 100.0], np.random.default_rng(1))
    >>> lengths.shape
    (2,)
    """
    return _law(same, different, prior).sample(rng)


def log_density(lengths: ArrayLike, same: ArrayLike, different: ArrayLike, prior: tuple[float, float] = (1.0, 1.0)) -> Floats:
    """Log-density of the JC sampler at branch lengths (paper, Eq. 14-15), truncated to p > 1/4."""
    lengths, same, different = np.broadcast_arrays(
        np.asarray(lengths, dtype=float), np.asarray(same, dtype=float), np.asarray(different, dtype=float)
    )
    return _law(same, different, prior).log_density(lengths.copy())  # kernels take no array that is only a view


def likely_length(statistics: Floats) -> Floats:
    """Closed-form lengths f(1 - (d + 1)/(M + 2)) of counts (..., 4), short of saturation (training in the paper's manner).

    Ambiguous leaf sites count as unchanged when their set holds the ancestor's base.
    """
    changed = (statistics[..., 0] + 1.0) / (statistics.sum(axis=-1) + 2.0)
    return length_of_same(1.0 - np.minimum(changed, MAX_CHANGED))


def _law(same: ArrayLike, different: ArrayLike, prior: tuple[float, float]) -> LengthLaw:
    same, different = np.broadcast_arrays(np.asarray(same, dtype=float), np.asarray(different, dtype=float))
    zero = np.zeros_like(same)
    rows = jc_rows(np.stack([different, same, zero, zero], axis=-1), prior)
    if (rows[..., 1:3] < 0.0).any() or not np.isfinite(rows).all():
        raise ValueError("counts plus the Beta prior's parameters must be at least 1 and finite")
    return LengthLaw(rows, moments(rows).log_norm)
