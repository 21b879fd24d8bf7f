"""Distances against the formula, BIONJ on distances that fit a tree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import joining
from reference.random_trees import random_binary_tree

from vaiphy.alignment import Alignment, SitePatterns, compress, encode
from vaiphy.search.starts import bionj, distances
from vaiphy.trees.tree import Tree, with_taxa

SEEDS = st.integers(0, 2**32 - 1)


def patterns_of(*sequences):
    taxa = tuple(f"t{i}" for i in range(len(sequences)))
    return compress(Alignment(taxa, np.stack([encode(sequence) for sequence in sequences])))


def path_lengths(tree):
    """Distances between taxa along the tree."""
    n = tree.n_vertices
    distance = np.full((n, n), np.inf)
    np.fill_diagonal(distance, 0.0)
    for v, above in tree.edges():
        distance[v, above] = distance[above, v] = tree.length[v]
    for k in range(n):
        distance = np.minimum(distance, distance[:, k, None] + distance[None, k])
    return distance[: tree.n_taxa, : tree.n_taxa]


# Distances


def test_distances_by_the_formula():
    found = distances(patterns_of("ACGTACGTAC", "ACGTACGTAA", "ACGTACGTRR", "-CGTTCGTAC"))
    assert found[0, 1] == pytest.approx(-0.75 * np.log(1 - 4 / 3 / 10))
    assert found[0, 2] == 0.0  # ambiguous sites are not compared
    assert found[0, 3] == pytest.approx(-0.75 * np.log(1 - 4 / 3 / 9))
    assert (found == found.T).all()
    assert (found.diagonal() == 0).all()


def test_saturated_and_incomparable_pairs_are_far_but_finite():
    found = distances(patterns_of("AAAAAAAA----", "AAAAAACC----", "CCCCCCCC----", "--------ACGT"))
    near = -0.75 * np.log(1 - 4 / 3 * 0.25)
    assert found[0, 1] == pytest.approx(near)
    assert found[0, 2] == found[0, 3] == max(1.0, 1.5 * near)
    assert np.isfinite(found).all()


def test_nothing_comparable_at_all():
    assert np.array_equal(distances(patterns_of("A---", "-C--", "--G-")), np.ones((3, 3)) - np.eye(3))


def test_counts_are_weights():
    patterns = patterns_of("ACGTAC", "ACGTTC", "AGGTTC")
    twice = SitePatterns(patterns.taxa, patterns.codes, 2 * patterns.counts, patterns.site_pattern)
    assert distances(twice) == pytest.approx(distances(patterns))
    assert distances(patterns, 2 * patterns.counts) == pytest.approx(distances(patterns))
    only_first = np.where(np.arange(patterns.n_patterns) == 0, 1.0, 0.0)
    assert (distances(patterns, only_first) == 0).all()


# BIONJ


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(3, 25))
def test_distances_along_a_tree_give_the_tree_back(seed, n):
    rng = np.random.default_rng(seed)
    tree = random_binary_tree(n, rng)
    tree = tree.with_lengths(tree.length + 0.01)
    found = bionj(path_lengths(tree), tree.taxa)
    assert found.is_binary
    assert found.topology == tree.topology
    assert path_lengths(found) == pytest.approx(path_lengths(tree), abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(SEEDS)
def test_the_order_of_taxa_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    tree = random_binary_tree(12, rng)
    noisy = path_lengths(tree) + 0.02 * np.abs(np.subtract.outer(rng.random(12), rng.random(12)))
    noisy = np.triu(noisy, 1) + np.triu(noisy, 1).T
    order = rng.permutation(12)
    taxa = tuple(tree.taxa[i] for i in order)
    one, other = bionj(noisy, tree.taxa), bionj(noisy[np.ix_(order, order)], taxa)
    assert with_taxa(other, tree.taxa).topology == one.topology


@settings(max_examples=30, deadline=None)
@given(SEEDS, st.integers(3, 20))
def test_the_same_tree_as_the_slow_one(seed, n):
    rng = np.random.default_rng(seed)
    tree = random_binary_tree(n, rng)
    noisy = path_lengths(tree) + rng.exponential(0.02, (n, n))
    noisy = np.triu(noisy, 1) + np.triu(noisy, 1).T
    found = bionj(noisy, tree.taxa)
    parent, length = joining.bionj(noisy)
    other = Tree(tree.taxa, parent, length)
    assert found.topology == other.topology
    assert path_lengths(found) == pytest.approx(path_lengths(other), abs=1e-9)


def test_few_taxa_and_equal_taxa():
    two = bionj(np.array([[0, 0.3], [0.3, 0]]), ("a", "b"))
    assert two.length.max() == 0.3
    three = bionj(np.array([[0, 0.3, 0.4], [0.3, 0, 0.5], [0.4, 0.5, 0]]), ("a", "b", "c"))
    assert three.length[:3] == pytest.approx([0.1, 0.2, 0.3])
    same = bionj(np.zeros((6, 6)), tuple("abcdef"))
    assert same.is_binary
    assert (same.length == 0).all()
    noisy = bionj(np.random.default_rng(1).random((9, 9)) ** 2, tuple("abcdefghi"))  # not even symmetric
    assert (noisy.length >= 0).all()
