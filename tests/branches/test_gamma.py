"""Gammas for branch lengths given a topology: densities, unbiased weights, corrections."""

import numpy as np
import pytest
from reference.exact import tree_evidence, unrooted_topologies
from reference.random_trees import random_binary_tree
from reference.topologies import all_children, names, tree_of
from scipy import stats

from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.branches import gamma
from vaiphy.branches.gamma import Correction, GammaFit
from vaiphy.likelihood import log_likelihood, optimise
from vaiphy.models.simulate import random_alignment
from vaiphy.trees.sample import binary_arrays

RATE, GUARD = 10.0, 0.3


def few_sites(n_taxa: int, n_sites: int, seed: int) -> tuple[np.ndarray, SitePatterns]:
    """Random bases (and a missing one): the sites as they are, and as patterns."""
    rng = np.random.default_rng(seed)
    sites = (1 << rng.integers(4, size=(n_taxa, n_sites))).astype(np.uint8)
    sites[1] = sites[0]
    sites[-1, 0] = 15
    return sites, compress(Alignment(names(n_taxa), sites, source="test"))


def fitted(children: np.ndarray, patterns: SitePatterns, threads: int = 1) -> GammaFit:
    n_vertices = 2 * patterns.n_taxa - 2
    return gamma.fit(
        children, np.full((len(children), n_vertices), 0.05), patterns, RATE, threads, tolerance=1e-9, max_sweeps=100
    )


def real_data(n_taxa: int = 8, n_sites: int = 300) -> tuple[np.ndarray, SitePatterns]:
    """Two topologies that share splits, and data from the first."""
    rng = np.random.default_rng(4)
    tree = random_binary_tree(n_taxa, rng, names(n_taxa))
    patterns = compress(random_alignment(tree, n_sites, rng))
    children, _ = binary_arrays(tree)
    other, _ = binary_arrays(random_binary_tree(n_taxa, rng, names(n_taxa)))
    return np.array([children, other]), patterns


def log_joint(children: np.ndarray, lengths: np.ndarray, patterns: SitePatterns) -> float:
    n_branches = len(lengths) - 1
    return log_likelihood(tree_of(children, lengths), patterns) + n_branches * np.log(RATE) - RATE * lengths[1:].sum()


def assert_unbiased(log_weights: np.ndarray, exact: float) -> None:
    ratios = np.exp(log_weights) / exact
    assert abs(ratios.mean() - 1.0) < 4.0 * ratios.std(ddof=1) / np.sqrt(len(ratios))
    assert ratios.std() < 4.0, "the weights' spread must be small for the test to say anything"


@pytest.mark.parametrize(("n_taxa", "n_sites", "n_topologies"), [(3, 3, 1), (4, 1, 3), (4, 2, 3), (5, 1, 4), (5, 2, 2)])
def test_evidence_of_a_topology_is_unbiased(n_taxa: int, n_sites: int, n_topologies: int) -> None:
    sites, patterns = few_sites(n_taxa, n_sites, 1)
    children = all_children(n_taxa)[:n_topologies]
    law = fitted(children, patterns)
    rng = np.random.default_rng(2)
    for t, edges in enumerate(unrooted_topologies(n_taxa)[:n_topologies]):
        which = np.full(40_000, t, dtype=np.int32)
        _, log_weights = gamma.draw(law, children, which, patterns, RATE, rng, guard=GUARD)
        assert_unbiased(log_weights, tree_evidence(edges, sites, RATE))


def test_corrections_stay_unbiased() -> None:
    """Whatever a correction does to the Gammas, the density follows: made up by hand, and learned from draws."""
    sites, patterns = few_sites(4, 2, 3)
    children = all_children(4)
    exact = [tree_evidence(edges, sites, RATE) for edges in unrooted_topologies(4)]
    base = fitted(children, patterns)
    keys = np.unique(gamma.splits_of(children)[:, 1:])[::2]
    rng = np.random.default_rng(5)
    factors = rng.uniform(0.8, 1.5, size=(2, len(keys) + 1))
    made_up = gamma.correct(base, children, Correction(keys, factors[0], factors[1]))
    which = np.repeat(np.arange(3, dtype=np.int32), 5000)
    lengths, log_weights = gamma.draw(base, children, which, patterns, RATE, rng, guard=GUARD)
    weights = np.exp(log_weights) / np.exp(log_weights).sum()
    learned = gamma.correct(base, children, gamma.learn(base, children, which, lengths, weights))
    for law in (made_up, learned):
        for t in range(3):
            _, log_weights = gamma.draw(law, children, np.full(40_000, t, dtype=np.int32), patterns, RATE, rng, guard=GUARD)
            assert_unbiased(log_weights, exact[t])


