"""The proposal of trees: sums to one, is drawn from as it says, and is what a slow version with sets says."""

from dataclasses import replace

import numpy as np
import pytest
from reference.bridges import SlowProposal, log_density, one_law, random_trees, topology_of, with_tables
from reference.topologies import all_children, names
from scipy.stats import chisquare, gamma, kstest

from vaiphy.models.alphabets import DNA
from vaiphy.models.priors import LengthPrior, length_prior
from vaiphy.models.substitution import model_of
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.target import Part, Target


def bare_target(n_taxa, prior="exp(10)"):
    """A target whose one site is missing everywhere."""
    part = Part("all", np.ones((n_taxa, 4, 1)), np.ones(1), model_of("JC", DNA))
    return Target(names(n_taxa), (part,), length_prior(prior))


def fitted(n_taxa, rng, floor=0.05, n=40):
    """A proposal and its slow twin, from weighted trees of few topologies."""
    children, lengths, tops = random_trees(n_taxa, n, rng)
    few = rng.integers(max(3, n // 4), size=n)
    children, lengths, tops = children[few], lengths[few] * rng.gamma(5.0, 0.2, size=lengths.shape), tops[few]
    weights, fitting = rng.dirichlet(np.ones(n)), one_law(floor=floor)
    proposal = fit(bare_target(n_taxa), children, lengths, tops, np.zeros((n, 0)), weights, fitting)
    return proposal, SlowProposal(children, lengths, tops, weights, fitting), (children, lengths, tops)


def topology_densities(proposal, children, tops):
    """The density of topologies alone: with all lengths Exp(1), and so short that these have density one."""
    no_gammas = proposal.laws[0].clades.place_value * [0.0, 0.0, 1.0, 0.0]
    alone = with_tables(proposal, place_value=no_gammas, numbers=np.array([1.0, 1.0, 0.0] * 2))
    return log_density(alone, children, np.full((len(tops), children.shape[1] * 2 + 2), 1e-15), tops)


@pytest.mark.parametrize("n_taxa", [4, 5, 6])
@pytest.mark.parametrize("floor", [0.5, 0.05, 1e-6, None])
def test_topologies_sum_to_one(n_taxa, floor):
    rng = np.random.default_rng(n_taxa)
    proposal = prior_proposal(bare_target(n_taxa)) if floor is None else fitted(n_taxa, rng, floor, n=12)[0]
    trees = all_children(n_taxa).astype(np.int64)
    log_density = topology_densities(proposal, trees, np.full(len(trees), 2 * n_taxa - 3))
    assert np.exp(log_density).sum() == pytest.approx(1.0, abs=1e-12)
    assert np.isfinite(log_density).all()
    if floor is None:
        assert log_density == pytest.approx(-np.log(len(trees)), abs=1e-12)
    else:
        assert log_density.max() - log_density.min() > 1.0


@pytest.mark.parametrize("n_taxa", [3, 4, 6, 8, 70])
def test_densities_are_those_of_the_slow_version(n_taxa):
    rng = np.random.default_rng(10 + n_taxa)
    proposal, slow, seen = fitted(n_taxa, rng)
    ways = set()
    for children, lengths, tops in (seen, random_trees(n_taxa, 20, rng), proposal.sample(20, [1])[:3]):
        ways |= set().union(*(slow.ways(*tree) for tree in zip(children, tops)))
        found = log_density(proposal, children, lengths, tops)
        assert found == pytest.approx([slow.log_density(*tree) for tree in zip(children, lengths, tops)], rel=1e-10, abs=1e-9)
    if n_taxa == 8:
        splits = ("context", "clade, known context", "clade, new context", "other splits, known context")
        splits += ("other splits, new context", "nowhere, new context")
        assert ways == {("split", way) for way in splits} | {("length", way) for way in ("context", "clade", "nowhere")}


@pytest.mark.parametrize("floor", [0.3, 0.01, None])
def test_topologies_are_drawn_as_often_as_the_density_says(floor):
    proposal = prior_proposal(bare_target(6)) if floor is None else fitted(6, np.random.default_rng(3), floor, n=12)[0]
    trees, n = all_children(6).astype(np.int64), 40_000
    expected = n * np.exp(topology_densities(proposal, trees, np.full(105, 9)))
    children, _, tops, _ = proposal.sample(n, [4])
    rows, times = np.unique(children.reshape(n, -1), axis=0, return_counts=True)
    assert (tops == 6).all()
    known = {topology_of(tree, 9): i for i, tree in enumerate(trees)}
    drawn = np.zeros(105)
    np.add.at(drawn, [known[topology_of(row.reshape(4, 2), 6)] for row in rows], times)
    often = expected >= 8
    pooled = [np.append(x[often], x[~often].sum()) for x in (drawn, expected)]
    pooled = [x[:-1] if pooled[1][-1] < 5 else x for x in pooled]
    assert chisquare(pooled[0], pooled[1] * pooled[0].sum() / pooled[1].sum()).pvalue > 1e-3


def test_lengths_are_drawn_from_the_gamma_of_their_context_or_clade():
    rng = np.random.default_rng(8)
    proposal, slow, _ = fitted(5, rng, floor=0.3)
    children, lengths, tops, _ = proposal.sample(8000, [2])
    drawn = {}
    for tree, length, top in zip(children, lengths, tops):
        for v, clade, parent, _ in slow.vertices(tree, top):
            drawn.setdefault((clade, parent, v < 5 or v == top), []).append(length[v])
    assert {slow.known(clade, parent, None) for clade, parent, _ in drawn} == {"context", "clade", "nowhere"}
    assert {outer for clade, _, outer in drawn if clade not in slow.gammas} == {False}
    for place, values in drawn.items():
        shape, rate = slow.gamma(*place)
        assert kstest(values, gamma(shape, scale=1 / rate).cdf).pvalue > 1e-4


def test_a_single_tree_is_found_again():
    """More than 64 taxa: the sets of taxa take more than one word."""
    rng = np.random.default_rng(5)
    children, lengths, tops = (np.repeat(x, 5, axis=0) for x in random_trees(150, 1, rng))
    fitting = one_law(floor=1e-9, novelty=1e-9, context_novelty=1e-9)
    proposal = fit(bare_target(150), children, lengths, tops, np.zeros((5, 0)), np.full(5, 0.2), fitting)
    drawn, _, drawn_tops, _ = proposal.sample(10, [1])
    assert {topology_of(tree, top) for tree, top in zip(drawn, drawn_tops)} == {topology_of(children[0], tops[0])}


def test_nothing_learned_is_the_prior():
    target = bare_target(7)
    children, lengths, tops = random_trees(7, 10, np.random.default_rng(1))
    found = log_density(prior_proposal(target), children, lengths, tops)
    assert target.length_prior == LengthPrior()
    assert found == pytest.approx(target.log_length_prior(lengths, tops) + target.log_topology_prior, abs=1e-9)


def test_trees_of_no_weight_teach_nothing():
    rng = np.random.default_rng(2)
    children, lengths, tops = random_trees(6, 30, rng)
    weights = rng.dirichlet(np.ones(30)) * (np.arange(30) % 2)
    weights /= weights.sum()
    z = np.zeros((30, 0))
    one = fit(bare_target(6), children, lengths, tops, z, weights)
    two = fit(bare_target(6), children[1::2], lengths[1::2], tops[1::2], z[1::2], weights[1::2])
    values = [log_density(q, children, lengths, tops) for q in (one, two)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_guarded_draws_have_the_density_they_are_given():
    """Weights from it back to the density of the tables have mean one, and the guard bounds those to unguarded draws."""
    proposal = fitted(6, np.random.default_rng(8), 0.05, n=12)[0]
    for guard in (0.0, 0.3, 3.0):
        guarded = replace(proposal, guard=guard)
        drawn = guarded.guarded_sample(20_000, [3])
        trees = drawn.children, drawn.lengths, drawn.tops
        log_laws = guarded.log_laws(*trees)
        wide, narrow, _ = guarded.log_guarded(*trees, drawn.z)
        assert (drawn.n_wide > 0).mean() == pytest.approx(1.0 - (1.0 - guard / 9) ** 9, abs=0.015)
        for back in (np.exp(log_laws[:, 0] - wide), np.exp(narrow - wide)):
            assert abs(back.mean() - 1.0) <= 4.0 * back.std() / np.sqrt(len(back))
        assert (wide - narrow >= 9 * np.log1p(-guard / 9) - 1e-9).all()
    plain = proposal.sample(20_000, [3])
    assert np.array_equal(plain[1], replace(proposal, guard=0.0).guarded_sample(20_000, [3]).lengths)
