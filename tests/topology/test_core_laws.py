"""The two laws over internal trees, against enumeration of all n^(n-2) spanning trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.exact import spanning_trees
from reference.topologies import parents_of_edges
from scipy.stats import chi2

from vaiphy.kernels import slantis as slantis_kernels
from vaiphy.kernels import spanning as spanning_kernels
from vaiphy.topology.slantis import SlantisLaw
from vaiphy.topology.spanning import SpanningLaw


def random_weights(n, spread, seed):
    weights = np.random.default_rng(seed).uniform(-spread, spread, size=(n, n))
    weights = np.triu(weights, 1)
    return weights + weights.T


def all_parents(n):
    return np.stack([parents_of_edges(tree, n) for tree in spanning_trees(n)])


def keys(parents):
    return [frozenset((min(v, p), max(v, p)) for v, p in enumerate(row) if p >= 0) for row in parents.tolist()]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("spread", [1.0, 1000.0])
@pytest.mark.parametrize("law", [SpanningLaw, SlantisLaw])
def test_densities_sum_to_one_over_all_trees(n, spread, law):
    for seed in range(5):
        log_density = law(random_weights(n, spread, seed)).log_density(all_parents(n))
        assert np.exp(log_density).sum() == pytest.approx(1.0, abs=1e-10)
        assert np.isfinite(log_density).all()  # every tree can be reached


def test_ties_are_broken_consistently():
    for n in (3, 4, 5):
        weights = np.zeros((n, n))
        weights[0, 1] = weights[1, 0] = weights[0, 2] = weights[2, 0] = 1.0
        assert np.exp(SlantisLaw(weights).log_density(all_parents(n))).sum() == pytest.approx(1.0, abs=1e-10)


def test_accepted_only_density_does_not_sum_to_one():
    totals = [np.exp(SlantisLaw(random_weights(4, 1.0, s), True).log_density(all_parents(4))).sum() for s in range(5)]
    assert min(totals) > 1.5


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("spread", [1.0, 1000.0])
def test_spanning_normaliser_and_edge_probabilities(n, spread):
    for seed in range(5):
        weights = random_weights(n, spread, seed)
        trees = spanning_trees(n)
        logs = np.array([sum(weights[e] for e in tree) for tree in trees])
        log_z = logs.max() + np.log(np.exp(logs - logs.max()).sum())
        law = SpanningLaw(weights)
        assert law.log_normaliser == pytest.approx(log_z, abs=1e-10)
        expected = np.zeros((n, n))
        for tree, value in zip(trees, np.exp(logs - log_z)):
            for i, j in tree:
                expected[i, j] += value
                expected[j, i] += value
        np.testing.assert_allclose(law.edge_probabilities, expected, atol=1e-10)


def test_edge_probabilities_of_a_larger_graph_against_the_laplacian():
    n = 40
    weights = random_weights(n, 2.0, 3)
    w = np.exp(weights)
    np.fill_diagonal(w, 0.0)
    laplacian = np.diag(w.sum(axis=1)) - w
    inverse = np.linalg.inv(laplacian[1:, 1:])
    full = np.zeros((n, n))
    full[1:, 1:] = inverse
    resistance = np.diag(full)[:, None] + np.diag(full)[None, :] - 2 * full
    law = SpanningLaw(weights)
    np.testing.assert_allclose(law.edge_probabilities, w * resistance, atol=1e-10)
    assert law.log_normaliser == pytest.approx(np.linalg.slogdet(laplacian[1:, 1:])[1], abs=1e-9)
    assert law.edge_probabilities.sum() == pytest.approx(2 * (n - 1))


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("spread", [0.0, 1.5])
@pytest.mark.parametrize("law", [SpanningLaw, SlantisLaw])
def test_sampled_frequencies(n, spread, law):
    law = law(random_weights(n, spread, n))
    draws = 40_000
    parents, log_density = law.sample(draws, np.random.default_rng(7))
    np.testing.assert_allclose(law.log_density(parents), log_density, atol=1e-12)
    found = dict.fromkeys(keys(all_parents(n)), 0)
    for key in keys(parents):
        found[key] += 1
    expected = draws * np.exp(law.log_density(all_parents(n)))
    counts = np.array(list(found.values()))
    large = expected >= 5
    observed = np.append(counts[large], counts[~large].sum())
    wanted = np.append(expected[large], expected[~large].sum())
    observed, wanted = observed[wanted > 0], wanted[wanted > 0]
    statistic = ((observed - wanted) ** 2 / wanted).sum()
    assert chi2.sf(statistic, len(observed) - 1) > 1e-4


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 12), spread=st.sampled_from([0.1, 5.0, 300.0]), seed=st.integers(0, 10_000))
def test_draws_are_spanning_trees_and_replay_to_their_density(n, spread, seed):
    for law in (SpanningLaw(random_weights(n, spread, seed)), SlantisLaw(random_weights(n, spread, seed))):
        parents, log_density = law.sample(5, np.random.default_rng(seed))
        assert (parents[:, 0] == -1).all()
        for key in keys(parents):
            assert len(key) == n - 1
            assert (parents_of_edges(list(key), n) >= 0).sum() == n - 1  # connected
        moved = np.stack([parents_of_edges(list(key), n, root=n - 1) for key in keys(parents)])
        np.testing.assert_allclose(law.log_density(moved), log_density, atol=1e-9)


@pytest.mark.parametrize("law", [SpanningLaw, SlantisLaw])
def test_results_do_not_depend_on_threads(law):
    law = law(random_weights(8, 1.0, 1))
    one = law.sample(700, np.random.default_rng(1), threads=1)
    two = law.sample(700, np.random.default_rng(1), threads=2)
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])


def test_kernels_equal_their_plain_selves():
    weights = random_weights(6, 3.0, 2)
    law = SpanningLaw(weights)
    log_sum, column, odds = np.zeros(6), np.zeros((6, 6)), np.empty(20)
    log_z = spanning_kernels.eliminate.py_func(weights.copy(), log_sum, column, odds)
    out = np.empty((6, 6))
    spanning_kernels.marginals.py_func(log_sum, column, odds, out)
    assert log_z == pytest.approx(law.log_normaliser, abs=1e-12)
    np.testing.assert_allclose(out, law.edge_probabilities, atol=1e-12)
    parents = np.empty((20, 6), dtype=np.int32)
    spanning_kernels.sample.py_func(log_sum, column, odds, np.random.default_rng(4), parents)
    fast = np.empty_like(parents)
    spanning_kernels.sample(log_sum, column, odds, np.random.default_rng(4), fast)
    assert np.array_equal(parents, fast)
    slantis = SlantisLaw(weights)
    setup = slantis._setup
    slow_order = np.empty_like(setup[0])
    slantis_kernels.trial_order.py_func(np.argsort(-setup[2], kind="stable"), setup[1], 6, slow_order)
    assert np.array_equal(slow_order, setup[0])
    results = []
    for function in (slantis_kernels.decide.py_func, slantis_kernels.decide):
        parents, log_density = np.empty((20, 6), dtype=np.int32), np.empty((20, 2))
        steps, n_steps = np.zeros((15, 4), dtype=np.int64), np.zeros(1, dtype=np.int64)
        nothing = np.empty((1, 0), dtype=np.bool_)
        function(*setup, False, nothing, np.random.default_rng(4), parents, log_density, steps, n_steps)
        results.append((parents, log_density, steps))
    for slow, fast in zip(*results):
        np.testing.assert_allclose(slow, fast, atol=1e-12)


def test_trial_order_is_layers_of_maximum_spanning_trees():
    weights = random_weights(6, 3.0, 5)
    law = SlantisLaw(weights)
    order, ends, flat = law._setup[0], law._setup[1], law._setup[2]
    assert sorted(order.tolist()) == list(range(15))
    best = max(spanning_trees(6), key=lambda tree: sum(weights[e] for e in tree))
    assert {tuple(ends[e]) for e in order[:5]} == set(best)
    assert (np.diff(flat[order[:5]]) <= 0).all()


def test_a_trace_tells_the_tree():
    law = SlantisLaw(random_weights(5, 1.0, 3))
    parents, trials = law.trace(np.random.default_rng(2))
    assert {trial.edge for trial in trials if trial.accepted} == set(keys(parents[None])[0])
    forced = [trial for trial in trials if trial.other is None]
    assert all(trial.accepted == trial.in_tree for trial in forced)


@pytest.mark.parametrize("bad", [[[0.0, np.inf], [np.inf, 0.0]], [[0.0, 1.0], [2.0, 0.0]], np.zeros((2, 3))])
def test_bad_weights_are_refused(bad):
    with pytest.raises(ValueError, match="log_weights"):
        _ = SpanningLaw(np.array(bad)).log_normaliser
