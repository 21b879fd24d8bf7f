"""VCSMC and VNCSMC: Z-hat is unbiased on four and five taxa, the gradient is that of log Z-hat, and learning raises it."""

import numpy as np
import pytest
from csmc.test_unbiased import exact_evidence, patterns_of

from vaiphy.alignment import compress
from vaiphy.csmc import engine, vcsmc
from vaiphy.csmc.nested import NestedProposal
from vaiphy.csmc.proposals import Proposal
from vaiphy.csmc.runs import make_target
from vaiphy.csmc.targets import Target
from vaiphy.csmc.vanilla import UniformMerger
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names

F81 = "F81+F{0.1,0.2,0.3,0.4}"


def rates_of(n_taxa):
    """Rates a little below the prior's, so that weights are bounded."""
    return np.random.default_rng(1).uniform(5.0, 9.0, (n_taxa - 1, 2))


@pytest.mark.parametrize("name", ["vcsmc", "vncsmc-1", "vncsmc-3"])
@pytest.mark.parametrize("kind", ["rooted", "unrooted"])
@pytest.mark.parametrize(("n_taxa", "model"), [(4, "JC"), (4, F81), (5, "JC")])
def test_mean_of_evidence(name, kind, n_taxa, model):
    rates = rates_of(n_taxa)
    proposal = (
        Proposal(UniformMerger(), vcsmc.ExponentialLengths(rates)) if name == "vcsmc" else NestedProposal(rates, int(name[-1]))
    )
    patterns, streams = patterns_of(n_taxa), np.random.default_rng(1).spawn(60)
    target = make_target(patterns, kind, model=model)
    found = [engine.run(patterns, proposal, target, rng, 300, "multinomial", threshold=1.0).log_evidence for rng in streams]
    ratio = np.exp(np.array(found) - exact_evidence(kind, n_taxa, model))
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert error < 0.04
    assert abs(ratio.mean() - 1.0) < 4.0 * error


def simulated(n_taxa=5, n_sites=40):
    rng = np.random.default_rng(3)
    return compress(random_alignment(random_tree(taxon_names(n_taxa), rng), n_sites, rng))


@pytest.mark.parametrize(("kind", "model"), [("rooted", "JC"), ("unrooted", "JC"), ("unrooted", F81)])
def test_the_gradient_is_that_of_log_z(kind, model):
    """With the same random numbers: a small step leaves the survivors as they are, and the rest is smooth."""
    patterns, rates = simulated(), rates_of(5)
    target = make_target(patterns, kind, model=model)

    def value(at):
        return vcsmc.gradient(patterns, at, target, np.random.default_rng(7), 20)[1]

    found, _ = vcsmc.gradient(patterns, rates, target, np.random.default_rng(7), 20)
    assert np.abs(found).max() > 0.1
    for rank in range(4):
        for side in range(2):
            factor = np.ones_like(rates)
            factor[rank, side] = np.exp(1e-3)
            slope = (value(rates * factor) - value(rates / factor)) / 2e-3
            assert found[rank, side] == pytest.approx(slope, abs=0.01)


def test_learning_raises_log_z_and_leaves_it_unbiased():
    patterns, target = simulated(6, 120), Target("rooted")
    learned = vcsmc.train(patterns, target, np.random.default_rng(1), vcsmc.Training(epochs=12, particles=64, batch=60, rate=0.1))
    assert len(learned.trace) == 13

    def runs(proposal):
        streams = np.random.default_rng(2).spawn(40)
        return np.array([engine.run(patterns, proposal, target, rng, 64, "multinomial", 1.0).log_evidence for rng in streams])

    before = runs(Proposal(UniformMerger(), vcsmc.ExponentialLengths(np.full((5, 2), 10.0))))
    after = runs(learned.proposal)
    assert after.mean() > before.mean() + 2.0 * np.sqrt((before.var() + after.var()) / 40)


def test_a_batch_has_its_sites():
    patterns = simulated()
    part = vcsmc.batch_of(patterns, np.array([3, 3, 17]))
    assert part.counts.sum() == 3
    assert (part.codes[:, part.site_pattern] == patterns.codes[:, patterns.site_pattern[[3, 3, 17]]]).all()


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="at least one try"):
        NestedProposal(rates_of(4), 0)
    with pytest.raises(ValueError, match="learning rate positive"):
        vcsmc.Training(rate=0.0)
