"""Targets of several parts: likelihoods, priors and evidences that can be known in another way."""

import numpy as np
import pytest
from reference.standin import NAMES, fasta

from vaiphy.alignment import compress
from vaiphy.errors import InputError
from vaiphy.formats import parse_alignment
from vaiphy.formats.partitions import Subset, own_partition, parse_partition, parse_subset
from vaiphy.methods.evidence import EvidenceMethod, given_trees
from vaiphy.methods.parts import target_of_parts, with_models
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import target_for
from vaiphy.posterior.parameters import log_likelihoods
from vaiphy.posterior.particles import Particles
from vaiphy.posterior.proposal import prior_proposal
from vaiphy.runner.steps import run_steps
from vaiphy.target import target_of
from vaiphy.weights import log_mean_exp

ALIGNMENT = parse_alignment(fasta(NAMES[:5], n_sites=30))
PATTERNS = compress(ALIGNMENT)
HALVES = tuple(parse_subset(line) for line in ("JC, a = 1-30\\2", "JC, b = 2-30\\2"))
MIXED = """#NEXUS
begin data;
  dimensions ntax=4 nchar=8;
  format datatype=mixed(Standard:1-4,DNA:5-8) gap=- missing=?;
  matrix
  a 0012ACGT
  b 1101ACGA
  c 00?0ACTT
  d 1121GC-T
  ;
end;
"""


def drawn(target, n, seed=1):
    """Draws from the prior with their log-likelihoods."""
    proposal = prior_proposal(target)
    children, lengths, tops, z = proposal.sample(n, [seed])
    empty = np.zeros(n)
    particles = Particles(children, lengths, tops, z, empty, empty)
    return proposal, particles, log_likelihoods(proposal, particles, z, 1)


def likelihood_of(target, particles, scale=None):
    from dataclasses import replace

    moved = particles if scale is None else replace(particles, lengths=particles.lengths * scale[:, None])
    z = np.zeros((len(particles), 0))
    return log_likelihoods(prior_proposal(target), moved, z, 1)


def test_parts_with_linked_rates_are_one_alignment():
    whole = target_of(PATTERNS, "JC")
    split = target_of_parts(PATTERNS, HALVES, linked_rates=True)
    assert split.n_parameters == 0
    _, particles, found = drawn(split, 20)
    assert np.allclose(found, likelihood_of(whole, particles), rtol=1e-12)


def test_a_free_rate_stretches_the_branches_of_its_part():
    split = target_of_parts(PATTERNS, HALVES, linked_rates=False)
    _, particles, found = drawn(split, 20)
    rates = split.columns(particles.z)
    assert np.allclose((rates["m{1}"] + rates["m{2}"]) / 2, 1.0)
    expected = sum(
        likelihood_of(target_of_parts(PATTERNS, (half,)), particles, rates[f"m{{{k + 1}}}"]) for k, half in enumerate(HALVES)
    )
    assert np.allclose(found, expected, rtol=1e-12)


def test_the_prior_of_rates_is_a_density():
    thirds = tuple(parse_subset(line) for line in ("JC, a = 1-20", "JC, b = 21-30"))
    target = target_of_parts(PATTERNS, thirds, linked_rates=False)
    z = np.linspace(-40, 40, 20001)[:, None]
    assert np.trapezoid(np.exp(target.log_parameter_prior(z)), z[:, 0]) == pytest.approx(1.0, abs=1e-6)
    # A flat Dirichlet on the shares of substitutions: the rate of a part with two thirds of the sites is uniform on 0 to 1.5.
    rate = target.columns(target.draw_parameters(4000, np.random.default_rng(1)))["m{1}"]
    assert rate.max() <= 1.5
    assert rate.mean() == pytest.approx(0.75, abs=4 * 1.5 / np.sqrt(12 * 4000))


def test_characters_of_one_part_share_their_parameters_whatever_their_number_of_states():
    alignment = parse_alignment(MIXED, "mixed.nex")
    subsets = with_models(parse_partition("MK+G4, shape = 1-4\nF81, gene = 5-8", alignment), alignment)
    target = target_of_parts(compress(alignment), subsets, linked_rates=False)
    assert [(part.name, part.model.n_states, part.counts.sum()) for part in target.parts] == [
        ("shape", 2, 2.0), ("shape", 3, 2.0), ("gene", 4, 4.0),
    ]  # fmt: skip
    assert list(target.columns(np.zeros((1, target.n_parameters)))) == [
        "alpha{1}",
        "pi(A){2}",
        "pi(C){2}",
        "pi(G){2}",
        "pi(T){2}",
        "m{1}",
        "m{2}",
    ]
    z = target.draw_parameters(5, np.random.default_rng(2))
    rates = target.family(z).rates
    assert np.allclose(rates[:, :4], rates[:, 4:8])  # four categories of the two-state characters, then of the others


def test_a_mixed_file_is_the_sum_of_its_parts():
    alignment = parse_alignment(MIXED, "mixed.nex")
    subsets = with_models(own_partition(alignment), alignment, "JC")
    assert [subset.model for subset in subsets] == ["MK+ASC", "JC"]
    target = target_of_parts(compress(alignment), subsets)
    _, particles, found = drawn(target, 10)
    dna = parse_alignment(">a\nACGT\n>b\nACGA\n>c\nACTT\n>d\nGC-T\n")
    shapes = parse_alignment(">a\n0012\n>b\n1101\n>c\n00?0\n>d\n1121\n", seqtype="MORPH")
    morphology = target_of_parts(compress(shapes), with_models(own_partition(shapes), shapes))
    expected = likelihood_of(target_of(compress(dna), "JC"), particles) + likelihood_of(morphology, particles)
    assert np.allclose(found, expected, rtol=1e-12)


def test_models_of_parts_that_do_not_fit_are_refused():
    alignment = parse_alignment(MIXED, "mixed.nex")
    with pytest.raises(InputError, match="model 'LG' fits none of the parts"):
        with_models(own_partition(alignment), alignment, "LG")
    constant = parse_alignment(">a\n001\n>b\n011\n>c\n001\n>d\n011\n", seqtype="BIN")
    assert with_models(own_partition(constant), constant)[0].model == "JC2"
    with pytest.raises(InputError, match="sites 1, 3 may be constant"):
        with_models((Subset("x", "MK+ASC", own_partition(constant)[0].ranges),), constant)


def test_the_evidence_of_parts_is_that_of_plain_draws_from_the_prior():
    """Four taxa and twelve sites: averaging the likelihood over the prior is a slow estimate that nothing is wrong with."""
    patterns = compress(parse_alignment(fasta(NAMES[:4], n_sites=12, seed=3)))
    settings = Settings(seed=1, accuracy=0.1, partition=("JC, a = 1-6", "F81, b = 7-12"))
    target = target_for(patterns, settings)
    assert not target.linked_rates
    found = run_steps(patterns, settings, method=EvidenceMethod()).outcome
    plain = np.exp(drawn(target, 100_000)[2] - found.estimates["posterior"].log_evidence)
    ratio, error = plain.mean(), plain.std() / np.sqrt(len(plain))
    assert error < 0.05
    assert abs(ratio - 1.0) < 4 * np.hypot(error, found.estimates["posterior"].std_error)
    # From the trees of this model, another one's evidence is found too.
    other = Settings(seed=1, accuracy=0.1, model="JC+G4")
    again = run_steps(patterns, other, method=EvidenceMethod(given_trees(found.sample))).outcome.estimates["posterior"]
    plain = drawn(target_for(patterns, other), 100_000)[2]
    assert again.log_evidence == pytest.approx(log_mean_exp(plain), abs=0.2)
