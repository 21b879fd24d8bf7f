"""States at the vertices of sampled trees under any model: what a sum over all states of all vertices says."""

from dataclasses import replace

import numpy as np
import pytest
from reference.random_trees import random_binary_tree
from reference.slow_models import brute_vertex_states, slow_model

from vaiphy.alignment import Alignment, compress
from vaiphy.alphabets import DNA, MORPH
from vaiphy.likelihood import node_marginals
from vaiphy.summary.ancestral import ancestral_states
from vaiphy.summary.consensus import named
from vaiphy.summary.marginals import sample_marginals
from vaiphy.target import target_of
from vaiphy.trees.sample import TreeSample, binary_arrays

PI = "{0.4,0.1,0.2,0.3}"


def sample_of(tree, z=None):
    children, lengths = binary_arrays(tree)
    one = np.zeros(1, np.int32)
    return TreeSample(tree.taxa, children[None], one, lengths[None], np.zeros(1), one, z=z)


def patterns_of(n_taxa, alphabet, n_sites=25, seed=1):
    rng = np.random.default_rng(seed)
    sites = (1 << rng.integers(alphabet.n_states, size=(n_taxa, n_sites))).astype(alphabet.dtype)
    sites[rng.random(sites.shape) < 0.1] = alphabet.everything
    sites[0, :3] = 3  # either of two states
    return compress(Alignment(tuple(f"t{i + 1}" for i in range(n_taxa)), sites, alphabet=alphabet))


@pytest.mark.parametrize(
    "model",
    [
        "JC",
        f"F81+F{PI}+I{{0.2}}+G4{{0.4}}",
        f"HKY{{2.5}}+F{PI}",
        f"GTR{{0.6,2,0.5,1.4,3}}+F{PI}+I{{0.15}}+G3{{0.5}}",
        "HKY+I+G4",
    ],
)
def test_nucleotides(model):
    patterns = patterns_of(5, DNA)
    target = target_of(patterns, model, fold=False)
    z = target.draw_parameters(1, np.random.default_rng(2))
    sample = sample_of(random_binary_tree(5, np.random.default_rng(3)), z)
    part = target.parts[0]
    expected = brute_vertex_states(sample.tree(0), part.tips, slow_model(part.model, z[0]))[5:]
    assert sample_marginals(sample, 0, target) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("model", ["MK+G3{0.6}", "ORDERED"])
def test_characters_keep_their_own_states(model):
    """Characters of two and three states are two parts; a state that a character does not have has no probability."""
    patterns = patterns_of(4, MORPH(3))
    sites = patterns.codes.copy()
    sites[:, ::2] &= 3
    sites[sites == 0] = 3
    patterns = replace(patterns, codes=sites)
    target = target_of(patterns, model, fold=False)
    assert [part.model.n_states for part in target.parts] == [2, 3]
    sample = sample_of(random_binary_tree(4, np.random.default_rng(3)))
    found = sample_marginals(sample, 0, target)
    for part in target.parts:
        expected = brute_vertex_states(sample.tree(0), part.tips, slow_model(part.model))[4:]
        assert found[:, : part.model.n_states, part.patterns] == pytest.approx(expected, abs=1e-9)
    assert (found[:, 2, target.parts[0].patterns] == 0).all()


def test_a_large_tree_does_not_underflow():
    patterns = patterns_of(300, DNA, n_sites=6)
    sample = sample_of(random_binary_tree(300, np.random.default_rng(4)))
    found = sample_marginals(sample, 0, target_of(patterns, "JC", fold=False))
    assert found == pytest.approx(node_marginals(sample.tree(0), patterns)[300:], abs=1e-8)


def test_each_tree_has_its_own_parameters():
    """Averaged over two trees of one shape whose kappa differ, states are the mean of the two."""
    patterns = patterns_of(5, DNA)
    tree = named(random_binary_tree(5, np.random.default_rng(3)))
    target = target_of(patterns, "K80", fold=False)
    one = [sample_of(tree, np.array([[z]])) for z in (-2.0, 2.0)]
    both = TreeSample(
        tree.taxa, one[0].children, np.zeros(2, np.int32), np.repeat(one[0].lengths, 2, axis=0), np.log([0.5, 0.5]),
        np.zeros(2, np.int32), z=np.array([[-2.0], [2.0]]),
    )  # fmt: skip
    found = ancestral_states(both, patterns, tree, target=target, n_trees=2).probability
    single = [ancestral_states(s, patterns, tree, target=target, n_trees=2).probability for s in one]
    assert np.abs(single[0] - single[1]).max() > 0.01
    assert found == pytest.approx(0.5 * (single[0] + single[1]), abs=1e-12)


def test_merged_patterns_are_refused():
    patterns = patterns_of(5, DNA)
    with pytest.raises(ValueError, match="fold=False"):
        sample_marginals(sample_of(random_binary_tree(5, np.random.default_rng(3))), 0, target_of(patterns, "JC"))
