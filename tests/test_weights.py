"""Weights in log space: stable sums, Pareto fits that recover known tails, tempering, resampling, ASDSF."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaiphy.weights import (
    asdsf,
    effective_sample_size,
    effective_size,
    log_mean_exp,
    log_normalised,
    log_sum_exp,
    normalised,
    pareto_k,
    standard_error,
    systematic,
    tempered,
)


def test_log_mean_exp_is_stable():
    values = np.array([-5000.0, -5000.0 + log(3.0)])
    assert log_mean_exp(values) == pytest.approx(-5000.0 + log(2.0), abs=1e-12)
    assert log_mean_exp(np.full(3, -inf)) == -inf
    assert log_sum_exp(np.array([])) == -inf
    assert log_mean_exp(values + 1e4) == pytest.approx(log_mean_exp(values) + 1e4, abs=1e-9)


def test_effective_sample_size_bounds():
    assert effective_sample_size(np.full(7, -123.0)) == pytest.approx(7.0)
    assert effective_sample_size(np.array([0.0, -1e5, -1e5])) == pytest.approx(1.0)
    assert normalised(np.array([0.0, -inf])).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="no weight"):
        effective_sample_size(np.array([-inf]))
    assert effective_size(np.full(8, 1 / 8)) == pytest.approx(8.0)
    assert effective_size(np.array([1.0, 0.0])) == pytest.approx(1.0)


def test_log_normalised_weights_sum_to_one():
    assert np.exp(log_normalised(np.array([-5000.0, -5001.0, -inf]))).sum() == pytest.approx(1.0)
    assert log_normalised(np.array([])).size == 0


def test_standard_error_matches_spread_between_repeats():
    rng = np.random.default_rng(1)
    rows = rng.normal(-800.0, 0.5, size=(400, 500))
    spread = np.std([log_mean_exp(row) for row in rows], ddof=1)
    assert np.mean([standard_error(row) for row in rows]) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_pareto_k_recovers_known_tails(shape):
    rng = np.random.default_rng(2)
    fits = [pareto_k(-shape * np.log(rng.random(4000)) - 7000.0) for _ in range(20)]
    assert np.mean(fits) == pytest.approx(shape, abs=4 * np.std(fits) / np.sqrt(20) + 0.03)


def test_pareto_k_where_most_weights_are_as_small_as_numbers_get():
    k = pareto_k(np.concatenate([[0.0], np.linspace(-744.0, -730.0, 99)]))
    assert k > 1.0


def test_pareto_k_edges():
    assert pareto_k(np.zeros(10)) == inf  # too few to fit
    assert pareto_k(np.zeros(1000)) == 0.0  # no tail
    assert pareto_k(np.random.default_rng(0).random(1000)) < 0.5  # bounded weights
    with_zeros = np.concatenate([np.random.default_rng(0).normal(size=500), np.full(500, -inf)])
    assert np.isfinite(pareto_k(with_zeros))
    with pytest.raises(ValueError, match="log-weights"):
        pareto_k(np.array([0.0] * 30 + [np.nan]))


def test_tempered_weights():
    log_weights = np.array([0.0, -50.0, -100.0, -101.0])
    weights = tempered(log_weights, 2.0)
    assert effective_size(weights) == pytest.approx(2.0, rel=1e-3)
    assert (np.diff(weights) < 0).all()
    np.testing.assert_allclose(tempered(np.zeros(4), 2.0), 0.25)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.integers(1, 200), st.floats(0, 0.999999))
def test_systematic_resampling_is_within_one_of_expectation(raw, size, uniform):
    weights = np.array(raw) + 1e-6
    weights /= weights.sum()
    counts = np.bincount(systematic(weights, size, uniform), minlength=len(weights))
    assert counts.sum() == size
    assert (np.abs(counts - size * weights) < 1 + 1e-6).all()


def test_asdsf_as_mrbayes_computes_it():
    frequencies = np.array([[0.9, 0.05, 0.5], [0.7, 0.09, 0.5]])
    assert asdsf(frequencies) == pytest.approx((np.sqrt(0.02) + 0) / 2)
    assert np.isnan(asdsf(frequencies[:1]))
