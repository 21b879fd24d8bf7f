"""Lengths of draws that respond to each other and to the parameters: learned where they do, and drawn as their density says."""

from dataclasses import replace

import numpy as np
import pytest
from reference.bridges import one_law, random_trees
from reference.shapes import random_patterns
from reference.topologies import names

from vaiphy.posterior import bridge
from vaiphy.posterior.particles import Particles
from vaiphy.posterior.proposal import fit
from vaiphy.posterior.tree_law import Fitting
from vaiphy.target import target_of

N = 7


def coupled(n_trees, rng, model="JC"):
    """Trees of three topologies: branches are short below long ones, and all are long with the first parameter."""
    target = target_of(random_patterns(names(N), 4, rng), model)
    children, _, tops = random_trees(N, 3, rng)
    which = rng.integers(3, size=n_trees)
    children, tops = children[which], tops[which]
    lengths = np.zeros((n_trees, 2 * N - 2))
    for tree, top, row in zip(children, tops, lengths):
        row[top] = rng.gamma(6.0, 0.02)
        waiting = [top]
        while waiting:
            v = waiting.pop()
            for child in tree[v - N].tolist():
                row[child] = rng.gamma(20.0, 0.1 / 20) * np.exp(-1.5 * ((row[v] / 0.1) ** (1 / 3) - 1.0))
                if child >= N:
                    waiting.append(child)
    z = 0.3 * rng.standard_normal((n_trees, target.n_parameters))
    if target.n_parameters:
        lengths *= np.exp(z[:, :1])
    return target, children, lengths, tops, z


@pytest.mark.parametrize("model", ["JC", "HKY"])
def test_draws_are_nearer_to_trees_whose_lengths_are_coupled(model):
    """Log-densities of trees left out: those of draws that respond are better than those of independent lengths, by much."""
    rng = np.random.default_rng(5)
    target, *trees, z = coupled(2400, rng, model)
    seen, left = slice(0, 1200), slice(1200, None)
    proposal = fit(target, *(column[seen] for column in trees), z[seen], np.full(1200, 1 / 1200), replace(one_law(), guard=0.1))
    out = [column[left] for column in trees]
    log_laws = proposal.log_laws(*out)
    plain = proposal.log_guarded(*out, z[left])[1]
    gain = (plain - log_laws[:, 0]).mean()
    assert gain > (1.0 if model == "JC" else 2.0)
    if model == "HKY":
        assert proposal.scaling.slopes[0] == pytest.approx(1.0, abs=0.1)
        assert gain > (replace(proposal, scaling=None).log_guarded(*out, z[left])[1] - log_laws[:, 0]).mean() + 0.5


@pytest.mark.parametrize("model", ["JC", "HKY"])
def test_draws_that_respond_have_the_density_they_are_given(model):
    rng = np.random.default_rng(6)
    target, *trees, z = coupled(600, rng, model)
    fitting = replace(one_law(floor=0.2), guard=0.4)
    proposal = fit(target, *trees, z, np.full(600, 1 / 600), fitting)
    drawn = proposal.guarded_sample(40_000, [4])
    some = drawn.children, drawn.lengths, drawn.tops
    guarded, plain, _ = proposal.log_guarded(*some, drawn.z)
    back = np.exp(plain - guarded)
    assert abs(back.mean() - 1.0) <= 4.0 * back.std() / np.sqrt(len(back))
    # From draws of the tables themselves, whose density is known.
    own = proposal.sample(40_000, [5])
    ratio = np.exp(proposal.log_guarded(*own)[1] - proposal.log_laws(*own[:3])[:, 0])
    assert ratio.std() > 0.2
    assert abs(ratio.mean() - 1.0) <= 4.0 * ratio.std() / np.sqrt(len(ratio))


def test_no_response_is_learned_where_there_is_none():
    rng = np.random.default_rng(8)
    target = target_of(random_patterns(names(N), 4, rng), "JC")
    children, _, tops = random_trees(N, 1, rng)
    many = np.repeat(children, 800, axis=0), rng.gamma(5.0, 0.02, size=(800, 2 * N - 2)), np.repeat(tops, 800)
    proposal = fit(target, *many, np.zeros((800, 0)), np.full(800, 1 / 800), Fitting())
    gain, *slopes, _ = proposal.laws[0].draws.response.T
    assert np.abs(slopes).max() < 0.3
    assert gain.max() < 1.05


def test_a_heavy_tail_on_a_small_island_shows():
    """Two topologies: weights are alike on the one, and have a heavy tail on the other, which is a tenth of them."""
    rng = np.random.default_rng(9)
    children, _, tops = random_trees(N, 2, rng)
    small, rng = np.arange(6000) % 10 == 0, np.random.default_rng(0)
    particles = Particles(
        children[small.astype(int)], np.ones((6000, 2 * N - 2)), tops[small.astype(int)], np.zeros((6000, 0)), np.zeros(6000),
        np.zeros((6000, 1)),
    )  # fmt: skip
    heavy = np.where(small, 1.2 * rng.exponential(size=6000) - 2.5, rng.standard_normal(6000))
    assert bridge.pareto_k(heavy) < 0.7
    assert bridge._tail_by_split(heavy, particles) > 0.55  # after two standard errors for chance: 1.0 before
    light = np.where(small, 0.1, 0.2) * rng.standard_normal(6000)
    assert bridge._tail_by_split(light, particles) < 0.5
