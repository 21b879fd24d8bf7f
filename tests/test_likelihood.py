"""Likelihoods, node marginals, derivatives and optimal lengths: exact on small trees, equal to what PhyML and IQ-TREE say."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import states
from reference.derivatives import branch_derivatives
from reference.make_peer_values import alignment_named
from reference.random_trees import random_binary_tree
from reference.shapes import random_patterns, random_shape

from vaiphy import datasets
from vaiphy.alignment import Alignment, SitePatterns, compress, fold_states
from vaiphy.formats import newick
from vaiphy.likelihood import log_likelihood, log_likelihoods, node_marginals, optimise, schedule
from vaiphy.models.replacement import MAX_LENGTH, MIN_LENGTH
from vaiphy.search.starts import bionj, distances
from vaiphy.trees.tree import Tree, simplified, with_taxa

PEERS = json.loads((Path(__file__).parent / "reference" / "peer_values.json").read_text())
SEEDS = st.integers(0, 2**32 - 1)


def case(seed, n_taxa=6, n_vertices=9, n_patterns=8):
    rng = np.random.default_rng(seed)
    tree = random_shape(n_taxa, n_vertices, rng)
    return tree, random_patterns(tree.taxa, n_patterns, rng), rng


# What other programs say


@pytest.mark.parametrize("peer", PEERS["given"], ids=lambda peer: f"{peer['data']}-{peer['kind']}")
def test_given_trees_have_the_likelihood_that_phyml_and_iqtree_report(peer):
    alignment = alignment_named(peer["data"])
    tree = newick.read(peer["tree"], alignment.taxa)
    value = log_likelihood(tree, compress(alignment))
    assert value == pytest.approx(peer["phyml"], abs=1e-3)
    assert value == pytest.approx(peer["iqtree"], abs=1e-3)


def test_optimised_lengths_on_the_bionj_tree_of_phyml():
    peer = PEERS["optimised"]
    alignment = alignment_named(peer["data"])
    patterns = compress(alignment)
    tree = newick.read(peer["tree"], alignment.taxa)
    assert peer["phyml"] == pytest.approx(-6967.127, abs=1e-3)
    _, found = optimise(tree, patterns)
    assert found == pytest.approx(peer["phyml"], abs=0.01)
    blank, again = optimise(tree.with_lengths(np.full(tree.n_vertices, np.nan)), patterns)
    assert again == pytest.approx(peer["phyml"], abs=0.01)
    assert np.isfinite(blank.length).all()


def test_our_own_bionj_tree_of_ds1():
    patterns = compress(datasets.load("DS1"))
    _, found = optimise(bionj(distances(patterns), patterns.taxa), patterns)
    assert found > PEERS["optimised"]["phyml"] - 5
    assert found == pytest.approx(-6955.2, abs=0.05)


# Exactness and invariance


@pytest.mark.parametrize(("n_taxa", "n_vertices"), [(2, 3), (3, 4), (4, 6), (5, 7), (6, 7)])
def test_node_marginals_against_the_sum_over_all_states(n_taxa, n_vertices):
    for seed in range(4):
        tree, patterns, _ = case(seed, n_taxa, n_vertices)
        joint = states.joint_by_vertex(tree, patterns.codes)
        assert node_marginals(tree, patterns) == pytest.approx(joint / joint.sum(axis=1, keepdims=True), abs=1e-11)


@settings(max_examples=40)
@given(SEEDS)
def test_any_root_gives_the_same_likelihood_and_marginals(seed):
    tree, patterns, rng = case(seed)
    value, marginals = log_likelihood(tree, patterns), node_marginals(tree, patterns)
    other = tree.rerooted(int(rng.integers(tree.n_vertices)))
    assert log_likelihood(other, patterns) == pytest.approx(value, rel=1e-12)
    assert node_marginals(other, patterns) == pytest.approx(marginals, abs=1e-11)


@settings(max_examples=40)
@given(SEEDS)
def test_the_order_of_taxa_does_not_matter(seed):
    tree, patterns, rng = case(seed)
    order = rng.permutation(tree.n_taxa)
    taxa = tuple(tree.taxa[i] for i in order)
    moved = SitePatterns(taxa, patterns.codes[order], patterns.counts, patterns.site_pattern)
    assert log_likelihood(with_taxa(tree, taxa), moved) == pytest.approx(log_likelihood(tree, patterns), rel=1e-12)


@settings(max_examples=40)
@given(SEEDS)
def test_neither_compression_nor_folding_matters(seed):
    tree, few, rng = case(seed, n_patterns=4)
    sites = few.codes[:, rng.integers(4, size=50)]
    columns = SitePatterns(tree.taxa, sites, np.ones(50), np.arange(50))
    expected = log_likelihood(tree, columns)
    compressed = compress(Alignment(tree.taxa, sites))
    assert compressed.n_patterns <= 4
    assert log_likelihood(tree, compressed) == pytest.approx(expected, rel=1e-12)
    assert log_likelihood(tree, fold_states(compressed)) == pytest.approx(expected, rel=1e-12)


def test_folding_merges_patterns_and_keeps_the_likelihood_of_real_data():
    patterns = compress(datasets.load("DS1"))
    tree = bionj(distances(patterns), patterns.taxa)
    tree = tree.with_lengths(np.maximum(tree.length, 1e-4))
    folded = fold_states(patterns)
    assert folded.n_patterns < patterns.n_patterns
    assert log_likelihood(tree, folded) == pytest.approx(log_likelihood(tree, patterns), rel=1e-12)


def test_suppressing_vertices_of_degree_two_keeps_the_likelihood():
    for seed in range(20):
        tree, patterns, _ = case(seed, 4, 9)
        assert log_likelihood(simplified(tree), patterns) == pytest.approx(log_likelihood(tree, patterns), rel=1e-12)


def test_batches_do_not_depend_on_threads():
    rng = np.random.default_rng(1)
    trees = [random_shape(7, 12, rng, dangling=True) for _ in range(300)]
    patterns = random_patterns(trees[0].taxa, 300, rng)
    parents, lengths = np.stack([t.parent for t in trees]), np.stack([t.length for t in trees])
    one = log_likelihoods(parents, lengths, patterns, threads=1)
    for threads in (2, 5):
        assert np.array_equal(log_likelihoods(parents, lengths, patterns, threads=threads), one)
    for k in (0, 137, 299):
        assert one[k] == log_likelihoods(parents[k : k + 1], lengths[k : k + 1], patterns)[0]


# Impossible and unusable input


def test_impossible_patterns():
    tree = Tree(("a", "b", "c"), np.array([3, 3, 3, -1]), np.zeros(4))
    codes = np.array([[1, 4], [2, 4], [1, 4]], dtype=np.uint8)
    patterns = SitePatterns(tree.taxa, codes, np.ones(2), np.arange(2))
    assert log_likelihood(tree, patterns) == -np.inf
    marginals = node_marginals(tree, patterns)
    assert marginals[:, :, 0] == pytest.approx(0.25)
    assert marginals[:, :, 1] == pytest.approx(np.tile([0.0, 0.0, 1.0, 0.0], (4, 1)))
    best, value = optimise(tree, patterns)
    assert np.isfinite(value)
    assert best.length[1] > 0.1


def test_what_cannot_be_scored_is_refused():
    tree, patterns, _ = case(1)
    with pytest.raises(ValueError, match="same order"):
        log_likelihood(Tree(tree.taxa[::-1], tree.parent, tree.length), patterns)
    below = int(tree.postorder[0])
    for value, message in ((np.nan, "without a length"), (-0.1, "negative")):
        length = tree.length.copy()
        length[below] = value
        with pytest.raises(ValueError, match=message):
            log_likelihood(tree.with_lengths(length), patterns)
    with pytest.raises(ValueError, match="without any taxon"):
        schedule(np.array([3, 3, 3, -1, 3], dtype=np.int32), 3)


# Derivatives and optimal lengths


def test_derivatives_against_finite_differences():
    for seed in range(4):
        tree, patterns, _ = case(seed)
        tree = tree.with_lengths(tree.length + 0.05)
        first, second = branch_derivatives(tree, patterns)
        step = 1e-4
        assert first[tree.root] == second[tree.root] == 0.0
        for v, _ in tree.edges():
            values = []
            for k in (-2, -1, 0, 1, 2):
                length = tree.length.copy()
                length[v] += k * step
                values.append(log_likelihood(tree.with_lengths(length), patterns))
            assert first[v] == pytest.approx(np.dot([1, -8, 0, 8, -1], values) / (12 * step), rel=1e-7, abs=1e-7)
            assert second[v] == pytest.approx(np.dot([-1, 16, -30, 16, -1], values) / (12 * step**2), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("rate", [0.0, 10.0])
@pytest.mark.parametrize("name", ["DS1", "DS5", "shape"])
def test_the_optimum_is_one(name, rate):
    """Slopes vanish inside the range and point outwards at its ends; with a prior, slopes of the log-posterior."""
    if name == "shape":
        tree, patterns, _ = case(5, 8, 13, 40)
    else:
        patterns = compress(datasets.load(name))
        tree = bionj(distances(patterns), patterns.taxa)
    best, value = optimise(tree, patterns, prior_rate=rate, tolerance=1e-9, max_sweeps=500)
    assert value == log_likelihood(best, patterns)
    slope, curvature = branch_derivatives(best, patterns)
    slope = slope - rate
    real = np.arange(best.n_vertices) != best.root
    low, high = best.length < 1.01 * MIN_LENGTH, best.length > 0.99 * MAX_LENGTH
    inside = real & ~low & ~high
    # What another Newton step could still gain, in log units.
    assert (slope[inside] ** 2 / np.maximum(-2 * curvature[inside], 1e-9)).max() < 1e-6
    assert (slope[real & low] <= 1e-3).all()
    assert (slope[real & high] >= -1e-6).all()


@pytest.mark.parametrize("rate", [0.0, 10.0])
def test_every_sweep_climbs(rate):
    rng = np.random.default_rng(6)
    patterns = compress(datasets.load("DS5"))
    tree = random_binary_tree(patterns.n_taxa, rng, patterns.taxa)
    heights = []
    for n_sweeps in range(8):
        moved, value = optimise(tree, patterns, prior_rate=rate, tolerance=0.0, max_sweeps=n_sweeps)
        heights.append(value - rate * np.delete(moved.length, moved.root).sum())
    assert (np.diff(heights) > -1e-7).all()
    assert heights[1] > heights[0] + 10


def test_the_posterior_mode_beats_the_likelihood_mode_in_posterior_only():
    patterns = compress(datasets.load("DS1"))
    tree = bionj(distances(patterns), patterns.taxa)
    (peak, best), (mode, value) = optimise(tree, patterns), optimise(tree, patterns, prior_rate=10.0)
    assert value < best
    assert value - 10 * np.delete(mode.length, mode.root).sum() > best - 10 * np.delete(peak.length, peak.root).sum()


def test_two_taxa_have_the_distance_of_the_formula():
    codes = np.array([[1] * 10, [1] * 8 + [2, 4]], dtype=np.uint8)
    patterns = compress(Alignment(("a", "b"), codes))
    best, _ = optimise(Tree(("a", "b"), np.array([-1, 0]), np.array([0.0, 0.3])), patterns)
    assert best.length[1] == pytest.approx(-0.75 * np.log(1 - 4 / 3 * 0.2), abs=1e-4)
