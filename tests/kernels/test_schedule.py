"""Schedules of trees of any shape, and likelihoods of trees with dangling and degree-two internal vertices."""

import numpy as np
import pytest
from reference.exact import augmented_trees, brute_log_likelihood
from reference.topologies import parents_of_edges

from vaiphy.alignment import SitePatterns
from vaiphy.kernels.schedule import from_parent
from vaiphy.likelihood import log_likelihoods, node_marginals
from vaiphy.trees.tree import Tree


def test_every_augmented_tree_of_five_taxa_against_the_sum_over_states():
    rng = np.random.default_rng(1)
    codes = rng.choice([1, 2, 4, 8, 15, 5], size=(5, 6)).astype(np.uint8)
    patterns = SitePatterns(tuple("abcde"), codes, np.ones(6), np.arange(6))
    trees = augmented_trees(5)[::5]
    parents = np.stack([parents_of_edges(tree, 8, root=5 + k % 3) for k, tree in enumerate(trees)])
    lengths = rng.exponential(0.2, size=parents.shape)
    found = log_likelihoods(parents, lengths, patterns)
    for tree, parent, length, value in zip(trees, parents, lengths, found):
        along = [length[i] if parent[i] == j else length[j] for i, j in tree]
        assert value == pytest.approx(brute_log_likelihood(tree, along, codes), abs=1e-10)


def test_dangling_vertices_are_counted_and_left_out():
    # Taxa 0, 1, 2 on vertex 3; 4 and 5 hang below it with nothing behind them.
    parent = np.array([3, 3, 3, -1, 3, 4], dtype=np.int32)
    order, start, child = np.empty(6, np.int32), np.empty(7, np.int32), np.empty(6, np.int32)
    for function in (from_parent, from_parent.py_func):
        n_order, n_dangling = function(parent, 3, order, start, child)
        assert (n_order, n_dangling) == (1, 2)
        assert order[0] == 3
        assert child[start[3] : start[4]].tolist() == [0, 1, 2]
    tree = Tree(("a", "b", "c"), parent, np.full(6, 0.1))
    patterns = SitePatterns(tree.taxa, np.array([[1], [2], [4]], np.uint8), np.ones(1), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="without any taxon"):
        node_marginals(tree, patterns)
