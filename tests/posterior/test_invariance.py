"""Every move leaves pi_beta, proportional to proposal^(1-beta) * (likelihood * prior)^beta, as it is.

Trees x are drawn from a density r that is known (the proposal, or a fit mixed with the prior) and weighed by pi_beta / r. If a
move K leaves pi_beta invariant, the weighted mean of f(K(x)) - f(x) is zero for every f: no chain to run in, and no
approximation. At beta = 1 the topologies are also compared with enumeration and integrated lengths.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from reference.bridges import log_density, moved, one_law, rich_in_contexts, topology_of
from reference.exact import tree_evidence, unrooted_topologies
from reference.topologies import all_children, names

from vaiphy.alignment import SitePatterns
from vaiphy.models.priors import length_prior
from vaiphy.posterior import bridge
from vaiphy.posterior.parameter_law import ParameterFitting
from vaiphy.posterior.parameters import walk_of, walked
from vaiphy.posterior.particles import Moves, evaluated
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.target import target_of

TREES = all_children(5).astype(np.int64)
WIDE = ParameterFitting(prior_share=0.3)
#: Five taxa, five sites, one of them twice, with ambiguities.
CODES = np.array([[1, 1, 2, 8, 1], [1, 2, 2, 1, 1], [1, 2, 1, 1, 4], [2, 1, 5, 1, 4], [2, 15, 1, 1, 1]])
COUNTS = np.array([1.0, 1, 2, 1, 1])
KINDS = {
    "regraft": Moves(regrafts=3, tours=0, stretch=0.0),
    "tour": Moves(regrafts=0, tours=1, stretch=0.0),
    "stretch": Moves(regrafts=0, tours=0, stretch=0.7),
    "together": Moves(regrafts=2, tours=1, stretch=0.5),
}


def target(model="JC", prior="exp(10)"):
    patterns = SitePatterns(names(5), CODES.astype(np.uint8), COUNTS, np.repeat(np.arange(5), COUNTS.astype(int)))
    return target_of(patterns, model, length_prior(prior), fold=False)


def fitted(of):
    """A proposal far from the prior and from the posterior: few topologies, narrow lengths, some clades never seen."""
    rng = np.random.default_rng(11)
    which = rng.choice([1, 1, 1, 4, 4, 7, 9], size=60)
    lengths = rng.gamma(rng.uniform(1.0, 3.0, size=8), 0.05, size=(60, 8))
    z = 0.5 * of.draw_parameters(60, rng)
    weights = rng.dirichlet(np.ones(60))
    return fit(of, TREES[which], lengths, np.full(60, 7), z, weights, one_law(floor=0.2, parameters=WIDE))


def of_two_laws(of, shares=(0.3, 0.7)):
    """A mixture: few topologies with short lengths, and others with long ones."""
    rng = np.random.default_rng(13)
    z, laws = 0.5 * of.draw_parameters(60, rng), []
    for few, mean in (([1, 1, 1, 4, 9], 0.03), ([7, 7, 9, 12], 0.12)):
        lengths = rng.gamma(2.0, mean / 2.0, size=(60, 8))
        trees = TREES[rng.choice(few, size=60)], lengths, np.full(60, 7)
        laws.append(fit(of, *trees, z, np.full(60, 1 / 60), one_law(floor=0.2, parameters=WIDE)))
    return replace(laws[0], laws=(laws[0].laws[0], laws[1].laws[0]), log_shares=np.log(shares))


@cache
def wide(model, prior):
    """A rough fit to the posterior, to draw from; the prior is mixed into it below, so that weights are bounded."""
    of = target(model, prior)
    start = prior_proposal(of)
    state = bridge.initialise(start, 400, (1,))
    while not state.done:
        state = bridge.step(state, start, Moves())
    p = state.particles
    return fit(
        of,
        p.children,
        p.lengths,
        p.tops,
        p.z,
        np.full(400, 1 / 400),
        one_law(floor=0.2, widening=0.6, parameters=WIDE),
    )


def weighted(proposal, beta, n, seed):
    """Particles with weights: together they stand for pi_beta, without any error but that of chance."""
    of = proposal.target
    if beta < 1.0:
        particles = evaluated(proposal, *proposal.sample(n, [seed]))
        log_r = proposal.log_path(particles.log_laws, 0.0)
    else:
        rng = np.random.default_rng(seed)
        draws = wide(of.parts[0].model.name, str(of.length_prior)).sample(n, [seed, 1])
        prior = (TREES[rng.integers(15, size=n)], of.length_prior.draw(5, n, rng), np.full(n, 7), of.draw_parameters(n, rng))
        chosen = rng.random(n) < 0.3
        particles = evaluated(proposal, *(np.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in zip(prior, draws)))
        log_r = np.logaddexp(np.log(0.3) + log_prior(particles, of), np.log(0.7) + log_wide(particles, of))
    log_pi = proposal.log_path(particles.log_laws, beta) + beta * (particles.log_likelihood + log_prior(particles, of))
    weights = np.exp(log_pi - log_r - (log_pi - log_r).max())
    weights /= weights.mean()
    assert 1 / np.mean(weights**2) > 0.04, "too few of the draws count for a test"
    return particles, weights


def log_prior(particles, of):
    lengths = of.log_length_prior(particles.lengths, particles.tops)
    return lengths - np.log(15) + of.log_parameter_prior(particles.z)


def log_wide(particles, of):
    q = wide(of.parts[0].model.name, str(of.length_prior))
    return log_density(q, particles.children, particles.lengths, particles.tops) + q.parameters.log_density(particles.z)


def topologies(particles):
    """Which of the fifteen each particle has."""
    known = {topology_of(children, 7): i for i, children in enumerate(TREES)}
    rows = np.column_stack([particles.children.reshape(len(particles), -1), particles.tops])
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    return np.array([known[topology_of(row[:-1].reshape(3, 2), row[-1])] for row in distinct])[which.ravel()]


def statistics(particles):
    """Topologies, lengths of taxa's branches, of inner ones by clade, of the whole tree, moments, and all of these together."""
    rows = np.arange(len(particles))
    shape = np.eye(15)[topologies(particles)]
    lengths = particles.lengths
    outer = np.column_stack([lengths[rows, particles.tops], lengths[:, 1:5]])
    total = lengths[:, 1:].sum(axis=1)
    inner = total - outer.sum(axis=1)
    logs = np.log(np.column_stack([outer, inner, total]))
    likelihood = np.maximum(particles.log_likelihood, -200)
    columns = [
        shape,
        outer,
        inner,
        total,
        outer**2,
        total**2,
        logs,
        logs**2,
        shape * logs[:, -1:],
        shape * inner[:, None],
        likelihood,
    ]
    return np.column_stack([*columns, particles.log_laws[:, 0], particles.z, particles.z**2])


