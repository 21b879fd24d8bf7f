"""Islands among trees: found where there are some, not invented where there are none."""

import numpy as np
import pytest
from reference.bridges import random_trees
from reference.shapes import random_patterns
from reference.topologies import names

from vaiphy.posterior.islands import islands
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.posterior.tree_law import Fitting, IslandFitting, Trees
from vaiphy.target import target_of

N, TREES = 12, 192


def target():
    return target_of(random_patterns(names(N), 5, np.random.default_rng(1)), "JC")


def copies(children, tops, lengths):
    many = (np.repeat(children, TREES, axis=0), lengths, np.repeat(tops, TREES))
    return Trees(*many)


def of_lengths(rng, share):
    """One topology; either the first five taxa or the next five have long branches."""
    children, _, tops = random_trees(N, 1, rng)
    other = rng.random(TREES) < share
    lengths = rng.gamma(4.0, 0.005 / 4, size=(TREES, 2 * N - 2))
    lengths[other, 1:6] *= 12
    lengths[~other, 6:11] *= 12
    return copies(children, tops, lengths), other


@pytest.mark.parametrize("share", [0.12, 0.5])
def test_islands_of_lengths_are_found(share):
    rng = np.random.default_rng(3)
    trees, other = of_lengths(rng, share)
    weights = rng.dirichlet(np.full(TREES, 3.0))
    found = islands(target(), trees, weights, Fitting())
    assert sorted(np.concatenate(found).tolist()) == list(range(TREES))
    assert len(found) == 2
    assert {frozenset(group.tolist()) for group in found} == {
        frozenset(np.flatnonzero(other).tolist()),
        frozenset(np.flatnonzero(~other).tolist()),
    }
    # One law would hardly ever draw either of the two; the mixture does, each as often as it was seen, or more.
    proposal = fit(target(), *trees, np.zeros((TREES, 0)), weights)
    lengths = proposal.sample(4000, [1])[1]
    long = np.log(lengths[:, 1:6]).mean(axis=1) > np.log(lengths[:, 6:11]).mean(axis=1)
    assert long.mean() == pytest.approx(0.9 * weights[other].sum() + 0.05, abs=0.04)
    apart = np.abs(np.log(lengths[:, 1:6]).mean(axis=1) - np.log(lengths[:, 6:11]).mean(axis=1))
    assert (apart > 1.0).mean() > 0.95


def test_no_islands_among_trees_of_one_law():
    """Many topologies and lengths, all from the prior, and one topology whose lengths vary."""
    rng = np.random.default_rng(7)
    proposal = prior_proposal(target())
    children, lengths, tops, _ = proposal.sample(TREES, [2])
    even = np.full(TREES, 1 / TREES)
    assert len(islands(target(), Trees(children, lengths, tops), even, Fitting())) == 1
    one = copies(children[:1], tops[:1], rng.gamma(2.0, 0.05, size=(TREES, 2 * N - 2)))
    assert len(islands(target(), one, even, Fitting())) == 1
    assert len(islands(target(), of_lengths(rng, 0.5)[0], even, Fitting(islands=IslandFitting(most=1)))) == 1


def test_few_trees_are_no_island():
    trees, other = of_lengths(np.random.default_rng(3), 0.03)
    assert 0 < other.sum() < 8
    assert len(islands(target(), trees, np.full(TREES, 1 / TREES), Fitting())) == 1
