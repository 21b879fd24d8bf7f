"""Augmented trees made fit for people: tidied, contracted, resolved, and their ancestors matched by clade."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaiphy import vi
from vaiphy.alignment import SitePatterns
from vaiphy.likelihood import log_likelihoods, node_marginals
from vaiphy.topology.augmented import AugmentedLaw, LeafLaw
from vaiphy.topology.spanning import SpanningLaw
from vaiphy.trees.augmented import AugmentedTrees, vertex_labels
from vaiphy.trees.tree import Tree
from vaiphy.vi.augmented import ancestral_by_clade, resolve, tidy

TAXA = tuple("abcdefgh")


def random_trees(n_taxa, size, seed):
    """Uniform trees of the augmented space with Exp(10) lengths."""
    rng = np.random.default_rng(seed)
    m = n_taxa - 2
    law = AugmentedLaw(SpanningLaw(np.zeros((m, m))), LeafLaw(np.zeros((n_taxa, m))))
    parents, log_density = law.sample(size, rng)
    return AugmentedTrees(TAXA[:n_taxa], parents, rng.exponential(0.1, size=parents.shape), log_density)


def random_patterns(n_taxa, seed):
    codes = np.random.default_rng(seed).choice([1, 2, 4, 8, 15], size=(n_taxa, 9)).astype(np.uint8)
    return SitePatterns(TAXA[:n_taxa], codes, np.ones(9), np.arange(9))


@settings(max_examples=40, deadline=None)
@given(n_taxa=st.integers(3, 8), seed=st.integers(0, 10_000))
def test_tidying_and_resolving_keep_the_likelihood(n_taxa, seed):
    trees = random_trees(n_taxa, 4, seed)
    patterns = random_patterns(n_taxa, seed)
    expected = log_likelihoods(trees.parents, trees.lengths, patterns)
    binary = resolve(trees, np.zeros(4), np.random.default_rng(seed))
    for t in range(4):
        tree = tidy(trees.tree(t))
        assert (tree.degree[n_taxa:] >= 3).all()
        assert (tree.degree[:n_taxa] == 1).all()
        assert log_likelihoods(tree.parent[None], tree.length[None], patterns)[0] == pytest.approx(expected[t])
        resolved = binary.tree(t)
        assert resolved.is_binary
        assert resolved.topology >= tree.topology
        assert log_likelihoods(resolved.parent[None], resolved.length[None], patterns)[0] == pytest.approx(expected[t])


def test_labels_survive_and_short_branches_are_contracted():
    # ((a,b)1:0.2,(c,d)2:1e-6,e)3 with a dangling vertex 4 that hangs on 3.
    taxa = tuple("abcdef")
    parent = np.array([6, 6, 7, 7, 8, 8, 8, 8, -1, 8])
    length = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 1e-6, 0.0, 0.3])
    tree = Tree(taxa, parent, length, vertex_labels(taxa))
    whole = tidy(tree)
    assert [whole.name(v) for v in range(6, whole.n_vertices)] == ["V1", "V2", "V3"]
    short = tidy(tree, contract_below=1e-4)
    assert [short.name(v) for v in range(6, short.n_vertices)] == ["V1", "V3"]
    assert short.topology == frozenset({0b111100})
    assert short.degree[7] == 5


def test_equal_topologies_are_stored_once():
    # Two labellings of the same binary tree on four taxa.
    parents = np.array([[4, 4, 5, 5, -1, 4], [5, 5, 4, 4, -1, 4]], dtype=np.int32)
    lengths = np.full((2, 6), 0.1)
    sample = resolve(AugmentedTrees(TAXA[:4], parents, lengths, np.zeros(2)), np.zeros(2), np.random.default_rng(0))
    assert sample.n_topologies == 1
    assert sample.n_samples == 2


def test_ancestors_are_matched_by_clade_not_by_label():
    parents = np.array([[4, 4, 5, 5, -1, 4], [5, 5, 4, 4, -1, 4]], dtype=np.int32)
    trees = AugmentedTrees(TAXA[:4], parents, np.full((2, 6), 0.1), np.zeros(2))
    codes = np.array([[1], [1], [2], [2]], dtype=np.uint8)
    patterns = SitePatterns(TAXA[:4], codes, np.ones(1), np.zeros(1, dtype=np.int64))
    states = ancestral_by_clade(trees, np.array([0.5, 0.5]), patterns)
    assert set(states) == {0b1110, 0b1100}
    assert states[0b1110].share == pytest.approx(1.0)
    assert states[0b1110].probability[0, 0] > 0.9  # with a and b: A
    assert states[0b1100].probability[1, 0] > 0.9  # with c and d: C


def test_most_probable_tree_and_its_ancestral_sequences():
    rng = np.random.default_rng(1)
    # Two clear groups.
    first, second = rng.choice([1, 2, 4, 8], size=(2, 300))
    rows = []
    for source in (first, first, first, second, second, second):
        row = source.copy()
        changed = rng.random(300) < 0.03
        row[changed] = rng.choice([1, 2, 4, 8], size=changed.sum())
        rows.append(row)
    patterns = SitePatterns(tuple("abcdef"), np.stack(rows).astype(np.uint8), np.ones(300), np.arange(300))
    fit = vi.fit(patterns, rng=np.random.default_rng(1))
    tree = fit.most_probable_tree()
    best = fit.tree_law.log_density(tree.parent[None])[0]
    drawn, _ = fit.tree_law.sample(500, np.random.default_rng(2))
    assert best >= fit.tree_law.log_density(drawn).max() - 1e-9
    assert 0b111000 in fit.most_probable_tree(contract_below=0.0).topology
    contracted = fit.most_probable_tree(contract_below=0.02)
    assert contracted.n_vertices <= fit.most_probable_tree(contract_below=0.0).n_vertices
    states = fit.ancestral_sequences(contracted)
    np.testing.assert_allclose(states.sum(axis=1), 1.0)
    np.testing.assert_allclose(states, node_marginals(contracted, patterns))
    assert fit.ancestral_sequences().shape[1:] == (4, 300)
    sample = fit.sample_binary(50, np.random.default_rng(3))
    assert sample.n_samples == 50
    assert np.exp(sample.log_weights).sum() == pytest.approx(1.0)