def deviations(before, after, weights):
    """The weighted mean change of every statistic, in standard errors."""
    change = weights[:, None] * (statistics(after) - statistics(before))
    error = change.std(axis=0) / np.sqrt(len(change))
    return np.where(error > 0, change.mean(axis=0) / np.where(error > 0, error, 1.0), 0.0)


@pytest.mark.parametrize("prior", ["exp(10)", "gammadir(2,1,1.5,0.7)"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("kind", list(KINDS))
def test_moves_leave_the_target_invariant(kind, beta, prior):
    proposal = fitted(target(prior=prior))
    before, weights = weighted(proposal, beta, 12_000, 5)
    after = moved(proposal, before, beta, KINDS[kind], 6, times=2)
    assert (after.lengths[:, 1:] != before.lengths[:, 1:]).any(axis=1).mean() > 0.3
    assert np.abs(deviations(before, after, weights)).max() < 4.5


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("model", ["JC", "HKY+G2"])
def test_moves_under_a_mixture(model, beta):
    """Each tree is moved under a law that is drawn for it: together that leaves the mixture's path invariant."""
    proposal = of_two_laws(target(model))
    before, weights = weighted(proposal, beta, 8_000, 51)
    if beta < 1.0:
        chosen = proposal.choose_laws(before.log_laws, beta, np.random.default_rng(1))
        assert 0.1 < chosen.mean() < 0.9
        together = np.exp((1 - beta) * before.log_laws) @ np.exp(proposal.log_shares)
        assert np.exp(proposal.log_path(before.log_laws, beta)) == pytest.approx(together, rel=1e-12)
    after = moved(proposal, before, beta, KINDS["together"], 8, times=2)
    again = evaluated(proposal, after.children, after.lengths, after.tops, after.z)
    assert after.log_laws == pytest.approx(again.log_laws, abs=1e-9)
    assert np.abs(deviations(before, after, weights)).max() < 4.5
    if model == "HKY+G2":
        walk = walk_of(before, np.full(len(before), 1 / len(before)))
        walked_on, _ = walked(proposal, before, beta, walk, 6, (11,), 2)
        assert np.abs(deviations(before, walked_on, weights)).max() < 4.5


def context_statistics(before, after, weights, slow):
    """Which contexts and which splits in them a tree has, those that are neither rare nor certain; and sums of lengths."""
    tables = []
    for particles in (before, after):
        table = [[(c, p, s) for _, c, p, s in slow.vertices(*tree)] for tree in zip(particles.children, particles.tops)]
        tables.append([set(row) | {(c, p) for c, p, _ in row} | {c for c, _, _ in row} for row in table])
    total = {}
    for row, weight in zip(tables[0], weights / len(weights)):
        for item in row:
            total[item] = total.get(item, 0.0) + weight
    common = sorted((item for item, share in total.items() if 0.02 < share < 0.98), key=str)
    out = []
    for particles, table in zip((before, after), tables):
        length = particles.lengths[:, 1:].sum(axis=1)
        present = np.array([[item in row for item in common] for row in table], dtype=float)
        numbers = [length, np.log(length), np.log(particles.lengths[:, 1:]).sum(axis=1), particles.log_laws[:, 0]]
        out.append(np.column_stack([present, present * length[:, None], *numbers, particles.log_likelihood]))
    return *out, len(common)


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["regraft", "tour"])
def test_moves_between_contexts(kind, beta):
    """Seven taxa: large enough for clades to be split differently as parts of different clades."""
    proposal, slow, _ = rich_in_contexts(7)
    n = 5_000
    before = evaluated(proposal, *proposal.sample(n, [5]))
    log_prior = proposal.target.log_length_prior(before.lengths, before.tops) + proposal.target.log_topology_prior
    gain = beta * (before.log_likelihood + log_prior - before.log_laws[:, 0])
    weights = np.exp(gain - gain.max())
    weights /= weights.mean()
    assert 1 / np.mean(weights**2) > 0.04
    after = moved(proposal, before, beta, KINDS[kind], 6, times=2)
    old, new, n_common = context_statistics(before, after, weights, slow)
    assert n_common > 40
    change = weights[:, None] * (new - old)
    assert (change[:, :n_common] != 0).any(axis=0).all()
    assert np.abs(change.mean(axis=0) / (change.std(axis=0) / np.sqrt(n))).max() < 4.5


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_moves_of_trees_with_their_parameters(beta):
    """Each tree at a parameter point of its own; matrices instead of the equal-input family."""
    proposal = fitted(target("HKY+G2"))
    before, weights = weighted(proposal, beta, 8_000, 47)
    after = moved(proposal, before, beta, KINDS["together"], 8, times=2)
    assert np.array_equal(after.z, before.z)
    assert np.abs(deviations(before, after, weights)).max() < 4.5


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_moves_of_parameters(beta):
    proposal = fitted(target("HKY+I+G2"))
    before, weights = weighted(proposal, beta, 8_000, 9)
    # Lengths go with the parameters, more than among the particles: a forgotten Jacobian shows.
    walk = walk_of(replace(before, z=0.7 * before.z + 0.2), np.full(len(before), 1 / len(before)))
    walk = replace(walk, slopes=walk.slopes + np.linspace(-0.2, 0.3, before.z.shape[1]))
    after, accepted = walked(proposal, before, beta, walk, 6, (10,), 2)
    assert 0.1 < accepted < 0.9
    assert (after.lengths[:, 1:] != before.lengths[:, 1:]).any(axis=1).mean() > 0.3
    again = evaluated(proposal, after.children, after.lengths, after.tops, after.z)
    assert after.log_likelihood == pytest.approx(again.log_likelihood, abs=1e-9)
    assert after.log_laws[:, 0] == pytest.approx(again.log_laws[:, 0], abs=1e-9)
    assert np.abs(deviations(before, after, weights)).max() < 4.5


def test_topologies_of_long_chains_are_the_posterior():
    """160 rounds of moves of 500 trees that all start at one topology, against integrals over all lengths."""
    proposal = fitted(target())
    n = 500
    start = evaluated(proposal, np.repeat(TREES[:1], n, axis=0), np.full((n, 8), 0.3), np.full(n, 7), np.zeros((n, 0)))
    state, seen = moved(proposal, start, 1.0, KINDS["together"], 1, 20), []
    for k in range(40):
        state = moved(proposal, state, 1.0, KINDS["together"], 2 + k, 4)
        seen.append(np.bincount(topologies(state), minlength=15) / n)
    sites = np.repeat(CODES, COUNTS.astype(int), axis=1).astype(np.uint8)
    exact = np.array([tree_evidence(edges, sites) for edges in unrooted_topologies(5)])
    exact /= exact.sum()
    error = np.std(seen, axis=0) / np.sqrt(len(seen)) + 1e-4
    assert np.abs((np.mean(seen, axis=0) - exact) / error).max() < 4.5
