"""Particles: trees with the likelihood they claim, the same for any number of threads, both targets agreeing."""

from dataclasses import replace

import numpy as np
import pytest

from vaiphy import csmc
from vaiphy.alignment import Alignment, compress
from vaiphy.csmc import engine
from vaiphy.csmc.proposals import Proposal
from vaiphy.csmc.targets import Target
from vaiphy.csmc.vanilla import PriorLengths, UniformMerger
from vaiphy.likelihood import log_likelihoods
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.trees.counts import log_n_unrooted
from vaiphy.trees.sample import parents_of

EFFORT = csmc.Effort(bootstraps=10, climbs=2, expansions=2, pilots=1, pilot_particles=256)
VANILLA = Proposal(UniformMerger(), PriorLengths())


@pytest.fixture(scope="module")
def patterns():
    rng = np.random.default_rng(11)
    return compress(random_alignment(random_tree(taxon_names(8), rng), 150, rng, missing=0.05))


@pytest.fixture(scope="module")
def guided(patterns):
    rng = np.random.default_rng(3)
    return {kind: csmc.make_proposal("guided", patterns, Target(kind), rng, effort=EFFORT) for kind in ("rooted", "unrooted")}


@pytest.mark.parametrize("kind", ["rooted", "unrooted"])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0])
def test_particles_have_the_likelihood_they_claim(patterns, guided, kind, threshold):
    particles = engine.run(patterns, guided[kind], Target(kind), np.random.default_rng(1), 200, threshold=threshold)
    children, lengths = particles.unrooted
    expected = log_likelihoods(parents_of(children), lengths, patterns)
    np.testing.assert_allclose(particles.log_likelihoods, expected, atol=0.02)
    assert np.exp(particles.log_weights).sum() == pytest.approx(1.0)
    assert particles.ess.shape == (7,)
    assert particles.resampled[:-1].all() == (threshold == 1.0)
    assert not particles.resampled[-1]
    for rank in np.flatnonzero(~particles.resampled):
        np.testing.assert_array_equal(particles.ancestry[rank], np.arange(200))


@pytest.mark.parametrize("name", ["vanilla", "guided"])
def test_threads_change_nothing(patterns, guided, name):
    proposal = VANILLA if name == "vanilla" else guided["rooted"]
    one, two = (
        engine.run(patterns, proposal, Target("rooted"), np.random.default_rng(4), 700, threads=threads) for threads in (1, 2)
    )
    assert one.log_evidence == two.log_evidence
    np.testing.assert_array_equal(one.rooted_lengths, two.rooted_lengths)
    np.testing.assert_array_equal(one.rooted_children, two.rooted_children)


def test_preparation_does_not_depend_on_threads(patterns):
    found = [
        csmc.prepare(patterns, Target("unrooted"), np.random.default_rng(5), effort=EFFORT, threads=threads) for threads in (1, 2)
    ]
    np.testing.assert_array_equal(found[0].weights, found[1].weights)
    np.testing.assert_array_equal(found[0].children, found[1].children)


def test_targets_agree_through_the_tree_length(patterns, guided):
    """log Z_rooted = log Z_unrooted + log E[rate * tree length / (2n - 3)] under the unrooted posterior."""
    rng = np.random.default_rng(6)
    runs = {kind: [engine.run(patterns, guided[kind], Target(kind), stream, 1000) for stream in rng.spawn(8)] for kind in guided}
    correction = []
    for run in runs["unrooted"]:
        length = run.unrooted[1][:, 1:].sum(axis=1)
        correction.append(run.log_evidence + np.log(np.exp(run.log_weights) @ length * 10.0 / 13.0))
    rooted = np.array([run.log_evidence for run in runs["rooted"]])
    difference = rooted.mean() - np.mean(correction)
    error = np.sqrt((rooted.var(ddof=1) + np.var(correction, ddof=1)) / 8)
    assert abs(difference) < 4 * error
    assert error < 0.1


def test_missing_data_alone_have_evidence_one():
    """Nothing observed: every tree has likelihood one, and what is left are the densities of the proposals."""
    sites = np.full((6, 3), 15, dtype=np.uint8)
    sites[0] = 1  # a site with one observed base has likelihood 1/4
    patterns = compress(Alignment(tuple("abcdef"), sites))
    for kind in ("rooted", "unrooted"):
        target = Target(kind)
        proposal = csmc.make_proposal("guided", patterns, target, np.random.default_rng(1), effort=EFFORT)
        proposal = replace(proposal, floor=0.2, prior_share=0.5)
        found = engine.run(patterns, proposal, target, np.random.default_rng(2), 20000)
        assert found.log_evidence == pytest.approx(-3 * np.log(4), abs=0.1)


def test_more_particles_lose_less(patterns, guided):
    few, many = (
        np.mean([engine.run(patterns, VANILLA, Target("unrooted"), s, k).log_evidence for s in np.random.default_rng(7).spawn(6)])
        for k in (32, 2048)
    )
    best = engine.run(patterns, guided["unrooted"], Target("unrooted"), np.random.default_rng(8), 1000).log_evidence
    assert few < many < best + 1.0


def test_bad_input(patterns, guided):
    rng = np.random.default_rng(1)
    two = compress(Alignment(("a", "b"), np.array([[1], [2]], dtype=np.uint8)))
    with pytest.raises(ValueError, match="at least 3 taxa"):
        engine.run(two, VANILLA, Target("rooted"), rng)
    with pytest.raises(ValueError, match="at least one particle"):
        engine.run(patterns, VANILLA, Target("rooted"), rng, 0)
    with pytest.raises(ValueError, match="neither 'rooted' nor 'unrooted'"):
        Target("ultrametric")
    with pytest.raises(ValueError, match="must be positive"):
        Target("rooted", 0.0)
    with pytest.raises(ValueError, match="made for a rooted target"):
        engine.run(patterns, guided["rooted"], Target("unrooted"), rng)


def test_log_topology_prior():
    assert Target("unrooted").log_topology_prior(7) == -log_n_unrooted(7)
    assert Target("rooted").log_topology_prior(7) == -log_n_unrooted(8)
