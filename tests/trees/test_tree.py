"""Trees as arrays: validation, splits, roots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.random_trees import random_binary_tree

from vaiphy.formats import newick
from vaiphy.trees.tree import Tree, TreeError, from_splits, simplified, with_taxa

TREE = newick.read("((a:1,b:2):0.5,(c:3,d:4):0.25,e:5);")


@st.composite
def augmented_trees(draw):
    """Trees on labelled vertices in which taxa are leaves and internal vertices have any degree, one and two included."""
    n, n_inner = draw(st.integers(3, 9)), draw(st.integers(1, 9))
    above = [draw(st.integers(0, k - 1)) if k else -1 for k in range(n_inner)]
    parent = [n + draw(st.integers(0, n_inner - 1)) for _ in range(n)] + [n + k if k >= 0 else -1 for k in above]
    return Tree(tuple("abcdefghi"[:n]), np.array(parent), np.arange(1.0, len(parent) + 1))


def renumbered(tree, new):
    """The same tree in which vertex v is called `new[v]`."""
    parent, length = np.empty_like(tree.parent), np.empty_like(tree.length)
    parent[new] = [new[above] if above >= 0 else -1 for above in tree.parent]
    length[new] = tree.length
    return Tree(tree.taxa, parent, length)


def distances(tree):
    """Path lengths between taxa, by walking."""
    beside = {v: [] for v in range(tree.n_vertices)}
    for vertex, above in tree.edges():
        beside[vertex].append((above, tree.length[vertex]))
        beside[above].append((vertex, tree.length[vertex]))
    result = np.zeros((tree.n_taxa, tree.n_taxa))
    for start in range(tree.n_taxa):
        stack = [(start, -1, 0.0)]
        while stack:
            vertex, before, length = stack.pop()
            if vertex < tree.n_taxa:
                result[start, vertex] = length
            stack += [(other, vertex, length + step) for other, step in beside[vertex] if other != before]
    return result


@pytest.mark.parametrize("parent", [[1, -1, -1], [1, 2, 0], [3, 3, 9, -1], [3, 3, 4, -1, 4], [-1], [2, 2, 2]], ids=str)
def test_arrays_that_are_no_trees(parent):
    with pytest.raises(TreeError):
        Tree(("a", "b"), np.array(parent), np.zeros(len(parent)))


def test_sizes_must_agree():
    with pytest.raises(TreeError):
        Tree(("a", "b"), np.array([2, 2, -1]), np.zeros(2))


def test_splits():
    assert TREE.topology == {0b11100, 0b01100}
    assert TREE.splits[0] == 0b11110
    assert TREE.splits[TREE.root] == 0
    assert TREE.is_binary
    assert not newick.read("(a,b,c,d);").is_binary
    assert sorted(TREE.degree.tolist()) == [1, 1, 1, 1, 1, 3, 3, 3]


@given(augmented_trees(), st.data())
def test_rerooting_keeps_the_unrooted_tree(tree, data):
    vertex = data.draw(st.integers(0, tree.n_vertices - 1))
    other = tree.rerooted(vertex)
    assert other.root == vertex
    assert other.topology == tree.topology
    assert np.allclose(distances(other), distances(tree))


@given(augmented_trees())
def test_simplified_keeps_distances_and_drops_the_rest(tree):
    plain = simplified(tree)
    assert np.allclose(distances(plain), distances(tree))
    assert plain.topology == tree.topology
    assert (plain.degree[plain.n_taxa :] >= 3).all()
    assert plain.n_vertices - plain.n_taxa == len(plain.topology) + 1


@given(augmented_trees(), st.data())
def test_a_topology_does_not_depend_on_root_and_numbers(tree, data):
    vertex = data.draw(st.integers(0, tree.n_vertices - 1))
    inner = data.draw(st.permutations(range(tree.n_taxa, tree.n_vertices)))
    assert renumbered(tree, [*range(tree.n_taxa), *inner]).rerooted(vertex).topology == tree.topology


@given(augmented_trees())
def test_tree_from_its_splits(tree):
    plain = simplified(tree)
    lengths = {split: length for split, length in zip(plain.splits, plain.length) if split}
    again = from_splits(plain.taxa, lengths)
    assert again.topology == plain.topology
    assert np.allclose(distances(again), distances(plain))


def test_incompatible_splits():
    with pytest.raises(TreeError, match="compatible"):
        from_splits(tuple("abcde"), {0b00110: 1.0, 0b01100: 1.0})


def test_hundreds_of_taxa():
    rng = np.random.default_rng(3)
    tree = random_binary_tree(300, rng)
    assert len(tree.topology) == 297
    assert tree.topology == tree.rerooted(17).topology
    assert len(tree.topology ^ random_binary_tree(300, rng).topology) > 400


def test_other_orders_of_taxa():
    other = with_taxa(TREE, ("e", "d", "c", "b", "a"))
    assert other.length[:5].tolist() == [5, 4, 3, 2, 1]
    assert with_taxa(other, TREE.taxa).topology == TREE.topology
    with pytest.raises(TreeError):
        with_taxa(TREE, ("a", "b"))
