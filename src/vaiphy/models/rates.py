"""Rates across sites: a gamma distribution in equally probable categories, each at its mean (Yang 1994).

Gamma(alpha, alpha) has mean one. With q_i the quantile of i/k of Gamma(alpha, 1) and F the distribution function of
Gamma(alpha + 1, 1), category i has the mean k (F(q_i+1) - F(q_i)).
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc, gammaincinv

#: Beyond these shapes the categories are what they are at the ends: all rate in the last one, and all rates one.
MIN_SHAPE, MAX_SHAPE = 1e-4, 1e8


def category_means(alpha: NDArray[np.float64], n_categories: int) -> NDArray[np.float64]:
    """Mean rates (N, k) of the categories for shapes (N,), ascending; their average is one.

    Rates of the lowest categories may be zero to the last digit where alpha is small.

    >>> category_means(np.array([0.5]), 4).round(4).tolist()
    [[0.0334, 0.2519, 0.8203, 2.8944]]
    """
    shape = np.clip(np.asarray(alpha, dtype=np.float64), MIN_SHAPE, MAX_SHAPE)[:, None]
    if n_categories == 1:
        return np.ones_like(shape)
    quantile = gammaincinv(shape, np.arange(1, n_categories) / n_categories)
    below = gammainc(shape + 1.0, quantile)
    zero = np.zeros_like(shape)
    means = np.diff(np.concatenate((zero, below), axis=1), axis=1)
    # The last one from the upper tail, which keeps its digits.
    means = n_categories * np.concatenate((np.maximum(means, 0.0), gammaincc(shape + 1.0, quantile[:, -1:])), axis=1)
    return means / means.mean(axis=1, keepdims=True)
