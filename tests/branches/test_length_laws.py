"""Branch-length laws: normalised, right at the extremes, and sampled as their densities say."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln
from scipy.stats import beta, kstest

from vaiphy.branches import jc_sampler
from vaiphy.branches.law import LengthLaw, moments
from vaiphy.branches.optimal import optimal_rows
from vaiphy.kernels import lengths as kernels

CASES = [
    (7.5, 0.0, 0.0, 0.0, 0.0),
    (7.5, 0.0, 2000.0, 0.0, 0.0),
    (1.0, 0.0, 2000.0, 0.0, 0.0),
    (7.5, 0.3, 1949.0, 0.0, 0.0),
    (7.5, 5.0, 100.0, 0.0, 0.0),
    (1.0, 1500.0, 500.0, 0.0, 0.0),
    (1.0, 2000.0, 0.0, 0.0, 0.0),
    (7.5, 200.0, 1800.0, 30.0, 5.0),
    (7.5, 2.0, 10.0, 500.0, 40.0),
    (1.0, 0.0, 0.0, 0.0, 0.0),
    (75.0, 3.0, 3.0, 0.0, 0.0),
]


def log_kernel(a, d, s1, s2, s3, v):
    value = (a - 1) * np.log1p(-v) + s1 * np.log1p(-0.75 * v) + s2 * np.log1p(-0.5 * v) + s3 * np.log1p(-0.25 * v)
    return value + (d * np.log(v) if d else 0.0)


@pytest.mark.parametrize("case", CASES)
def test_normaliser_and_moments_against_adaptive_quadrature(case):
    found = moments(np.array([case]))
    v = (np.arange(200_001)[1:-1]) / 200_000
    values = log_kernel(*case, v)
    centre, top = v[values.argmax()], values.max()
    factors = (1e-4, 1e-3, 0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.3, 2, 4, 40)
    points = sorted({0.0, *(min(1.0, centre * factor) for factor in factors), 1.0})

    def integral(function):
        def integrand(x):
            return function(x) * np.exp(log_kernel(*case, x) - top)

        return sum(quad(integrand, *piece, epsabs=1e-15, epsrel=1e-10, limit=200)[0] for piece in pairwise(points))

    total = integral(lambda x: 1.0)
    assert found.log_norm[0] == pytest.approx(top + np.log(total), abs=2e-9)
    for value, function in [
        (found.log_changed, np.log),
        (found.log_same, lambda x: np.log1p(-0.75 * x)),
        (found.length, lambda x: -0.75 * np.log1p(-x)),
    ]:
        assert value[0] == pytest.approx(integral(function) / total, rel=1e-7)
    if case[3] + case[4] > 0:
        assert found.log_within_2[0] == pytest.approx(integral(lambda x: np.log1p(-0.5 * x)) / total, rel=1e-7)
        assert found.log_within_3[0] == pytest.approx(integral(lambda x: np.log1p(-0.25 * x)) / total, rel=1e-7)


@pytest.mark.parametrize("case", CASES)
def test_samples_follow_the_density(case):
    law = LengthLaw(np.tile(case, (20_000, 1)), np.repeat(moments(np.array([case])).log_norm, 20_000))
    lengths, log_density = law.sample(np.random.default_rng(1))
    assert (lengths >= 0).all()
    np.testing.assert_allclose(law.log_density(lengths), log_density, rtol=1e-12)
    v = np.sort(-np.expm1(-4 / 3 * lengths))
    grid = np.unique(np.quantile(v, np.linspace(0, 1, 4001)))
    grid = np.concatenate([[0.0 if case[1] == 0 else grid[0] * 0.5], grid, [min(1 - 1e-15, 1.5 * grid[-1])]])
    fine = np.linspace(grid[:-1], grid[1:], 9, axis=1)
    with np.errstate(divide="ignore"):
        density = np.exp(log_kernel(*case, np.minimum(fine, 1 - 1e-15)) - law.log_norm[0])
    cumulative = np.concatenate([[0.0], np.cumsum(np.trapezoid(density, fine, axis=1))])
    assert cumulative[-1] == pytest.approx(1.0, abs=2e-3)
    assert kstest(v, lambda x: np.interp(x, grid, cumulative)).pvalue > 1e-4


@pytest.mark.parametrize(("sites", "changed"), [(2000, 0), (2000, 100), (2000, 1500), (2000, 1530), (2000, 2000), (0, 0), (1, 1)])
def test_jc_density_against_the_truncated_beta(sites, changed):
    lengths = np.array([1e-6, 0.001, 0.05, 0.3, 1.0, 3.0])
    p = 0.25 + 0.75 * np.exp(-4 / 3 * lengths)
    # Above p = 1/4: the mass of Beta(same + 1, different + 1), as the lower tail of 1 - p.
    log_mass = beta.logcdf(0.75, changed + 1, sites - changed + 1)
    expected = (
        (sites - changed) * np.log(p)
        + changed * np.log1p(-p)
        - betaln(sites - changed + 1, changed + 1)
        - 4 / 3 * lengths
        - log_mass
    )
    np.testing.assert_allclose(jc_sampler.log_density(lengths, sites - changed, changed), expected, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("changed", [0.0, 0.4, 50.0, 1490.0, 1500.0, 2000.0])
def test_jc_density_integrates_to_one(changed):
    def density(length):
        return float(np.exp(jc_sampler.log_density(length, 2000.0 - changed, changed)))

    lengths, _ = jc_sampler.sample(np.full(2000, 2000.0 - changed), changed, np.random.default_rng(1))
    longest = lengths.max()
    inner = np.quantile(lengths, np.linspace(0.0, 1.0, 15)).tolist()
    cuts = [0.0, *inner, 1.5 * longest, 2.0 * longest, 4.0 * longest, 40.0]
    assert sum(quad(density, low, high, limit=200)[0] for low, high in pairwise(cuts)) == pytest.approx(1.0, abs=1e-6)


def test_jc_lengths_grow_with_changes_and_stay_finite():
    rng = np.random.default_rng(2)
    changed = np.array([0.0, 20.0, 200.0, 1000.0, 1500.0, 2000.0])
    lengths, log_density = jc_sampler.sample(2000.0 - changed, np.tile(changed, (500, 1)), rng)
    assert lengths.shape == (500, 6)
    assert np.isfinite(lengths).all()
    assert np.isfinite(log_density).all()
    assert (np.diff(lengths.mean(axis=0)) > 0).all()


def test_beta_prior_moves_the_law():
    rng = np.random.default_rng(3)
    plain, _ = jc_sampler.sample(np.full(4000, 10.0), 2.0, rng)
    skewed, _ = jc_sampler.sample(np.full(4000, 10.0), 2.0, rng, prior=(50.0, 1.0))
    assert skewed.mean() < 0.3 * plain.mean()
    counted, _ = jc_sampler.sample(np.full(4000, 59.0), 2.0, rng)
    assert skewed.mean() == pytest.approx(counted.mean(), rel=0.1)
    with pytest.raises(ValueError, match="prior"):
        jc_sampler.sample(0.0, 0.0, rng, prior=(0.5, 1.0))


def test_share_of_the_prior():
    rows = optimal_rows(np.array([[3.0, 200.0, 0.0, 0.0]]).repeat(50_000, axis=0))
    norm = moments(rows[:1]).log_norm.repeat(50_000)
    law = LengthLaw(rows, norm, prior_share=0.2, prior_rate=10.0)
    lengths, log_density = law.sample(np.random.default_rng(4))
    prior = np.log(10.0) - 10.0 * lengths
    ratio = np.exp(prior - log_density)
    assert ratio.max() <= 5.0 + 1e-9
    assert abs(ratio.mean() - 1.0) < 4 * ratio.std() / np.sqrt(len(ratio))


def test_closed_form_lengths_stay_finite():
    found = jc_sampler.likely_length(np.array([[0.0, 0.0, 0, 0], [0.0, 100.0, 0, 0], [75.0, 25.0, 0, 0], [100.0, 0.0, 0, 0]]))
    assert np.isfinite(found).all()
    assert found[1] < found[0] < found[2] <= found[3]


def test_kernels_equal_their_plain_selves():
    rows = np.array(CASES)
    fast, slow = np.empty((len(rows), 6)), np.empty((len(rows), 6))
    kernels.moments(rows, fast)
    original = {
        name: getattr(kernels, name) for name in ("peak", "integrate", "log_kernel", "draw", "draw_length", "log_length_density")
    }
    try:
        for name, function in original.items():
            setattr(kernels, name, function.py_func)
        kernels.moments.py_func(rows, slow)
        plain = np.empty(len(rows)), np.empty(len(rows))
        kernels.sample.py_func(rows, fast[:, 0].copy(), np.random.default_rng(1), 0.1, 10.0, *plain)
    finally:
        for name, function in original.items():
            setattr(kernels, name, function)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    compiled = np.empty(len(rows)), np.empty(len(rows))
    kernels.sample(rows, fast[:, 0].copy(), np.random.default_rng(1), 0.1, 10.0, *compiled)
    np.testing.assert_allclose(compiled, plain, rtol=1e-9)


def test_laws_that_cannot_be_sampled_are_refused():
    with pytest.raises(ValueError, match="prior rate"):
        LengthLaw(np.array([[0.5, 1.0, 1.0, 0.0, 0.0]]), np.zeros(1))
    with pytest.raises(ValueError, match="prior_share"):
        LengthLaw(np.array([[2.0, 1.0, 1.0, 0.0, 0.0]]), np.zeros(1), prior_share=1.0)
