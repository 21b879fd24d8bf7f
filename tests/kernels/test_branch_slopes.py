"""Batches of log-likelihoods with their derivatives, against the kernels of single trees; Adam against its formula."""

import numpy as np
import pytest
from reference.derivatives import branch_derivatives
from reference.topologies import names, tree_of

from vaiphy.alignment import Alignment, compress
from vaiphy.kernels.adam import ascend
from vaiphy.kernels.branch_slopes import log_likelihoods_and_slopes
from vaiphy.likelihood import log_likelihood
from vaiphy.models.jc69 import JC69
from vaiphy.models.replacement import replacement


def batch(n_taxa, n_sites, seed, n_trees=3):
    rng = np.random.default_rng(seed)
    codes = rng.choice(np.array([1, 2, 4, 8, 15, 5], dtype=np.uint8), (n_taxa, n_sites), p=[0.3, 0.3, 0.2, 0.1, 0.05, 0.05])
    children = np.empty((n_trees, n_taxa - 2, 2), dtype=np.int32)
    for t in range(n_trees):
        roots = list(range(1, n_taxa))
        for k in range(n_taxa - 2):
            a, b = (roots.pop(int(rng.integers(len(roots)))) for _ in range(2))
            children[t, k] = sorted((a, b))
            roots.append(n_taxa + k)
    lengths = rng.exponential(0.1, (n_trees, 2 * n_taxa - 2))
    lengths[:, 0] = 0.0
    return compress(Alignment(names(n_taxa), codes)), children, lengths


def evaluated(patterns, children, lengths, with_slopes=True, function=log_likelihoods_and_slopes, model=JC69):
    values, slopes = np.empty(len(children)), np.empty_like(lengths)
    function(model.weights, model.beta, children, lengths, patterns.tips, patterns.counts, with_slopes, values, slopes)
    return values, slopes


@pytest.mark.parametrize(("n_taxa", "n_sites"), [(3, 4), (7, 300), (40, 600)])
def test_against_single_trees(n_taxa, n_sites):
    patterns, children, lengths = batch(n_taxa, n_sites, 1)
    values, slopes = evaluated(patterns, children, lengths)
    for t, tree in enumerate(tree_of(c, l) for c, l in zip(children, lengths)):
        assert values[t] == pytest.approx(log_likelihood(tree, patterns), rel=1e-12)
        assert slopes[t, 1:] == pytest.approx(branch_derivatives(tree, patterns)[0][1:], rel=1e-7, abs=1e-7)
    assert evaluated(patterns, children, lengths, False)[0].tolist() == values.tolist()


def test_other_frequencies():
    """Values against single trees under F81, derivatives against their differences."""
    pi = np.array([0.1, 0.2, 0.3, 0.4])
    model = replacement(pi, 1.0 / (1.0 - (pi**2).sum()))
    patterns, children, lengths = batch(6, 40, 4, 1)
    values, slopes = evaluated(patterns, children, lengths, model=model)
    assert values[0] == pytest.approx(log_likelihood(tree_of(children[0], lengths[0]), patterns, model), rel=1e-12)
    for v in range(1, lengths.shape[1]):
        ends = np.repeat(lengths, 2, axis=0)
        ends[:, v] += [-1e-6, 1e-6]
        low, high = evaluated(patterns, np.repeat(children, 2, axis=0), ends, False, model=model)[0]
        assert slopes[0, v] == pytest.approx((high - low) / 2e-6, rel=1e-5, abs=1e-4)


def test_against_plain_python():
    patterns, children, lengths = batch(4, 3, 2, 1)
    found = evaluated(patterns, children, lengths)
    plain = evaluated(patterns, children, lengths, function=log_likelihoods_and_slopes.py_func)
    assert found[0] == pytest.approx(plain[0])
    assert found[1] == pytest.approx(plain[1])


def test_tiny_lengths_and_many_taxa_do_not_underflow():
    patterns, children, lengths = batch(300, 50, 3, 1)
    lengths[:] = 1e-6
    values, slopes = evaluated(patterns, children, lengths)
    assert values[0] == pytest.approx(log_likelihood(tree_of(children[0], lengths[0]), patterns), rel=1e-10)
    assert np.isfinite(slopes).all()
    assert np.abs(slopes[:, 1:]).min() > 0.0


def test_adam():
    rng = np.random.default_rng(1)
    parameters, first, second = (np.zeros(4, dtype=np.float32) for _ in range(3))
    m, v, expected = np.zeros(4), np.zeros(4), np.zeros(4)
    for t in range(1, 6):
        g = rng.normal(size=4).astype(np.float32)
        ascend(parameters, g, first, second, t, 0.1, 0.9, 0.999, 1e-8)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected += 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    assert parameters == pytest.approx(expected, rel=1e-4)
