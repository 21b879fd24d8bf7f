"""Gammas for branch lengths given a topology: modes, masses, the same for any number of threads."""

import numpy as np
import pytest
from reference.exact import tree_evidence, unrooted_topologies
from reference.random_trees import random_binary_tree
from reference.topologies import all_children, names, tree_of
from scipy import stats

from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.branches import gamma
from vaiphy.branches.gamma import GammaFit
from vaiphy.likelihood import log_likelihood, optimise
from vaiphy.models.jc69 import JC69
from vaiphy.models.simulate import random_alignment
from vaiphy.target import SimpleTarget
from vaiphy.trees.sample import binary_arrays

RATE = 10.0


def few_sites(n_taxa: int, n_sites: int, seed: int) -> tuple[np.ndarray, SitePatterns]:
    """Random bases (and a missing one): the sites as they are, and as patterns."""
    rng = np.random.default_rng(seed)
    sites = (1 << rng.integers(4, size=(n_taxa, n_sites))).astype(np.uint8)
    sites[1] = sites[0]
    sites[-1, 0] = 15
    return sites, compress(Alignment(names(n_taxa), sites, source="test"))


def fitted(children: np.ndarray, patterns: SitePatterns, threads: int = 1) -> GammaFit:
    start = np.full((len(children), 2 * patterns.n_taxa - 2), 0.05)
    return gamma.fit(children, start, SimpleTarget(patterns, JC69, RATE), threads, tolerance=1e-9, max_sweeps=100)


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


@pytest.mark.parametrize("n_taxa", [3, 4])
def test_the_mass_is_near_the_evidence_of_the_topology(n_taxa: int) -> None:
    sites, patterns = few_sites(n_taxa, 2, 1)
    law = fitted(all_children(n_taxa), patterns)
    exact = [tree_evidence(edges, sites, RATE) for edges in unrooted_topologies(n_taxa)]
    assert law.masses == pytest.approx(np.log(exact), abs=0.6)


def test_threads_change_nothing() -> None:
    children, patterns = real_data()
    many = np.concatenate([children] * 20)
    one, two = fitted(many, patterns, 1), fitted(many, patterns, 2)
    assert all(np.array_equal(getattr(one, name), getattr(two, name)) for name in ("modes", "shapes", "rates", "masses"))
