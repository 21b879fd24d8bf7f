"""The distribution that parameters are proposed from: a density, what is drawn from it, and a bent ridge that it follows."""

import numpy as np
import pytest
from reference.shapes import random_patterns
from reference.topologies import names
from scipy.integrate import dblquad

from vaiphy.posterior.parameter_law import ParameterFitting, fit
from vaiphy.target import target_of

RIDGE = ParameterFitting(draws_a_part=40.0)


def bent(n, rng):
    """A banana: x with a long tail to the left, y bending away from it."""
    x = np.where(rng.random(n) < 0.6, rng.normal(0.0, 0.7, n), -1.0 - rng.exponential(1.5, n))
    return np.column_stack([x, 0.4 * (x < -0.5) * (x + 0.5) + 0.15 * rng.standard_normal(n)])


@pytest.fixture(scope="module")
def target():
    found = target_of(random_patterns(names(4), 5, np.random.default_rng(1)), "JC+I+G4")
    assert found.n_parameters == 2
    return found


@pytest.fixture(scope="module")
def law(target):
    return fit(target, bent(400, np.random.default_rng(1)), np.full(400, 1 / 400), RIDGE)


def test_it_is_a_density(law):
    def density(y, x):
        return float(np.exp(law.log_density(np.array([[x, y]])))[0])

    assert dblquad(density, -30, 12, -20, 12, epsabs=1e-3)[0] == pytest.approx(1.0, abs=0.01)


def test_draws_have_the_density(law):
    """Drawn and integrated probabilities of a few boxes."""
    z = law.sample(40_000, np.random.default_rng(2))
    for low, high in ((-0.5, 0.5), (-2.0, -1.0), (0.5, 1.5)):
        inside = ((z > low) & (z < high)).all(axis=1).mean()
        grid = low + (np.arange(60) + 0.5) / 60 * (high - low)
        points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
        expected = np.exp(law.log_density(points)).mean() * (high - low) ** 2
        assert abs(inside - expected) < 4.5 * np.sqrt(expected / 40_000) + 2e-3 * expected


def test_several_parts_follow_a_bend_that_one_misses(target, law):
    """Mean log-density at fresh points of the ridge: a single t is far lower."""
    fresh = bent(4000, np.random.default_rng(3))
    points = bent(400, np.random.default_rng(1))
    single = fit(target, points, np.full(400, 1 / 400), ParameterFitting(most_parts=1))
    assert len(law.shares) == 4
    assert len(single.shares) == 1
    assert law.log_density(fresh).mean() > single.log_density(fresh).mean() + 0.2


def test_few_points_give_a_single_part(target):
    assert len(fit(target, bent(60, np.random.default_rng(1)), np.full(60, 1 / 60), RIDGE).shares) == 1
