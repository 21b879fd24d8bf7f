"""Resampling: the right number of offspring on average, and exact survivors for given uniforms."""

import numpy as np
import pytest

from vaiphy.csmc.resampling import SCHEMES, ancestors
from vaiphy.kernels.resampling import inverse_cdf

WEIGHTS = np.array([0.05, 0.0, 0.4, 0.25, 0.3])


@pytest.mark.parametrize("function", [inverse_cdf, inverse_cdf.py_func])
def test_inverse_cdf_is_searchsorted(function):
    uniforms = np.sort(np.random.default_rng(1).random(1000))
    chosen = np.empty(1000, dtype=np.int64)
    function(uniforms, WEIGHTS, chosen)
    np.testing.assert_array_equal(chosen, np.searchsorted(np.cumsum(WEIGHTS), uniforms, side="right"))


def test_rounding_never_leaves_the_range():
    chosen = np.empty(1, dtype=np.int64)
    inverse_cdf(np.array([1.0 - 1e-17]), np.array([0.5, 0.5 - 1e-12]), chosen)
    assert chosen[0] == 1


@pytest.mark.parametrize("scheme", SCHEMES)
def test_uniforms_are_sorted_and_uniform(scheme):
    draws = np.array([SCHEMES[scheme](50, rng) for rng in np.random.default_rng(2).spawn(2000)])
    assert (np.diff(draws, axis=1) >= 0).all()
    assert ((draws >= 0) & (draws < 1)).all()
    assert abs(draws.mean() - 0.5) < 0.005


@pytest.mark.parametrize("scheme", SCHEMES)
def test_expected_offspring(scheme):
    counts = np.array([np.bincount(ancestors(scheme, WEIGHTS, rng), minlength=5) for rng in np.random.default_rng(3).spawn(4000)])
    error = counts.std(axis=0, ddof=1) / np.sqrt(len(counts)) + 1e-12
    assert (np.abs(counts.mean(axis=0) - 5 * WEIGHTS) < 4.5 * error).all()


def test_systematic_offspring_differ_by_less_than_one():
    weights = np.random.default_rng(4).dirichlet(np.ones(100))
    counts = np.bincount(ancestors("systematic", weights, np.random.default_rng(5)), minlength=100)
    assert (np.abs(counts - 100 * weights) < 1.0).all()


def test_unknown_scheme():
    with pytest.raises(ValueError, match="'residual' is not one of multinomial"):
        ancestors("residual", WEIGHTS, np.random.default_rng(1))
