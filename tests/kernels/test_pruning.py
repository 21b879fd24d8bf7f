"""The pruning kernel against the sum over all states, against itself in plain Python, and on trees that underflow."""

import numpy as np
import pytest
from reference import states
from reference.derivatives import branch_derivatives
from reference.random_trees import random_binary_tree
from reference.shapes import interpret, random_patterns, random_shape

from vaiphy.alignment import SitePatterns
from vaiphy.kernels import logsum, pruning
from vaiphy.likelihood import log_likelihood, node_marginals, schedule
from vaiphy.models.jc69 import JC69
from vaiphy.trees.tree import Tree


@pytest.mark.parametrize(("n_taxa", "n_vertices"), [(2, 2), (2, 4), (3, 4), (3, 6), (4, 4), (4, 6), (5, 7), (6, 7)])
def test_any_shape_against_the_sum_over_all_states(n_taxa, n_vertices):
    rng = np.random.default_rng(10 * n_taxa + n_vertices)
    kinds = set()
    for _ in range(6):
        tree = random_shape(n_taxa, n_vertices, rng, dangling=True)
        patterns = random_patterns(tree.taxa, 5, rng)
        expected = states.log_likelihood(tree, patterns.codes, patterns.counts)
        assert log_likelihood(tree, patterns) == pytest.approx(expected, abs=1e-11)
        assert states.log_likelihood_in_logs(tree, patterns.codes, patterns.counts) == pytest.approx(expected, abs=1e-11)
        kinds.add((tree.root < n_taxa, tree.degree.max() > 3))
    assert len(kinds) > 1 or n_vertices < 5


def call(function, tree, patterns, block=pruning.BLOCK):
    s = schedule(tree.parent, tree.n_taxa)
    pending = np.full(tree.n_vertices, -1, dtype=np.int64)
    us = np.exp(-4 / 3 * tree.length)
    work, log_scale = np.empty((tree.n_vertices, 4, block)), np.empty(block)
    return function(JC69.weights, s.order, s.start, s.child, us, patterns.tips, patterns.counts, work, log_scale, pending)


def test_compiled_equals_plain_python(monkeypatch):
    rng = np.random.default_rng(3)
    compiled = pruning.log_likelihood
    cases = []
    for n_taxa, n_vertices in ((3, 4), (6, 10), (7, 9), (25, 30)):
        tree = random_shape(n_taxa, n_vertices, rng, dangling=n_taxa == 25)
        if n_taxa == 25:  # a star, so that messages have to be rescaled
            tree = Tree(tree.taxa, np.r_[np.full(25, 25), -1], rng.exponential(0.001, 26))
        patterns = random_patterns(tree.taxa, 7, rng)
        cases.append((tree, patterns, call(compiled, tree, patterns)))
    with monkeypatch.context() as patch:
        interpret(patch, pruning, logsum)
        patch.setattr(logsum, "quick_log", np.log)  # made of machine instructions; tested by itself
        for tree, patterns, value in cases:
            assert call(pruning.log_likelihood, tree, patterns) == pytest.approx(value, rel=1e-13)


def test_more_patterns_than_a_block_holds():
    rng = np.random.default_rng(4)
    tree = random_shape(12, 20, rng)
    patterns = random_patterns(tree.taxa, 2 * pruning.BLOCK + 37, rng)
    assert log_likelihood(tree, patterns) == pytest.approx(
        states.log_likelihood_in_logs(tree, patterns.codes, patterns.counts), rel=1e-13
    )


def caterpillar(n, lengths):
    """Taxon 0 at the root; taxon k hangs from the k-th vertex of a path."""
    inner = np.arange(n, 2 * n - 2)
    parent = np.full(2 * n - 2, -1)
    parent[inner[0]], parent[inner[1:]] = 0, inner[:-1]
    parent[1 : n - 1], parent[n - 1] = inner, inner[-1]
    return Tree(tuple(f"t{k}" for k in range(n)), parent, lengths)


# The kernel knows a branch by u = exp(-4b/3): 1 - u has lost ten of its digits where b is about 1e-6.
@pytest.mark.parametrize(("scale", "tolerance"), [(1e-6, 2e-10), (0.1, 1e-13), (3.0, 1e-13)])
def test_two_thousand_taxa_in_a_caterpillar(scale, tolerance):
    rng = np.random.default_rng(5)
    n = 2000
    tree = caterpillar(n, rng.exponential(scale, 2 * n - 2) + 1e-8)
    patterns = random_patterns(tree.taxa, 12, rng)
    expected = states.log_likelihood_in_logs(tree, patterns.codes, patterns.counts)
    assert np.isfinite(expected)
    assert log_likelihood(tree, patterns) == pytest.approx(expected, rel=tolerance)
    assert log_likelihood(tree.rerooted(2 * n - 3), patterns) == pytest.approx(expected, rel=tolerance)


