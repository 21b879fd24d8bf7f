"""Which trees are one rearrangement away."""

import numpy as np
from reference.random_trees import random_binary_tree
from reference.shapes import interchanges, random_patterns

from vaiphy.models.jc69 import JC69
from vaiphy.search.rearrange import first_of_each, moved, moved_together, screen, topology_hashes
from vaiphy.target import SimpleTarget
from vaiphy.trees.sample import binary_arrays, parents_of
from vaiphy.trees.tree import Tree


def neighbourhood(tree, patterns, radius):
    children, lengths = binary_arrays(tree)
    moves, _, spans = screen(SimpleTarget(patterns, JC69, 10.0), children, lengths, 1e9, radius)
    trees, starts = moved(children, lengths, moves, spans)
    return trees, starts, {Tree(tree.taxa, parents_of(found), start).topology for found, start in zip(trees, starts)}


def test_moves_by_one_branch_are_the_interchanges():
    rng = np.random.default_rng(1)
    for n in (4, 5, 9, 14):
        tree = random_binary_tree(n, rng)
        patterns = random_patterns(tree.taxa, 10, rng)
        trees, starts, found = neighbourhood(tree, patterns, 1)
        assert found == {other.topology for other in interchanges(tree)}
        assert len(found) == 2 * (n - 3) == len(first_of_each(trees))
        assert (starts[:, 1:] > 0).all()


def test_all_moves_are_all_regraftings():
    rng = np.random.default_rng(2)
    for n in (4, 5, 8):
        tree = random_binary_tree(n, rng)
        _, _, found = neighbourhood(tree, random_patterns(tree.taxa, 10, rng), None)
        assert len(found) == 2 * (n - 3) * (2 * n - 7)  # Allen and Steel 2001


def test_moves_that_do_not_touch_are_made_together():
    rng = np.random.default_rng(3)
    tree = random_binary_tree(20, rng)
    children, lengths = binary_arrays(tree)
    moves, scores, spans = screen(SimpleTarget(random_patterns(tree.taxa, 50, rng), JC69, 10.0), children, lengths, 1e9, 1)
    best = np.argsort(-scores, kind="stable")
    together, start = moved_together(children, lengths, moves[best], spans[best])
    distance = len(Tree(tree.taxa, parents_of(together), start).topology - tree.topology)
    assert distance > 1
    assert topology_hashes(together[None]) != topology_hashes(children[None])
