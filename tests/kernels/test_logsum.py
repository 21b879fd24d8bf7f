"""The vectorised logarithm: accuracy over the whole range, and the exact way where it does not hold."""

from math import inf

import numpy as np
import pytest

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.logsum import TINIEST, log_product, quick_log, weighted_log_sum


@inlined
def logs_of(values, out):
    for i in range(values.shape[0]):
        out[i] = quick_log(values[i])


@inlined
def product_into(values, begin, end, least, out):
    out[0] = log_product(values, begin, end, least)


def quick(values):
    out = np.empty_like(values)
    logs_of(values, out)
    return out


def relative_error(values):
    exact = np.log(values.astype(np.longdouble))
    return np.abs((quick(values) - exact) / np.where(exact == 0, 1, exact)).max()


def test_relative_error_over_all_exponents():
    rng = np.random.default_rng(1)
    values = np.ldexp(rng.uniform(1.0, 2.0, 200_000), rng.integers(-1022, 1023, 200_000))
    assert relative_error(values) < 1e-15


def test_relative_error_where_the_logarithm_is_small():
    rng = np.random.default_rng(2)
    for width in (0.5, 1e-2, 1e-5, 1e-9):
        assert relative_error(1.0 + rng.uniform(-width, width, 100_000)) < 1e-15


def test_ends_and_powers_of_two():
    values = np.array([TINIEST, 0.25, 0.5, 1.0, 2.0, 4.0, np.finfo(float).max, np.sqrt(2.0), np.nextafter(1.0, 0.0)])
    assert quick(values) == pytest.approx(np.log(values), rel=1e-15)
    assert quick(np.ones(1))[0] == 0.0


@pytest.mark.parametrize("width", [1, 3, 8, 255])
def test_weighted_sum(width):
    rng = np.random.default_rng(width)
    values, counts = rng.gamma(0.3, size=300) + 1e-300, rng.integers(1, 9, 300).astype(float)
    expected = counts[40 : 40 + width] @ np.log(values[:width])
    assert weighted_log_sum(values, counts, 40, width) == pytest.approx(expected, rel=1e-14)
    # The plain Python of the sum around the compiled logarithm.
    assert weighted_log_sum.py_func(values, counts, 40, width) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(("begin", "end"), [(0, 0), (0, 1), (3, 515), (1, 2000)])
def test_log_of_a_product(begin, end):
    rng = np.random.default_rng(begin + end)
    values, out = np.ldexp(rng.uniform(1.0, 2.0, 2000), rng.integers(-990, 1000, 2000)), np.empty(1)
    values[1::7] = 0.0
    product_into(values, begin, end, 1e-300, out)
    expected = np.log(np.maximum(values[begin:end], 1e-300)).sum()
    assert out[0] == pytest.approx(expected, rel=1e-14, abs=1e-12)


@pytest.mark.parametrize(("odd", "expected"), [(0.0, -inf), (inf, inf), (5e-324, np.log(5e-324)), (1e-310, np.log(1e-310))])
def test_one_odd_value_takes_the_exact_way(odd, expected):
    values = np.array([1.0, odd, 1.0])
    assert weighted_log_sum(values, np.ones(3), 0, 3) == pytest.approx(expected, rel=1e-14)


def test_nan_and_negative_are_not_hidden():
    for odd in (np.nan, -1.0):
        assert np.isnan(weighted_log_sum(np.array([0.5, odd]), np.ones(2), 0, 2))
