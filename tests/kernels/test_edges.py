"""Partials on both sides of each branch, its ratio, and Newton sweeps, against sums over states and plain Python."""

import numpy as np
import pytest
from reference import states
from reference.shapes import interpret, random_patterns, random_shape

from vaiphy.kernels import edges, pruning
from vaiphy.likelihood import schedule
from vaiphy.models.jc69 import JC69


def arrays(tree, patterns):
    """What the kernels take: schedule, decays, data, workspaces."""
    s = schedule(tree.parent, tree.n_taxa)
    n, p = tree.n_vertices, patterns.n_patterns
    work = (np.zeros((n, 4, p)), np.zeros((n, 4, p)), np.zeros((n, p)), np.zeros(n, np.int32), np.zeros(n, np.int32))
    return s, np.exp(-4 / 3 * tree.length), work


def swept(tree, patterns, n_steps=0, prior=0.0):
    s, us, work = arrays(tree, patterns)
    edges.fill_below(JC69, s.order, s.start, s.child, us, patterns.tips, work[0])
    gained = edges.sweep(JC69, s.root, s.start, s.child, us, patterns.tips, patterns.counts, prior, n_steps, *work)
    return us, work, gained


def optimised(tree, patterns, prior=0.0, tolerance=1e-10, max_sweeps=50):
    s, us, work = arrays(tree, patterns)
    n_sweeps = edges.optimise(
        JC69, s.order, s.start, s.child, us, patterns.tips, patterns.counts, prior, tolerance, max_sweeps, *work
    )
    return us, work, n_sweeps


def cases(seed, sizes=((3, 4), (4, 6), (5, 7), (6, 6))):
    rng = np.random.default_rng(seed)
    for n_taxa, n_vertices in sizes:
        tree = random_shape(n_taxa, n_vertices, rng)
        yield tree, random_patterns(tree.taxa, 6, rng), rng


def test_the_ratio_gives_the_likelihood_at_every_length_of_the_branch():
    for tree, patterns, rng in cases(1):
        us, (_, _, ratio, _, _), _ = swept(tree, patterns)
        assert us == pytest.approx(np.exp(-4 / 3 * tree.length))  # nothing moved
        here = states.joint_by_vertex(tree, patterns.codes)[0].sum(axis=0)
        for v, _ in tree.edges():
            assert ratio[v].min() >= -1 - 1e-12
            assert ratio[v].max() <= 3 + 1e-12
            other = tree.length.copy()
            other[v] = rng.exponential(0.5)
            there = states.joint_by_vertex(tree.with_lengths(other), patterns.codes)[0].sum(axis=0)
            predicted = (1 + np.exp(-4 / 3 * other[v]) * ratio[v]) / (1 + us[v] * ratio[v])
            assert predicted == pytest.approx(there / here, rel=1e-10)


def test_below_is_the_likelihood_of_the_part_below():
    for tree, patterns, _ in cases(2):
        _, (below, *_), _ = swept(tree, patterns)
        joint = states.joint_by_vertex(tree, patterns.codes)
        assert 0.25 * below[tree.root] == pytest.approx(joint[tree.root], rel=1e-10)


def test_newton_finds_the_maximum_inside_and_at_the_ends():
    counts = np.array([3.0, 1.0, 2.0])
    grid = np.linspace(JC69.u_low, JC69.u_high, 200_001)
    for ratio in ([3.0, -1.0, 0.5], [3.0, 3.0, 3.0], [-1.0, -1.0, -0.5], [2.0, -0.9, -0.9]):
        for prior in (0.0, 2.0):
            table = np.array([ratio])
            height = counts @ np.log1p(np.outer(ratio, grid)) + prior * np.log(grid)
            for begin in (0.01, 0.5, 0.99):
                u, gained = edges.newton(table, 0, counts, begin, prior, JC69.u_low, JC69.u_high, 60)
                value = counts @ np.log1p(np.array(ratio) * u) + prior * np.log(u)
                assert value >= height.max() - 2e-5  # a step that gains less than 1e-5 is the last
                assert gained >= -1e-12


def test_newton_stays_where_nothing_is_known():
    assert edges.newton(np.zeros((1, 3)), 0, np.ones(3), 0.7, 0.0, JC69.u_low, JC69.u_high, 5) == (0.7, 0.0)


def test_lift_brings_columns_back_into_range_and_leaves_zeros():
    out = np.array([[[1e-250, 0.0, 0.5, 1e-101]] * 4])
    edges.lift(out, 0)
    assert out[0, 0] == pytest.approx([1e-50, 0.0, 0.5, 0.1])


def test_a_sweep_that_moves_leaves_the_ratios_it_met():
    """Sweeping again over the lengths found, without moving, must agree with a fresh start from them."""
    for tree, patterns, _ in cases(3):
        us, work, _ = optimised(tree, patterns, tolerance=1e-12)
        fresh = swept(tree.with_lengths(-0.75 * np.log(us)), patterns)[1]
        inside = [v for v, _ in tree.edges()]
        assert work[2][inside] == pytest.approx(fresh[2][inside], abs=2e-4)


def test_compiled_equals_plain_python(monkeypatch):
    rng = np.random.default_rng(4)
    several = []
    for n_taxa, n_vertices in ((2, 3), (5, 8), (7, 9)):
        tree = random_shape(n_taxa, n_vertices, rng)
        patterns = random_patterns(tree.taxa, 5, rng)
        several.append((tree, patterns, swept(tree, patterns), optimised(tree, patterns, 1.5, 1e-6)))
    with monkeypatch.context() as patch:
        interpret(patch, pruning, edges)
        for tree, patterns, (_, still, _), (us, _, n_sweeps) in several:
            inside = [v for v, _ in tree.edges()]
            _, plain, _ = swept(tree, patterns)
            for a, b in zip(still[:3], plain[:3]):
                assert a[inside] == pytest.approx(b[inside], rel=1e-11, abs=1e-13)
            plain_us, _, plain_sweeps = optimised(tree, patterns, 1.5, 1e-6)
            assert plain_sweeps == n_sweeps
            assert plain_us[inside] == pytest.approx(us[inside], rel=1e-9)
