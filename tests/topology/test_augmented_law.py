"""Laws over whole augmented trees: leaves and internal tree together, against enumeration."""

import numpy as np
import pytest
from reference.exact import augmented_trees
from reference.topologies import parents_of_edges

from vaiphy.topology.augmented import AugmentedLaw, LeafLaw
from vaiphy.topology.slantis import SlantisLaw
from vaiphy.topology.spanning import SpanningLaw


def make_law(kind, n_taxa, seed=0, spread=2.0):
    rng = np.random.default_rng(seed)
    m = n_taxa - 2
    core = np.triu(rng.normal(0, spread, size=(m, m)), 1)
    return AugmentedLaw(kind(core + core.T), LeafLaw(rng.normal(0, spread, size=(n_taxa, m))))


def key(parent):
    return frozenset(frozenset((v, p)) for v, p in enumerate(parent) if p >= 0)


@pytest.mark.parametrize("kind", [SpanningLaw, SlantisLaw])
@pytest.mark.parametrize("n_taxa", [3, 4, 5])
def test_density_sums_to_one_and_matches_frequencies(kind, n_taxa):
    law = make_law(kind, n_taxa)
    every = np.stack([parents_of_edges(tree, 2 * n_taxa - 2, root=2 * n_taxa - 3) for tree in augmented_trees(n_taxa)])
    log_density = law.log_density(every)
    assert np.exp(log_density).sum() == pytest.approx(1.0, abs=1e-10)
    draws, log_drawn = law.sample(20_000, np.random.default_rng(1))
    np.testing.assert_allclose(law.log_density(draws), log_drawn, atol=1e-12)
    count = dict.fromkeys((key(row) for row in every.tolist()), 0)
    for row in draws.tolist():
        count[key(row)] += 1
    frequency = np.array(list(count.values())) / len(draws)
    probability = np.exp(log_density)
    error = np.sqrt(probability * (1 - probability) / len(draws))
    assert (np.abs(frequency - probability) < 5 * error + 1e-4).all()


def test_a_taxon_inside_the_tree_has_no_density():
    law = make_law(SpanningLaw, 4)
    inside = np.array([[4, 0, 4, 5, -1, 4]], dtype=np.int32)  # taxon 1 hangs on taxon 0
    assert law.log_density(inside)[0] == -np.inf


def test_leaves_with_extreme_weights():
    weights = np.array([[0.0, -1000.0], [1000.0, 1001.0], [-5.0, -5.0]])
    law = LeafLaw(weights)
    np.testing.assert_allclose(np.exp(law.log_probabilities).sum(axis=1), 1.0, atol=1e-12)
    hosts = law.sample(500, np.random.default_rng(1))
    assert (hosts[:, 0] == 0).all()
    assert set(hosts[:, 2].tolist()) == {0, 1}
