"""Bridges as values: the same for any number of threads, steps that leave the old state alone, a ladder that can be frozen."""

import numpy as np
import pytest
from reference.shapes import random_patterns
from reference.topologies import names

from vaiphy.alignment import SitePatterns
from vaiphy.posterior import bridge
from vaiphy.posterior.ladder import Ladder, furthest, next_beta
from vaiphy.posterior.particles import Moves
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.target import target_of
from vaiphy.weights import effective_sample_size, pareto_k


def proposal_of(model, n_taxa=6):
    return prior_proposal(target_of(random_patterns(names(n_taxa), 10, np.random.default_rng(2)), model))


def content(state):
    """Everything in a state, bit by bit."""
    p = state.particles
    arrays = [getattr(p, name) for name in p.__dataclass_fields__] + [state.log_weights, state.ancestors, state.first]
    walks = [(walk.mean.tobytes(), walk.factor.tobytes()) for walk in state.walks if walk]
    return [a.tobytes() for a in arrays], walks, state.beta, state.log_evidence, state.drawn_variance, state.size, state.stages


each_kind = pytest.mark.parametrize(("model", "oversampling"), [("JC", 1), ("JC", 4), ("HKY+G", 1), ("HKY+G", 3)])


@each_kind
def test_any_number_of_threads_and_any_second_time(model, oversampling):
    proposal = proposal_of(model)
    states = [bridge.initialise(proposal, 50, (7,), oversampling, threads=threads) for threads in (1, 2, 3)]
    while not states[0].done:
        first = content(states[0])
        assert first == content(states[1]) == content(states[2])
        new = [bridge.step(state, proposal, Moves(), 0.5, threads) for state, threads in zip(states, (1, 2, 3))]
        assert content(states[0]) == first
        assert content(bridge.step(states[0], proposal, Moves(), 0.5, 2)) == content(new[0])
        states = new
    assert content(states[0]) == content(states[1]) == content(states[2])
    assert states[0].estimate == states[2].estimate
    other = bridge.step(bridge.initialise(proposal, 50, (8,)), proposal, Moves(), 0.5)
    assert not np.array_equal(other.particles.lengths, states[0].particles.lengths)


@each_kind
def test_a_frozen_ladder_is_followed(model, oversampling):
    """With the seed of the bridge that found it, it leads to the same end, to the last bit."""
    proposal = proposal_of(model)
    state = bridge.initialise(proposal, 40, (1,), oversampling)
    while not state.done:
        state = bridge.step(state, proposal, Moves(), 0.6)
    ladder = state.found
    assert ladder.betas[-1] == 1.0
    assert list(ladder.betas) == sorted(set(ladder.betas))
    again = bridge.initialise(proposal, 40, (1,), oversampling, ladder=ladder)
    while not again.done:
        again = bridge.step(again, proposal, Moves(), 0.1)
    assert content(again) == content(state)
    other = bridge.initialise(proposal, 40, (2,), oversampling, ladder=ladder)
    while not other.done:
        other = bridge.step(other, proposal, Moves())
    assert other.found.betas == ladder.betas
    assert other.estimate != state.estimate


def test_the_next_temperature_has_the_wanted_conditional_size():
    rng = np.random.default_rng(1)
    gain, log_weights = rng.normal(0, 20, size=500), rng.normal(size=500)
    weights = np.exp(log_weights) / np.exp(log_weights).sum()

    def of(factor):
        return next_beta(0.1, lambda beta: (beta - 0.1) * factor * gain, log_weights, 0.8)

    beta = of(1.0)
    x = np.exp((beta - 0.1) * gain)
    assert (weights @ x) ** 2 / (weights @ x**2) == pytest.approx(0.8, abs=1e-6)
    assert of(0.0) == 1.0
    assert 0.1 < of(1e12) < 1.0


