"""The sampler as a whole, on five taxa: states are values that can be saved at any step, and its result is the exact one."""

from dataclasses import replace

import numpy as np
import pytest
from reference.bridges import topology_of
from reference.exact import tree_evidence, unrooted_topologies
from reference.shapes import random_patterns
from reference.topologies import names

from vaiphy.alignment import SitePatterns
from vaiphy.posterior import progress, states
from vaiphy.posterior.learning import is_settled
from vaiphy.posterior.results import result
from vaiphy.posterior.settings import Settings
from vaiphy.target import target_of

CODES = np.array([[1, 1, 2, 8], [1, 2, 2, 1], [4, 2, 1, 1], [4, 1, 15, 1], [1, 2, 8, 5]], dtype=np.uint8)
SETTINGS = Settings(
    replicates=2, accuracy=0.04, min_effective=100, max_deviation=0.05, max_split_error=0.1,
    oversampling=5, learn_particles=48, most_settling=8,
    pilot_particles=48, min_particles=64, max_particles=256, sweep_share=0.25,
)  # fmt: skip


def small_target():
    return target_of(SitePatterns(names(5), CODES, np.ones(4), np.arange(4)), "JC")


def run(state, threads=1):
    while not state.done:
        state = states.step(state, threads)
    return state


def same(one, two):
    """Whether two states agree in every bit."""
    return one.keys() == two.keys() and all(
        one[name].dtype == two[name].dtype and one[name].tobytes() == two[name].tobytes() for name in one
    )