@pytest.mark.parametrize("guard", [0.0, 0.2])
def test_weights_are_what_they_say(guard: float) -> None:
    """log p(X, B | topology) - log q(B), both computed apart; lengths follow the law (Kolmogorov-Smirnov)."""
    children, patterns = real_data()
    law = fitted(children, patterns)
    which = np.repeat(np.arange(2, dtype=np.int32), 1000)
    lengths, log_weights = gamma.draw(law, children, which, patterns, RATE, np.random.default_rng(0), guard=guard)

    def mixed(t: int, v: int, function: str) -> np.ndarray:
        """Density or distribution function of the branch law, at the draws."""
        shape, rate = law.shapes[t, v], law.rates[t, v]
        share = guard if shape < gamma.GUARDED_BELOW else 0.0
        x = lengths[which == t, v]
        plain = 0.5 * (
            getattr(stats.expon, function)(x, scale=shape / rate) + getattr(stats.expon, function)(x, scale=1.0 / RATE)
        )
        return (1.0 - share) * getattr(stats.gamma, function)(x, shape, scale=1.0 / rate) + share * plain

    for t in range(2):
        log_q = np.zeros(1000)
        for v in range(1, law.shapes.shape[1]):
            log_q += np.log(mixed(t, v, "pdf"))
            assert stats.kstest(mixed(t, v, "cdf"), "uniform").pvalue > 1e-4
        for i in range(20):
            row = 1000 * t + i
            assert log_weights[row] == pytest.approx(log_joint(children[t], lengths[row], patterns) - log_q[i], abs=1e-8)


def test_modes_and_masses() -> None:
    children, patterns = real_data()
    law = fitted(children, patterns)
    for t in range(2):
        best, _ = optimise(tree_of(children[t]), patterns, prior_rate=RATE)
        reached = log_joint(children[t], law.modes[t], patterns)
        assert reached == pytest.approx(log_joint(children[t], binary_arrays(best)[1], patterns), abs=1e-3)
        means = law.shapes[t] / law.rates[t]
        means[0] = 0.0
        log_q = stats.gamma.logpdf(means[1:], law.shapes[t, 1:], scale=1.0 / law.rates[t, 1:]).sum()
        assert law.masses[t] == pytest.approx(log_joint(children[t], means, patterns) - log_q, abs=1e-8)
        # The mass is near the evidence of the topology, which the draws estimate.
        which = np.full(4000, t, dtype=np.int32)
        _, log_weights = gamma.draw(law, children, which, patterns, RATE, np.random.default_rng(t))
        assert law.masses[t] == pytest.approx(np.logaddexp.reduce(log_weights) - np.log(4000), abs=2.5)


def test_a_split_has_one_key_in_every_topology() -> None:
    """Keys agree exactly where splits do, so a correction learned in one topology serves another."""
    children = all_children(6)
    keys = gamma.splits_of(children)
    by_key: dict[int, int] = {}
    for tree, row in zip(children, keys.tolist()):
        below = [1 << v for v in range(6)]
        for a, b in tree.tolist():
            below.append(below[a] | below[b])
        for v in range(1, 10):
            assert by_key.setdefault(row[v], below[v]) == below[v]
    assert len(set(by_key.values())) == len(by_key)
    law = GammaFit(np.ones(keys.shape), np.full(keys.shape, 2.0), np.full(keys.shape, 20.0), np.zeros(len(keys)))
    one = np.array([keys[0, 7]])
    changed = gamma.correct(law, children, Correction(one, np.array([2.0, 1.0]), np.array([3.0, 1.0])))
    hit = keys == one[0]
    hit[:, 0] = False
    mean, variance = changed.shapes / changed.rates, changed.shapes / changed.rates**2
    assert mean[hit] == pytest.approx(0.2)
    assert variance[hit] == pytest.approx(3.0 * 2.0 / 400.0)
    assert mean[:, 1:][~hit[:, 1:]] == pytest.approx(0.1)


def test_learning_finds_means_and_variances() -> None:
    """Draws from a wider law than the one assumed teach, after many of them, how much wider it is."""
    rng = np.random.default_rng(1)
    children = all_children(5)[:1]
    shape = (1, 8)
    law = GammaFit(np.ones(shape), np.full(shape, 4.0), np.full(shape, 40.0), np.zeros(1))
    lengths = rng.gamma(3.0, 0.05, size=(60_000, 8))  # mean 0.15 for 0.1, variance 0.0075 for 0.0025
    found = gamma.learn(law, children, np.zeros(60_000, dtype=np.int32), lengths, np.full(60_000, 1.0 / 60_000))
    assert found.mean == pytest.approx(1.5, rel=0.02)
    assert found.variance == pytest.approx(3.0, rel=0.05)


def test_threads_change_nothing() -> None:
    children, patterns = real_data()
    many = np.concatenate([children] * 20)
    one, two = fitted(many, patterns, 1), fitted(many, patterns, 2)
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("modes", "shapes", "rates", "masses"))
    which = np.arange(1000, dtype=np.int32) % 40
    draws = [gamma.draw(one, many, which, patterns, RATE, np.random.default_rng(9), threads) for threads in (1, 2)]
    assert np.array_equal(draws[0][0], draws[1][0])
    assert np.array_equal(draws[0][1], draws[1][1])
