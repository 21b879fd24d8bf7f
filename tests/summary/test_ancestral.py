"""Ancestral states by clade: one tree gives its own marginals; several are averaged over those that have the clade."""

import numpy as np
import pytest
from reference.random_trees import random_binary_tree

from vaiphy.alignment import Alignment, compress
from vaiphy.likelihood import node_marginals
from vaiphy.summary.ancestral import ancestral_states
from vaiphy.summary.consensus import named
from vaiphy.summary.posterior import summarise
from vaiphy.trees.sample import TreeSample, binary_arrays


def sample_of(trees, weights):
    arrays = [binary_arrays(tree) for tree in trees]
    return TreeSample(
        trees[0].taxa,
        np.array([children for children, _ in arrays]),
        np.arange(len(trees), dtype=np.int32),
        np.array([lengths for _, lengths in arrays]),
        np.log(np.asarray(weights)),
        np.zeros(len(trees), np.int32),
    )


@pytest.fixture
def patterns():
    sites = np.random.default_rng(1).choice([1, 2, 4, 8, 15], size=(6, 20)).astype(np.uint8)
    return compress(Alignment(tuple(f"t{i + 1}" for i in range(6)), sites))


@pytest.mark.parametrize("reference", [0, 2, 5])
def test_one_tree_gives_its_own_marginals(patterns, reference):
    tree = named(random_binary_tree(6, np.random.default_rng(2)))
    found = ancestral_states(sample_of([tree], [1.0]), patterns, tree, reference)
    assert found.names == tuple(tree.labels[6:])
    assert (found.n_trees == found.n_trees_used).all()
    assert found.probability == pytest.approx(node_marginals(tree, patterns)[6:])


@pytest.mark.parametrize("reference", [0, 3])
def test_states_are_averaged_over_the_trees_with_the_clade(patterns, reference):
    rng = np.random.default_rng(4)
    trees = [random_binary_tree(6, rng) for _ in range(3)]
    weights = [0.5, 0.25, 0.25]
    sample = sample_of(trees, weights)
    target = named(summarise(sample).credible)
    found = ancestral_states(sample, patterns, target, reference, n_trees=400)
    for k, vertex in enumerate(range(6, target.n_vertices)):
        clade = target.rerooted(reference).clades[vertex]
        total, mass = 0, 0.0
        for tree, weight in zip(trees, weights):
            for v, other in enumerate(tree.rerooted(reference).clades):
                if other == clade and v >= 6:
                    total, mass = total + weight * node_marginals(tree, patterns)[v], mass + weight
        assert found.n_trees[k] == pytest.approx(400 * mass, abs=2)
        assert found.probability[k] == pytest.approx(total / mass, abs=0.01)


def test_threads_do_not_change_the_answer(patterns):
    rng = np.random.default_rng(5)
    sample = sample_of([random_binary_tree(6, rng) for _ in range(20)], np.full(20, 0.05))
    target = named(summarise(sample).credible)
    one, two = (ancestral_states(sample, patterns, target, threads=t).probability for t in (1, 2))
    assert (one == two).all()