def copied(arrays):
    """Arrays of their own, as they come out of a file."""
    return {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize(("model", "kinds"), [("JC", ("prior",)), ("HKY+G2", ("bootstrap", "prior"))])
def test_states_are_values(model, kinds):
    """On one thread, on two, and saved and restored after every step: the same, and no step changes the state before it."""
    target = target_of(random_patterns(names(6), 8, np.random.default_rng(3)), model)
    settings = replace(
        SETTINGS, oversampling=3, kinds=kinds, learn_particles=16, pilot_particles=16, min_particles=16, max_particles=24,
        max_bridges=3, accuracy=0.001,
    )  # fmt: skip
    one = two = restored = states.initialise(target, settings, 5)
    shares, before = [], copied(states.to_arrays(one))
    while not one.done:
        after = states.step(one)
        assert same(states.to_arrays(one), before)
        before = copied(states.to_arrays(after))
        one, two = after, states.step(two, 2)
        restored = states.step(states.from_arrays(copied(states.to_arrays(restored)), target, settings))
        assert same(states.to_arrays(two), before)
        assert same(states.to_arrays(restored), before)
        shares.append(progress.describe(one).share)
    assert len(one.drawing.drawn) == 3
    assert one.drawing.drawn[0].log_evidence != one.drawing.drawn[1].log_evidence
    assert states.step(one) is one
    results = [result(state) for state in (one, restored)]
    assert results[0].log_evidence == results[1].log_evidence
    assert results[0].reasons == results[1].reasons
    assert results[0].sample.lengths.tobytes() == results[1].sample.lengths.tobytes()
    assert 0.0 <= shares[0] < 0.5 < shares[-1] == max(shares) == 1.0
    assert not same(states.to_arrays(states.step(states.step(states.initialise(target, settings, 6)))), before)


def exact_evidences():
    """p(X | topology) for all fifteen."""
    return {clades_of_edges(edges): tree_evidence(edges, CODES) for edges in unrooted_topologies(5)}


def clades_of_edges(edges):
    """The clades of a tree of edges, seen from taxon 0."""
    near = {}
    for i, j in edges:
        near.setdefault(i, []).append(j)
        near.setdefault(j, []).append(i)
    found = set()

    def visit(v, above):
        below = [visit(w, v) for w in near[v] if w != above]
        clade = frozenset([v]) if v < 5 else frozenset().union(*below)
        found.add(clade)
        return clade

    visit(near[0][0], 0)
    return frozenset(found)


def test_the_result_is_the_posterior():
    state = run(states.initialise(small_target(), SETTINGS, 1))
    found, exact = result(state), exact_evidences()
    assert found.converged
    assert found.reasons == ()
    assert 0.0 < found.std_error <= SETTINGS.accuracy
    assert abs(found.log_evidence - np.log(np.mean(list(exact.values())))) < 4 * found.std_error
    assert found.log_evidence == pytest.approx(np.log(np.exp(found.bridges).mean()), abs=1e-12)
    # Bounds: the mean log-weight is below the log mean weight, and a bridge is better than a draw.
    assert found.bounds["LB-1"] < found.bounds["LB-10"] < found.log_evidence
    assert found.bounds["LB-10"] < found.bounds["bridged"] <= found.log_evidence + 1e-9
    sample = found.sample
    weights = np.exp(sample.log_weights)
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert sample.n_samples == sum(len(one.log_weights) * len(one.particles) for one in state.drawing.drawn)
    support = np.bincount(sample.topology, weights=weights)
    truth = np.array([exact[topology_of(tree, 7)] for tree in sample.children]) / sum(exact.values())
    assert truth.sum() > 0.9
    assert np.abs(support - truth).max() < 4 * np.sqrt(truth * (1 - truth) / found.effective).max()
    assert (sample.parameters["TL"] == sample.lengths[:, 1:].sum(axis=1)).all()


def test_what_speaks_against_a_result():
    """Accuracy that cannot be reached with the bridges allowed; a run that is ended early; nothing done at all."""
    wanted = replace(SETTINGS, accuracy=1e-4, max_particles=64, max_bridges=2, max_deviation=1e-6)
    state = states.initialise(small_target(), wanted, 2)
    with pytest.raises(ValueError, match="no bridge"):
        result(state)
    with pytest.raises(ValueError, match="no replicate"):
        states.hurried(state)
    while not (state.drawing and state.drawing.drawn):
        state = states.step(state)
    early = result(state)
    assert not early.converged
    assert "ended before splits and log marginal likelihood" in early.reasons[0]
    late = result(run(state))
    assert not late.converged
    assert len(late.bridges) == 2
    assert "above the 0.0001 asked for, after 2 runs" in late.reasons[0]
    assert any("split frequencies" in reason for reason in late.reasons)
    # A search that found much more than the final sample must be heard.
    own = state.replicates[1].bridge
    rich = replace(state.replicates[1], bridge=replace(own, log_evidence=own.log_evidence + late.log_evidence + 5 - own.estimate))
    missing = result(replace(state, replicates=(state.replicates[0], rich)))
    assert any("replicate 2 (from" in reason and "misses" in reason for reason in missing.reasons)


def test_a_run_whose_time_is_up_draws_from_what_it_has():
    state = states.initialise(small_target(), SETTINGS, 3)
    while not any(replicate.arrived for replicate in state.replicates):
        state = states.step(state)
    hurried = states.hurried(state)
    assert hurried.drawing is not None
    assert state.drawing is None
    assert states.hurried(hurried) is hurried
    found = result(run(hurried))
    exact = np.log(np.mean(list(exact_evidences().values())))
    assert abs(found.log_evidence - exact) < 4 * found.std_error


def test_particles_settle_until_they_no_longer_get_better():
    """Levels: medians of log-posteriors, and their standard deviations, sweep by sweep."""
    rising = np.column_stack([np.arange(30.0), np.full(30, 5.0)])
    risen = np.column_stack([np.minimum(np.arange(30.0), 10.0), np.full(30, 5.0)])
    assert not is_settled(rising, 48, 4, 0.1)
    assert is_settled(rising, 30, 4, 0.1)
    assert next(k for k in range(1, 31) if is_settled(risen[:k], 48, 4, 0.1)) == 17
    assert not is_settled(risen[-7:], 48, 4, 0.1)
