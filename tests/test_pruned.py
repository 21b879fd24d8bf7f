"""Cleaning trees of the augmented space keeps splits and distances and leaves no vertex of degree one or two."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaiphy.pruned import cleaned
from vaiphy.splitsample import branch_lengths
from vaiphy.tree import Tree


@given(st.integers(3, 8), st.integers(0, 10_000))
def test_cleaning_keeps_splits_and_lengths(n, seed):
    rng = np.random.default_rng(seed)
    inner = n - 2
    parent = np.full(2 * n - 2, -1)
    for k in range(1, inner):  # a random tree on the internal vertices, then the taxa anywhere
        parent[n + k] = n + rng.integers(k)
    parent[:n] = n + rng.integers(inner, size=n)
    labels = ("",) * n + tuple(f"V{k + 1}" for k in range(inner))
    tree = Tree(tuple(f"t{i}" for i in range(n)), parent, rng.exponential(size=2 * n - 2), labels)
    tree = tree.rerooted(int(rng.integers(tree.n_vertices)))
    clean = cleaned(tree)
    assert branch_lengths(clean) == pytest.approx(branch_lengths(tree))
    assert (clean.degree[n:] >= 3).all()
    assert (clean.degree[:n] == 1).all()
    # The vertices that stay have at least three parts with taxa around them, as they had before.
    for vertex in range(n, clean.n_vertices):
        old = tree.rerooted(tree.labels.index(clean.labels[vertex]))
        new = clean.rerooted(vertex)
        parts = {old.clades[v] for v in old.children[old.root]} - {0}
        assert parts == {new.clades[v] for v in new.children[vertex]}
