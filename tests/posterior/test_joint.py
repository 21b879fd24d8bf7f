"""Geweke's joint test: draw a tree and parameters from the prior and data given these, move, and the prior must come out again.

Data are simulated here, jump by jump; the moves see the data, the summaries do not.
"""

from bisect import bisect

import numpy as np
import pytest
from reference.bridges import topology_of
from reference.slow_models import slow_model
from reference.topologies import all_children, names

from vaiphy.models.alphabets import DNA
from vaiphy.models.priors import length_prior
from vaiphy.models.substitution import model_of
from vaiphy.posterior.parameters import Walk, walked
from vaiphy.posterior.particles import Moves, evaluated, moved
from vaiphy.posterior.proposal import prior_proposal
from vaiphy.target import Part, Target

TREES = all_children(5).astype(np.int64)


def simulated(children, lengths, slow, n_sites, rng):
    """Tips (5, 4, n_sites) of sequences that evolved along a tree with the top last."""
    rates, shares = np.append(slow.rates, 0.0), np.append(slow.weights, slow.p_inv)
    category = rng.choice(len(rates), p=shares / shares.sum(), size=n_sites)
    states = {0: rng.choice(4, p=slow.pi, size=n_sites).tolist()}
    above = {int(c): 5 + k for k, pair in enumerate(children) for c in pair} | {7: 0}
    leaving = -np.diag(slow.generator)
    jumps = (np.cumsum(np.where(np.eye(4) > 0, 0.0, slow.generator), axis=1) / leaving[:, None]).tolist()
    for v in (7, *(v for v in (6, 5) if v in above), 1, 2, 3, 4):
        times = (rates[category] * lengths[v]).tolist()
        states[v] = [evolved(state, time, leaving, jumps, rng) for state, time in zip(states[above[v]], times)]
    return np.stack([np.eye(4)[states[v]].T for v in range(5)])


def evolved(state, time, leaving, jumps, rng):
    """The state after some time: waiting times and jumps, one after the other."""
    while True:
        time -= rng.exponential() / leaving[state]
        if time <= 0:
            return state
        state = min(bisect(jumps[state], rng.random()), 3)


def summaries(p):
    outer = np.column_stack([p.lengths[np.arange(len(p)), p.tops], p.lengths[:, 1:5]])
    total = p.lengths[:, 1:].sum(axis=1)
    cherry = [[frozenset(pair) in topology_of(c, t) for pair in ((1, 2), (3, 4), (1, 4))] for c, t in zip(p.children, p.tops)]
    return np.column_stack([outer, total, np.log(total), np.log(outer), total - outer.sum(axis=1), cherry, p.z, p.z**2])


@pytest.mark.parametrize(
    ("model", "prior", "n"), [("JC", "exp(10)", 1500), ("HKY+G", "exp(10)", 700), ("K80+I", "gammadir(2,2,1,0.5)", 500)]
)
def test_the_prior_comes_out_again(model, prior, n):
    rng = np.random.default_rng(6)
    own, lengths_prior = model_of(model, DNA), length_prior(prior)
    d = own.n_parameters
    walk = Walk(np.zeros(d), 1.5 * np.eye(d), np.full(d, 0.2)) if d else None
    before, after = [], []
    for k in range(n):
        which, lengths, z = rng.integers(15, size=1), lengths_prior.draw(5, 1, rng), own.draw_prior(1, rng)
        tips = simulated(TREES[which[0]], lengths[0], slow_model(own, z[0]), 8, rng)
        proposal = prior_proposal(Target(names(5), (Part("all", tips, np.ones(8), own),), lengths_prior))
        start = evaluated(proposal, TREES[which], lengths, np.array([7]), z)
        end = start
        for i in range(3):
            end, _ = walked(proposal, end, 1.0, walk, 3, (k, i), 1)
            end, _ = moved(proposal, end, 1.0, Moves(regrafts=2), (k, i), 1)
        before.append(summaries(start)[0])
        after.append(summaries(end)[0])
    change = np.array(after) - np.array(before)
    assert (change != 0).mean() > 0.5
    assert np.abs(change.mean(axis=0) / (change.std(axis=0) / np.sqrt(n))).max() < 4.5
    # And against what the prior's own means are: cherries have the share 3/15.
    cherries = np.array(after)[:, 13:16]
    assert np.abs(cherries.mean(axis=0) - 0.2).max() < 4.5 * 0.4 / np.sqrt(n)