def test_the_first_temperature_is_the_furthest_at_which_draws_carry():
    gain = np.random.default_rng(1).normal(0, 20, size=500)

    def of(factor):
        return furthest(lambda beta: effective_sample_size(beta * factor * gain), 40, 0.6)

    assert 0.0 < of(1.0) < 0.6
    assert effective_sample_size(of(1.0) * gain) == pytest.approx(40, rel=1e-6)
    assert of(0.01) == 0.6
    assert 0.0 < of(1e12) < 1e-8


def test_what_the_first_temperature_does():
    proposal = proposal_of("JC")
    state = bridge.initialise(proposal, 40, (1,), 10)
    after = bridge.step(state, proposal, Moves())
    assert (len(state.first), len(after.particles), len(after.first), after.size) == (400, 40, 400, 40)
    weights = np.exp(after.beta * state.first)
    assert after.log_evidence == pytest.approx(np.log(weights.mean()), abs=1e-12)
    assert after.drawn_variance == pytest.approx(weights.var() / weights.mean() ** 2 / 400, rel=1e-9)
    assert not after.log_weights.any()
    # Each draw has as many descendants as its weight says, up to one.
    copies = np.bincount(after.ancestors, minlength=400)
    assert np.abs(copies - 40 * weights / weights.sum()).max() < 1.0


def test_draws_that_reach_the_posterior_at_once_stay_as_they_are():
    proposal = proposal_of("JC")
    state = bridge.initialise(proposal, 40, (1,), 10, Ladder((1.0,), (None,)))
    after = bridge.step(state, proposal, Moves())
    assert after.done
    assert np.array_equal(after.particles.lengths, state.particles.lengths[after.ancestors])
    assert not any(after.stages[0].accepted)
    moved = bridge.step(bridge.initialise(proposal, 40, (1,), 1, Ladder((1.0,), (None,))), proposal, Moves())
    assert moved.stages[0].accepted[0] > 0.5


def test_a_poor_law_shows_in_the_tail_of_its_own_draws():
    """Among the draws of a good law those of a poor one, of little weight, would not be seen."""
    rng = np.random.default_rng(2)
    good, poor = rng.normal(0.0, 0.1, size=2000), 3.0 * rng.exponential(size=400) - 9.0
    log_weights, laws = np.concatenate([good, poor]), np.repeat([0, 1], [2000, 400])
    every, first, second = bridge._counting(log_weights, laws)
    assert (len(every), len(first), len(second)) == (2400, 2000, 400)
    assert pareto_k(log_weights[second]) > 1.0
    assert len(bridge._counting(np.where(laws == 1, -40.0, log_weights), laws)) == 2
    assert len(bridge._counting(log_weights[:2050], laws[:2050])) == 2


def test_a_proposal_that_is_the_posterior_needs_one_temperature():
    """No data: the prior is the answer, every weight is one."""
    codes = np.full((5, 1), 15, dtype=np.uint8)
    missing = target_of(SitePatterns(names(5), codes, np.ones(1), np.zeros(1, dtype=np.int64)), "JC")
    state = bridge.initialise(prior_proposal(missing), 30, (1,))
    assert state.first == pytest.approx(0.0, abs=1e-9)
    state = bridge.step(state, prior_proposal(missing), Moves())
    assert state.done
    assert not state.stages[0].resampled
    assert state.estimate == pytest.approx(0.0, abs=1e-9)
    assert state.n_ancestors == 30


def test_a_refitted_bridge_is_shorter():
    proposal = proposal_of("HKY+G", 8)
    state = bridge.initialise(proposal, 200, (1,))
    while not state.done:
        state = bridge.step(state, proposal, Moves(), 0.8)
    p, w = state.particles, np.exp(state.log_weights - state.log_weights.max())
    better = fit(proposal.target, p.children, p.lengths, p.tops, p.z, w / w.sum())
    again = bridge.initialise(better, 200, (2,))
    while not again.done:
        again = bridge.step(again, better, Moves(), 0.8)
    assert len(again.stages) < 0.7 * len(state.stages)
