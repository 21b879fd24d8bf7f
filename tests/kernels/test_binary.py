"""Unrooted binary trees as arrays: hashes, moves."""

import numpy as np
import pytest
from reference.random_trees import random_binary_tree
from reference.topologies import all_children, tree_of

from vaiphy.kernels import binary
from vaiphy.search.rearrange import topology_hashes
from vaiphy.trees.sample import binary_arrays, parents_of


def random_arrays(n_taxa: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return binary_arrays(random_binary_tree(n_taxa, rng))


def assert_valid(children: np.ndarray) -> None:
    """Every vertex but leaf 0 and the top is the child of one larger internal vertex."""
    n = len(children) + 2
    assert sorted(children.ravel().tolist()) == list(range(1, 2 * n - 3))
    assert (children < np.arange(n, 2 * n - 2)[:, None]).all()


def internal_branches(children: np.ndarray) -> list[tuple[int, int]]:
    """Child and parent of every branch."""
    n = len(children) + 2
    return [(c, n + k) for k, pair in enumerate(children.tolist()) for c in pair] + [(2 * n - 3, 0)]


@pytest.mark.parametrize("n_taxa", [4, 5, 6, 7])
def test_hashes_are_equal_iff_topologies_are(n_taxa: int) -> None:
    trees = all_children(n_taxa)
    topologies = [tree_of(tree).topology for tree in trees]
    assert len(set(topologies)) == len(set(topology_hashes(trees).tolist())) == len(trees)
    # The same topology with its internal vertices numbered in another postorder, and its children swapped.
    rng = np.random.default_rng(n_taxa)
    for tree, key, topology in zip(trees[:100], topology_hashes(trees[:100]), topologies):
        other, _ = binary_arrays(tree_of(tree).rerooted(int(rng.integers(1, n_taxa))))
        assert_valid(other)
        assert tree_of(other).topology == topology
        assert topology_hashes(other[None, :, ::-1].copy())[0] == key


@pytest.mark.parametrize("n_taxa", [4, 5, 8, 20])
def test_moves_keep_trees_valid_and_lengths(n_taxa: int) -> None:
    """Any subtree to any branch of the rest: what was cut keeps its splits and lengths, the closed gap has the summed length."""
    rng = np.random.default_rng(n_taxa)
    children, lengths = random_arrays(n_taxa, rng)
    parent = parents_of(children)
    moves = []
    for cut in range(1, 2 * n_taxa - 2):
        for a, w in ((cut, parent[cut]), (parent[cut], cut)):
            if w < n_taxa:
                continue
            rest = _component(children, int(w), int(a))
            for p, q in internal_branches(children):
                if p in rest and q in rest and w not in (p, q):
                    moves.append((a, w, p, q))
    moves_array = np.array(moves, dtype=np.int32)
    spans = rng.exponential(0.1, size=(len(moves), 3))
    trees, out = np.empty((len(moves), *children.shape), dtype=np.int32), np.zeros((len(moves), len(lengths)))
    binary.apply_moves(children, lengths, moves_array, spans, trees, out)
    start = lengths[1:].sum()
    for (_, w, p, q), span, tree, new in zip(moves, spans, trees, out):
        assert_valid(tree)
        cut_branch = lengths[moves_length(parent, _, w)]
        target = lengths[moves_length(parent, p, q)]
        assert new[1:].sum() == pytest.approx(start - cut_branch - target + span.sum())
        assert tree_of(tree).topology != tree_of(children).topology
    distinct = len(np.unique(topology_hashes(trees)))
    assert distinct == 2 * (n_taxa - 3) * (2 * n_taxa - 7)


def moves_length(parent: np.ndarray, v: int, w: int) -> int:
    """The vertex whose branch joins v and w."""
    return v if parent[v] == w else w


def _component(children: np.ndarray, w: int, a: int) -> set[int]:
    """The vertices on w's side of the branch a-w."""
    around: dict[int, list[int]] = {}
    for v, u in internal_branches(children):
        around.setdefault(v, []).append(u)
        around.setdefault(u, []).append(v)
    found, waiting = {w}, [w]
    for v in waiting:
        for u in around[v]:
            if u not in found and {u, v} != {a, w}:
                found.add(u)
                waiting.append(u)
    return found
