"""Z-hat is unbiased: its mean over runs is the exact evidence, for every proposal, target and resampling.

Proposals are mixed with a good share of the prior and of unlikely mergers, so that weights are bounded and their means have
standard errors that can be trusted.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from reference.exact import log_evidence, rooted_topologies, unrooted_topologies

from vaiphy import csmc, vi
from vaiphy.alignment import Alignment, compress
from vaiphy.csmc import engine, guided
from vaiphy.csmc.jc_mixture import mixture_lengths
from vaiphy.csmc.pairwise import PairwiseLengths
from vaiphy.csmc.proposals import Proposal
from vaiphy.csmc.runs import make_target
from vaiphy.csmc.support import support_merger
from vaiphy.csmc.vanilla import PriorLengths, UniformMerger
from vaiphy.likelihood import log_likelihoods
from vaiphy.search.starts import distances

# Two sites; one missing and one ambiguous base.
CODES = np.array([[1, 2], [1, 4], [2, 4], [4, 15], [8, 3]], dtype=np.uint8)
TOPOLOGIES = {"rooted": rooted_topologies, "unrooted": unrooted_topologies}
PROPOSALS = ["vanilla", "pairwise", "support", "paper", "guided"]


FREQUENCIES = {"JC": (0.25, 0.25, 0.25, 0.25), "F81+F{0.1,0.2,0.3,0.4}": (0.1, 0.2, 0.3, 0.4)}


@cache
def exact_evidence(kind, n_taxa, model):
    return log_evidence(TOPOLOGIES[kind](n_taxa), CODES[:n_taxa], pi=FREQUENCIES[model])


def patterns_of(n_taxa):
    return compress(Alignment(tuple("abcde"[:n_taxa]), CODES[:n_taxa]))


def proposal_of(name, patterns, target):
    rng = np.random.default_rng(5)
    pairwise = PairwiseLengths(distances(patterns, model=target.model), prior_share=0.3)
    if name == "vanilla":
        return Proposal(UniformMerger(), PriorLengths())
    if name == "pairwise":
        return Proposal(UniformMerger(), pairwise)
    if name == "guided":
        effort = csmc.Effort(bootstraps=4, pilots=1, pilot_particles=64)
        return replace(csmc.make_proposal("guided", patterns, target, rng, effort=effort), floor=0.2, prior_share=0.2)
    fit = vi.fit(patterns, rng=rng, iterations=5, prior_share=0.3)
    trees = fit.sample_trees(100, rng)
    merger = support_merger(trees, log_likelihoods(trees.parents, trees.lengths, patterns), power=0.5, floor=0.2)
    return Proposal(merger, mixture_lengths(trees, fit.length_law) if name == "paper" else pairwise)


def deviation(name, kind, n_taxa, threshold, n_runs=60, n_particles=500, seed=1, model="JC"):
    """How many standard errors the mean of Z-hat is away from the evidence, and that standard error relative to it."""
    patterns = patterns_of(n_taxa)
    target = make_target(patterns, kind, model=model)
    exact = exact_evidence(kind, n_taxa, model)
    proposal = proposal_of(name, patterns, target)
    streams = np.random.default_rng(seed).spawn(n_runs)
    found = [engine.run(patterns, proposal, target, rng, n_particles, threshold=threshold).log_evidence for rng in streams]
    ratio = np.exp(np.array(found) - exact)
    error = ratio.std(ddof=1) / np.sqrt(n_runs)
    return (ratio.mean() - 1.0) / error, error


@pytest.mark.parametrize("name", PROPOSALS)
@pytest.mark.parametrize("kind", ["rooted", "unrooted"])
@pytest.mark.parametrize("n_taxa", [4, 5])
@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_mean_of_evidence(name, kind, n_taxa, threshold):
    z, error = deviation(name, kind, n_taxa, threshold)
    assert abs(z) < 4.0
    assert error < 0.03  # the test has power


@pytest.mark.parametrize("name", ["vanilla", "pairwise", "guided"])
@pytest.mark.parametrize("kind", ["rooted", "unrooted"])
def test_unequal_frequencies(name, kind):
    z, error = deviation(name, kind, 4, 0.5, model="F81+F{0.1,0.2,0.3,0.4}")
    assert abs(z) < 4.0
    assert error < 0.03


@pytest.mark.parametrize("kind", ["rooted", "unrooted"])
def test_three_taxa(kind):
    z, error = deviation("guided", kind, 3, 0.5)
    assert abs(z) < 4.0
    assert error < 0.01


@pytest.mark.parametrize("scheme", ["multinomial", "stratified"])
def test_other_resampling_schemes(scheme, monkeypatch):
    scheme_run = engine.run
    monkeypatch.setattr(engine, "run", lambda *args, **options: scheme_run(*args, resampling=scheme, **options))
    z, _ = deviation("guided", "rooted", 5, 1.0)
    assert abs(z) < 4.0


@pytest.mark.parametrize(("name", "broken"), [("vanilla", "none"), ("vanilla", "unrooted end"), ("guided", "uniform")])
def test_a_broken_backward_kernel_is_noticed(name, broken, monkeypatch):
    kernel = engine.log_backward

    def wrong(which, target, forest):
        if broken == "none" or (broken == "unrooted end" and forest.n_roots == 1):
            return np.zeros(forest.n_particles)  # every order of mergers counts in full
        return kernel("uniform", target, forest)

    monkeypatch.setattr(engine, "log_backward", wrong)
    z, _ = deviation(name, "unrooted", 5, 0.0)
    assert abs(z) > 6.0


def test_a_broken_order_is_noticed(monkeypatch):
    """Without the rule that a pair passed over is refused, the ordered kernel would count trees several times."""
    choose = guided.GuidedRun.choose

    def forgetful(self, forest, target, streams):
        found = choose(self, forest, target, streams)
        self.keys[:] = -1.0
        return found

    monkeypatch.setattr(guided.GuidedRun, "choose", forgetful)
    z, _ = deviation("guided", "unrooted", 5, 0.0)
    assert abs(z) > 6.0