def test_a_star_of_two_thousand_taxa():
    rng = np.random.default_rng(6)
    n = 2000
    tree = Tree(tuple(f"t{k}" for k in range(n)), np.r_[np.full(n, n), -1], rng.exponential(0.01, n + 1) + 1e-8)
    patterns = random_patterns(tree.taxa, 11, rng)
    expected = states.log_likelihood_in_logs(tree, patterns.codes, patterns.counts)
    assert log_likelihood(tree, patterns) == pytest.approx(expected, rel=1e-12)


def test_an_impossible_pattern_gives_minus_infinity():
    rng = np.random.default_rng(7)
    tree = random_shape(4, 6, rng)
    patterns = random_patterns(tree.taxa, 6, rng, ambiguous=False)
    assert (patterns.codes != patterns.codes[0]).any()
    assert log_likelihood(tree.with_lengths(np.zeros(6)), patterns) == -np.inf
    same = random_patterns(tree.taxa, 1, rng, ambiguous=False)
    same.codes[:] = 4
    assert log_likelihood(tree.with_lengths(np.zeros(6)), same) == pytest.approx(same.counts[0] * np.log(0.25), rel=1e-14)


def brush(n, rng):
    """Caterpillars of ten to forty-five taxa, joined to a balanced tree: two partials due for rescaling meet."""
    parent, tops, taxa, vertex = {}, [], list(range(n)), n

    def join(first, second):
        nonlocal vertex
        parent[first] = parent[second] = vertex
        vertex += 1
        return vertex - 1

    while taxa:
        size = int(rng.integers(10, 45))
        part, taxa = taxa[:size], taxa[size:]
        tops.append(part[0])
        for taxon in part[1:]:
            tops[-1] = join(tops[-1], taxon)
    while len(tops) > 1:
        tops.append(join(tops.pop(0), tops.pop(0)))
    parent[tops[0]] = -1
    return Tree(tuple(f"t{k}" for k in range(n)), np.array([parent[v] for v in range(vertex)]), np.ones(vertex))


@pytest.mark.parametrize(("length", "tolerance"), [(1e-14, 1e-3), (1e-8, 2e-9), (1e-6, 2e-11), (1e-3, 1e-13)])
@pytest.mark.parametrize("make", [brush, random_binary_tree])
def test_data_at_odds_with_a_tree_of_very_short_branches(make, length, tolerance):
    """Every site has changed hundreds of times: partials fall as fast as they ever can."""
    rng = np.random.default_rng(8)
    tree = make(400, rng)
    tree = tree.with_lengths(np.full(tree.n_vertices, length))
    patterns = random_patterns(tree.taxa, 20, rng, ambiguous=False)
    expected = states.log_likelihood_in_logs(tree, patterns.codes, patterns.counts)
    assert log_likelihood(tree, patterns) == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize("length", [1e-8, 1e-3, 0.01])
@pytest.mark.parametrize("inside", [False, True])
def test_a_polytomy_whose_later_children_outvote_the_earlier(length, inside):
    """After 200 children the state of the other 201 is beyond the range of numbers, yet it is the more likely one."""
    half = 200
    n = 2 * half + 1
    parent = np.r_[np.full(n, n), -1]
    if inside:  # the polytomy is not the root: taxon 0 is
        parent[0], parent[n] = -1, 0
    tree = Tree(tuple(f"t{k}" for k in range(n)), parent, np.full(n + 1, length))
    codes = np.where(np.arange(n)[:, None] < half, [1, 1, 2, 15], [2, 5, 4, 8]).astype(np.uint8)
    counts = np.array([1.0, 2.0, 1.0, 3.0])
    patterns = SitePatterns(tree.taxa, codes, counts, np.repeat(np.arange(4), [1, 2, 1, 3]))
    expected = states.log_likelihood_in_logs(tree, codes, counts)
    assert log_likelihood(tree, patterns) == pytest.approx(expected, rel=1e-9)
    marginals = node_marginals(tree, patterns)[n]
    if length > 1e-4:
        assert marginals[:, 0] == pytest.approx([0.0, 1.0, 0.0, 0.0], abs=0.05)
    step = 1e-4 * length
    first, _ = branch_derivatives(tree, patterns)
    for v in (3, n - 1):
        ends = []
        for side in (-step, step):
            moved = tree.length.copy()
            moved[v] += side
            ends.append(states.log_likelihood_in_logs(tree.with_lengths(moved), codes, counts))
        if length > 1e-4:
            assert first[v] == pytest.approx((ends[1] - ends[0]) / (2 * step), rel=1e-4, abs=1e-3)
