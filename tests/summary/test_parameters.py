"""Summaries of parameter columns: weights count as repeats do, and the effective size is honest about replicates."""

import numpy as np
import pytest

from vaiphy.summary.parameters import density, model_parameters, tree_parameters
from vaiphy.trees.sample import TreeSample

CHILDREN = np.array([[[1, 2]]], dtype=np.int32)


def sample_of(columns, weights, replicate=None):
    n = len(weights)
    zero = np.zeros(n, np.int32)
    return TreeSample(
        ("a", "b", "c"), CHILDREN, zero, np.full((n, 4), 0.1), np.log(np.asarray(weights) / np.sum(weights)),
        zero if replicate is None else np.asarray(replicate, np.int32), parameters=columns,
    )  # fmt: skip


def test_columns_of_the_model_and_of_the_trees_are_kept_apart():
    x = np.arange(5.0)
    sample = sample_of({"LnL": x, "LnPr": x, "TL": x, "kappa": x, "pi(A)": x}, np.ones(5))
    assert [row.name for row in model_parameters(sample)] == ["kappa", "pi(A)"]
    assert [row.name for row in tree_parameters(sample)] == ["LnL", "LnPr", "TL"]


def test_figures_of_a_known_distribution():
    rng = np.random.default_rng(1)
    (row,) = model_parameters(sample_of({"x": rng.exponential(size=40_000)}, np.ones(40_000)))
    assert row.mean == pytest.approx(1, abs=0.03)
    assert row.sd == pytest.approx(1, abs=0.03)
    assert row.median == pytest.approx(np.log(2), abs=0.03)
    assert (row.lower, row.upper) == pytest.approx((-np.log(0.975), -np.log(0.025)), abs=0.12)
    assert row.hpd_lower == pytest.approx(0, abs=0.01)
    assert row.hpd_upper == pytest.approx(-np.log(0.05), abs=0.1)
    assert row.ess == pytest.approx(40_000, rel=0.01)


def test_a_weight_counts_as_so_many_repeats():
    x, times = np.array([1.0, 2.0, 5.0, 7.0]), np.array([3, 1, 2, 4])
    (weighted,) = model_parameters(sample_of({"x": x}, times))
    (repeated,) = model_parameters(sample_of({"x": np.repeat(x, times)}, np.ones(10)))
    for name in ("mean", "sd", "hpd_lower", "hpd_upper"):
        assert getattr(weighted, name) == pytest.approx(getattr(repeated, name))


def test_replicates_that_disagree_lower_the_effective_size():
    rng = np.random.default_rng(2)
    replicate = np.repeat(np.arange(4), 500)
    apart = rng.normal(size=2000) + np.array([-1.0, 1.0, -0.5, 0.5])[replicate]
    (row,) = model_parameters(sample_of({"x": apart}, np.ones(2000), replicate))
    assert row.ess < 12
    (row,) = model_parameters(sample_of({"x": rng.normal(size=2000)}, np.ones(2000), replicate))
    assert row.ess > 400


def test_a_column_that_does_not_vary():
    (row,) = model_parameters(sample_of({"x": np.full(6, 2.5)}, np.ones(6)))
    assert (row.mean, row.sd, row.lower, row.upper) == pytest.approx((2.5, 0, 2.5, 2.5))
    points, height = density(np.full(6, 2.5), np.ones(6))
    assert points.tolist() == [pytest.approx(2.5, rel=1e-12)]
    assert height.tolist() == [np.inf]


def test_densities_hold_all_the_probability():
    rng = np.random.default_rng(3)
    x = rng.normal(size=20_000)
    points, height = density(x, np.exp(-0.5 * x))  # weighted: a normal distribution around -0.5
    assert np.trapezoid(height, points) == pytest.approx(1, abs=0.01)
    expected = np.exp(-0.5 * (points + 0.5) ** 2) / np.sqrt(2 * np.pi)
    assert np.abs(height - expected).max() < 0.03


def test_nothing_is_lost_at_the_ends_of_the_range():
    rng = np.random.default_rng(4)
    x = rng.beta(0.9, 1.0, size=20_000)  # highest at zero, and up to one
    points, height = density(x, np.ones(20_000), bounds=(0.0, 1.0))
    assert points[0] >= 0
    assert points[-1] <= 1
    assert np.trapezoid(height, points) == pytest.approx(1, abs=0.01)
    assert height[-5:].mean() == pytest.approx(0.9, abs=0.1)  # the density of Beta(0.9, 1) at one; half of it without reflection
