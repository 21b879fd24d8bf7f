"""Discrete gamma rates: means of categories by numerical integration, and shapes at the ends."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from vaiphy.models.rates import category_means


@pytest.mark.parametrize("alpha", [0.3, 0.5, 1.0, 2.7, 40.0])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_means_of_categories(alpha, k):
    law = gamma(alpha, scale=1 / alpha)
    edges = law.ppf(np.arange(k + 1) / k)
    edges[-1] = law.ppf(1 - 1e-14)
    expected = [k * quad(lambda x: x * law.pdf(x), a, b, epsabs=1e-12)[0] for a, b in pairwise(edges)]
    assert category_means(np.array([alpha]), k)[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("alpha", [1e-300, 1e-6, 1e-4, 1e-3, 0.01, 0.02, 0.1, 1.0, 100.0, 1e4, 1e7, 1e300, np.inf])
def test_any_shape_gives_ascending_rates_of_mean_one(alpha):
    for k in (1, 2, 4, 16, 32):
        means = category_means(np.array([alpha, 0.5]), k)
        assert np.isfinite(means).all()
        assert (means >= 0).all()
        assert means.mean(axis=1) == pytest.approx(1)
        assert (np.diff(means, axis=1) >= -1e-12).all()


def test_ends():
    assert category_means(np.array([1e-4]), 4)[0].tolist() == [0, 0, 0, 4]
    assert category_means(np.array([1e8]), 4)[0] == pytest.approx(1, abs=2e-4)
