"""The oracle itself, checked against counts and hand-made integrals."""

from math import log

import numpy as np
import pytest
from reference.exact import (
    augmented_trees,
    brute_log_likelihood,
    log_evidence,
    rooted_topologies,
    spanning_trees,
    tree_evidence,
    unrooted_topologies,
)


@pytest.mark.parametrize(
    ("trees", "number"),
    [
        (spanning_trees(4), 16),
        (spanning_trees(5), 125),
        (augmented_trees(4), 16),
        (augmented_trees(5), 729),
        (unrooted_topologies(5), 15),
        (rooted_topologies(4), 15),
        (rooted_topologies(5), 105),
    ],
)
def test_numbers_of_trees(trees, number):
    assert len(trees) == number
    assert len({frozenset(frozenset(edge) for edge in tree) for tree in trees}) == number


def splits(edges, n_taxa):
    """Leaf sets below each edge on the side without taxon 0."""
    found = set()
    for k in range(len(edges)):
        reached, stack = {0}, [0]
        others = edges[:k] + edges[k + 1 :]
        while stack:
            v = stack.pop()
            for i, j in others:
                for a, b in ((i, j), (j, i)):
                    if a == v and b not in reached:
                        reached.add(b)
                        stack.append(b)
        found.add(frozenset(range(n_taxa)) - reached)
    return frozenset(found)


def test_topologies_are_distinct_as_splits():
    assert len({splits(tree, 5) for tree in unrooted_topologies(5)}) == 15
    clades = {splits((*tree, (5, 8)), 6) for tree in rooted_topologies(5) for tree in [relabel(tree)]}
    assert len(clades) == 105


def relabel(tree):
    """Rooted tree on 5 taxa as an unrooted one on 6: shift internal vertices up, hang taxon 5 at the root (8 -> 9)."""
    shifted = tuple(tuple(v if v < 5 else v + 1 for v in edge) for edge in tree)
    return tuple(tuple(8 if v == 9 else 9 if v == 8 else v for v in edge) for edge in shifted)


def test_one_branch_integral_by_hand():
    # Two taxa over a rooted cherry, one site, different states: p = (1 - u1 u2)/16, E[u] = a/(a + 1), a = 3 rate/4.
    expected_decay = 7.5 / 8.5
    value = tree_evidence(((0, 2), (1, 2)), np.array([[1], [2]], dtype=np.uint8))
    assert value == pytest.approx((1 - expected_decay**2) / 16, rel=1e-13)


def test_quadrature_matches_sampling():
    rng = np.random.default_rng(3)
    codes = np.array([[1, 2], [1, 4], [8, 2], [8, 15]], dtype=np.uint8)
    tree = unrooted_topologies(4)[1]
    values = np.exp([brute_log_likelihood(tree, rng.exponential(0.1, 5), codes) for _ in range(1500)])
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - tree_evidence(tree, codes)) < 4 * error


def test_missing_site_has_evidence_one():
    codes = np.array([[15], [15], [15], [15]], dtype=np.uint8)
    assert log_evidence(augmented_trees(4), codes) == pytest.approx(0.0, abs=1e-13)
    codes[2] = 4
    assert log_evidence(augmented_trees(4), codes) == pytest.approx(log(0.25), abs=1e-13)
