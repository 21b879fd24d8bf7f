"""Distances against the formula, BIONJ on distances that fit a tree, hill climbing to a local optimum."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.random_trees import random_binary_tree
from reference.shapes import interchanges

from vaiphy import datasets
from vaiphy.alignment import Alignment, SitePatterns, compress, encode
from vaiphy.likelihood import log_likelihood, optimise
from vaiphy.models.simulate import random_alignment
from vaiphy.search.starts import bionj, climb, jc_distances
from vaiphy.trees.tree import Tree, TreeError, with_taxa

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
    found = jc_distances(patterns_of("ACGTACGTAC", "ACGTACGTAA", "ACGTACGTRR", "-CGTTCGTAC"))
    assert found[0, 1] == pytest.approx(-0.75 * np.log(1 - 4 / 3 / 10))
    assert found[0, 2] == 0.0  # ambiguous sites are not compared
    assert found[0, 3] == pytest.approx(-0.75 * np.log(1 - 4 / 3 / 9))
    assert (found == found.T).all()
    assert (found.diagonal() == 0).all()


def test_saturated_and_incomparable_pairs_are_far_but_finite():
    found = jc_distances(patterns_of("AAAAAAAA----", "AAAAAACC----", "CCCCCCCC----", "--------ACGT"))
    near = -0.75 * np.log(1 - 4 / 3 * 0.25)
    assert found[0, 1] == pytest.approx(near)
    assert found[0, 2] == found[0, 3] == max(1.0, 1.5 * near)
    assert np.isfinite(found).all()


def test_nothing_comparable_at_all():
    assert np.array_equal(jc_distances(patterns_of("A---", "-C--", "--G-")), np.ones((3, 3)) - np.eye(3))


def test_counts_are_weights():
    patterns = patterns_of("ACGTAC", "ACGTTC", "AGGTTC")
    twice = SitePatterns(patterns.taxa, patterns.codes, 2 * patterns.counts, patterns.site_pattern)
    assert jc_distances(twice) == pytest.approx(jc_distances(patterns))
    assert jc_distances(patterns, 2 * patterns.counts) == pytest.approx(jc_distances(patterns))
    only_first = np.where(np.arange(patterns.n_patterns) == 0, 1.0, 0.0)
    assert (jc_distances(patterns, only_first) == 0).all()


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
    distances = path_lengths(tree) + 0.02 * np.abs(np.subtract.outer(rng.random(12), rng.random(12)))
    distances = np.triu(distances, 1) + np.triu(distances, 1).T
    order = rng.permutation(12)
    taxa = tuple(tree.taxa[i] for i in order)
    one, other = bionj(distances, tree.taxa), bionj(distances[np.ix_(order, order)], taxa)
    assert with_taxa(other, tree.taxa).topology == one.topology


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


# Hill climbing


def height(tree, value, rate):
    return value - rate * np.delete(tree.length, tree.root).sum()


@pytest.mark.parametrize("rate", [0.0, 10.0])
@pytest.mark.parametrize("moves", ["nni", "spr"])
def test_a_climb_ends_where_no_interchange_is_better(moves, rate):
    rng = np.random.default_rng(2)
    truth = random_binary_tree(12, rng)
    patterns = compress(random_alignment(truth, 300, rng))
    for _ in range(3):
        begin = random_binary_tree(12, rng)
        first = height(*optimise(begin, patterns, rate), rate)
        tree, value = climb(begin, patterns, moves, rate)
        assert tree.is_binary
        assert value == log_likelihood(tree, patterns)
        assert height(tree, value, rate) > first
        others = list(interchanges(tree))
        assert len({other.topology for other in others} - {tree.topology}) == 2 * (12 - 3)
        best = max(height(*optimise(other, patterns, rate), rate) for other in others)
        assert height(tree, value, rate) > best - 2e-3


def test_a_climb_finds_the_tree_that_made_the_data():
    rng = np.random.default_rng(3)
    truth = random_binary_tree(15, rng, rate=8.0)
    truth = truth.with_lengths(np.clip(truth.length, 0.03, 0.5))
    patterns = compress(random_alignment(truth, 5000, rng))
    for moves in ("nni", "spr"):
        tree, value = climb(bionj(jc_distances(patterns), patterns.taxa), patterns, moves)
        assert tree.topology == truth.topology
        assert value > log_likelihood(truth, patterns)
    # From afar regrafting arrives, too, and lengths need not be known.
    lost = random_binary_tree(15, rng)
    tree, _ = climb(lost.with_lengths(np.full(lost.n_vertices, np.nan)), patterns, "spr")
    assert tree.topology == truth.topology


def test_ds1_by_interchanges_and_regraftings():
    patterns = compress(datasets.load("DS1"))
    begin = bionj(jc_distances(patterns), patterns.taxa)
    _, unmoved = optimise(begin, patterns)
    near, by_nni = climb(begin, patterns)
    _, by_spr = climb(begin, patterns, "spr")
    assert by_nni > unmoved + 40  # -6908.5 from -6955.2
    assert by_spr > by_nni
    again, value = climb(near, patterns)
    assert again.topology == near.topology
    assert value == pytest.approx(by_nni, abs=0.01)
    peer = json.loads((Path(__file__).parents[1] / "reference" / "peer_values.json").read_text())["optimised"]
    assert by_nni > peer["phyml"]


def test_small_trees_and_what_is_refused():
    patterns = patterns_of("ACGTAC", "ACGTTC", "AGGTTC")
    tree, value = climb(bionj(jc_distances(patterns), patterns.taxa), patterns)
    assert tree.is_binary
    assert np.isfinite(value)
    rooted = Tree(("t0", "t1", "t2"), np.array([4, 3, 3, 4, -1]), np.full(5, 0.1))  # a root of degree two is suppressed
    assert climb(rooted, patterns)[1] == pytest.approx(value, abs=1e-3)
    four = patterns_of("ACGTAC", "ACGTTC", "AGGTTC", "AGGTAA")
    with pytest.raises(TreeError, match="binary"):
        climb(Tree(four.taxa, np.array([4, 4, 4, 4, -1]), np.full(5, 0.1)), four)
    with pytest.raises(ValueError, match="unknown moves 'tbr'"):
        climb(tree, patterns, "tbr")
