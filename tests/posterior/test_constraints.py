"""Under constraints: trees that obey are counted, drawn, moved and weighed exactly, on cases small enough to list all trees."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from reference.bridges import log_density, moved, one_law, topology_of, with_tables
from reference.exact import tree_evidence, unrooted_topologies
from reference.topologies import all_children, names
from scipy.special import gammaln
from scipy.stats import chisquare

from vaiphy.alignment import SitePatterns
from vaiphy.models.priors import length_prior
from vaiphy.posterior import bridge
from vaiphy.posterior.ladder import Ladder
from vaiphy.posterior.particles import Moves, evaluated
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.posterior.starts import start
from vaiphy.target import target_of
from vaiphy.trees.constraints import constrained

CODES = np.array(
    [[1, 1, 2, 8], [1, 2, 2, 1], [4, 2, 1, 1], [4, 1, 15, 1], [1, 2, 8, 5], [1, 1, 8, 1]],
    dtype=np.uint8,
)
#: required, forbidden, bound; for six taxa.
CASES = {
    "pair": ([{1, 2}], [], None),
    "with taxon 0": ([{0, 3}], [], None),
    "nested": ([{1, 2, 3}, {1, 2}], [], None),
    "two": ([{1, 4}, {2, 5}], [], None),
    "triple": ([{2, 3, 5}], [], None),
    "some taxa": ([{1, 2}], [], {0, 1, 2, 3}),
    "some taxa, nested": ([{1, 2, 3}, {1, 2}], [], {0, 1, 2, 3, 4}),
    "not": ([], [{1, 2}], None),
    "neither": ([], [{1, 2}, {1, 2, 3}, {0, 1}], None),
    "both": ([{1, 2, 3}], [{1, 2}], None),
}
MOVES = Moves(regrafts=2, tours=1, stretch=0.0)


@cache
def trees_of(n_taxa):
    """All trees, and their splits by the sides without taxon 0."""
    children = all_children(n_taxa).astype(np.int64)
    return children, [topology_of(one, 2 * n_taxa - 3) for one in children]


def splits_of(one):
    """The taxa below every vertex of a tree in any numbering."""
    n = len(one) + 2

    def below(v):
        if v < n:
            return frozenset([v])
        return below(one[v - n, 0]) | below(one[v - n, 1])

    return {below(n + k) for k in range(n - 2)}


def obeying(constraint):
    """Which of all trees obey, found with sets: no standing, no identity."""
    children, _ = trees_of(constraint.n_taxa)
    return np.array([obeys(constraint, splits_of(one)) for one in children])


def obeys(constraint, splits):
    restricted = {split & constraint.bound for split in splits}
    return all(clade in restricted for clade in constraint.required) and not any(
        clade in splits for clade in constraint.forbidden
    )


def target_with(case, n_taxa=6, n_sites=4, model="JC", prior="exp(10)"):
    codes = CODES[:n_taxa, :n_sites]
    patterns = SitePatterns(names(n_taxa), codes, np.ones(n_sites), np.arange(n_sites))
    target = target_of(patterns, model, length_prior(prior), fold=False)
    return replace(target, constraint=constrained(n_taxa, *CASES[case]))


def fitted(target):
    """A proposal far from uniform, fitted to a few trees that obey."""
    rng = np.random.default_rng(3)
    n = target.n_taxa
    children = trees_of(n)[0][obeying(target.constraint)]
    which = rng.integers(len(children), size=8)[rng.integers(8, size=50)]
    lengths = rng.gamma(rng.uniform(0.8, 1.5, size=2 * n - 2), 0.1, size=(50, 2 * n - 2))
    z = target.draw_parameters(50, rng)
    top = np.full(50, 2 * n - 3)
    return fit(
        target,
        children[which],
        lengths,
        top,
        z,
        rng.dirichlet(np.ones(50)),
        one_law(floor=0.3, novelty=0.5),
    )


def which_trees(target, children, tops):
    """The number of each tree among all."""
    _, names_of_all = trees_of(target.n_taxa)
    known = {name: k for k, name in enumerate(names_of_all)}
    rows, which = np.unique(np.column_stack([children.reshape(len(tops), -1), tops]), axis=0, return_inverse=True)
    return np.array([known[topology_of(row[:-1].reshape(-1, 2), row[-1])] for row in rows])[which.ravel()]


def log_topology(proposal):
    """Log-probability of each topology: lengths have one Gamma for inner, one for outer branches, and are divided out."""
    target = proposal.target
    children, _ = trees_of(target.n_taxa)
    n, m = target.n_taxa, len(children)
    plain = with_tables(proposal, place_value=proposal.laws[0].clades.place_value * [0.0, 0.0, 1.0, 0.0])
    lengths = np.full((m, 2 * n - 2), 0.1)
    found = log_density(plain, children, lengths, np.full(m, 2 * n - 3))
    shape, rate = proposal.laws[0].clades.numbers[[0, 3]], proposal.laws[0].clades.numbers[[1, 4]]
    each = shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(0.1) - rate * 0.1
    return found - (n - 3) * each[0] - n * each[1]


@pytest.mark.parametrize("case", list(CASES))
def test_numbers_of_trees(case):
    constraint = constrained(6, *CASES[case])
    assert constraint.n_trees == obeying(constraint).sum()
    assert target_with(case).log_topology_prior == pytest.approx(-np.log(obeying(constraint).sum()))


@pytest.mark.parametrize("case", list(CASES))
def test_densities_are_about_the_trees_that_obey(case):
    """Nothing learned is the uniform distribution over the trees with the required splits; a fit sums to one over these."""
    target = target_with(case)
    allowed = obeying(constrained(6, CASES[case][0], (), CASES[case][2]))
    uniform = log_topology(prior_proposal(target))
    assert np.array_equal(np.isfinite(uniform), allowed)
    assert uniform[allowed] == pytest.approx(-np.log(allowed.sum()), abs=1e-9)
    learned = log_topology(fitted(target))
    assert np.array_equal(np.isfinite(learned), allowed)
    assert np.exp(learned).sum() == pytest.approx(1.0, abs=1e-9)
    assert np.exp(learned)[allowed].max() > 1.3 / allowed.sum()


@pytest.mark.parametrize("case", ["nested", "triple", "some taxa", "some taxa, nested"])
@pytest.mark.parametrize("learn", [False, True])
def test_draws_have_that_density(case, learn):
    target = target_with(case)
    proposal = fitted(target) if learn else prior_proposal(target)
    n = 20_000
    children, _, tops, _ = proposal.sample(n, [1])
    seen = np.bincount(which_trees(target, children, tops), minlength=105)
    expected = n * np.exp(log_topology(proposal))
    assert seen[expected == 0].sum() == 0
    common = expected > 5
    assert chisquare(seen[common], expected[common] * seen[common].sum() / expected[common].sum()).pvalue > 1e-4


def log_pi(proposal, particles, beta):
    target = proposal.target
    prior = target.log_length_prior(particles.lengths, particles.tops) + target.log_parameter_prior(particles.z)
    return (1 - beta) * particles.log_laws[:, 0] + beta * (particles.log_likelihood + prior + target.log_topology_prior)


def statistics(particles, target):
    rows = np.arange(len(particles))
    shape = np.eye(105)[which_trees(target, particles.children, particles.tops)]
    shape = shape[:, obeying(target.constraint)]
    lengths = particles.lengths
    outer = np.column_stack([lengths[rows, particles.tops], lengths[:, 1:6]])
    total = lengths[:, 1:].sum(axis=1)
    inner = total - outer.sum(axis=1)
    logs = np.log(np.column_stack([outer, inner, total]))
    return np.column_stack(
        [shape, outer, inner, total, logs, shape * inner[:, None], particles.log_likelihood, particles.log_laws[:, 0]]
    )


@pytest.mark.parametrize(
    ("case", "beta"),
    [(case, beta) for case in ("nested", "triple", "some taxa, nested", "neither", "both") for beta in (0.0, 0.3, 1.0)]
    + [(case, 0.3) for case in ("pair", "with taxon 0", "two", "some taxa", "not")],
)
def test_moves_leave_the_target_invariant(case, beta):
    """As in test_invariance: draws are weighed by pi_beta, and moving them changes no weighted mean."""
    target = target_with(case, n_sites=1 if beta == 1.0 else 2)
    proposal = fitted(target)
    source = proposal if beta < 1.0 else prior_proposal(target)
    n = 5_000
    draws = source.sample(n, [4])
    before = evaluated(proposal, *draws)
    allowed = ~proposal.is_forbidden(before.children, before.tops)
    log_weights = log_pi(proposal, before, beta) - log_density(source, *draws[:3])
    before = before.take(np.flatnonzero(allowed))
    weights = np.exp(log_weights[allowed] - log_weights[allowed].max())
    weights /= weights.mean()
    assert 1 / np.mean(weights**2) > 0.1, "too few of the draws count for a test"
    after = moved(proposal, before, beta, MOVES, 6, times=2)
    old, new = (which_trees(target, p.children, p.tops) for p in (before, after))
    assert obeying(target.constraint)[new].all()
    assert (old != new).mean() > 0.05
    assert np.isfinite(after.log_laws[:, 0]).all()
    again = evaluated(proposal, after.children, after.lengths, after.tops, after.z)
    assert after.log_laws[:, 0] == pytest.approx(again.log_laws[:, 0], abs=1e-9)
    change = weights[:, None] * (statistics(after, target) - statistics(before, target))
    change = change[:, (change != 0).sum(axis=0) > 100]
    error = change.std(axis=0) / np.sqrt(len(change))
    assert np.abs(change.mean(axis=0) / error).max() < 4.5


@cache
def tree_evidences(n_taxa, n_sites):
    return np.array([tree_evidence(edges, CODES[:n_taxa, :n_sites]) for edges in unrooted_topologies(n_taxa)])


def near_the_prior(target):
    """A proposal fitted to draws from the prior, unequally weighted."""
    rng = np.random.default_rng(5)
    start_from = prior_proposal(target)
    draws = start_from.sample(300, [8])
    weights = rng.dirichlet(np.ones(300)) * ~start_from.is_forbidden(draws[0], draws[2])
    return fit(target, *draws, weights / weights.sum(), one_law(floor=0.2, widening=0.7))


@pytest.mark.parametrize("case", ["nested", "triple", "some taxa", "neither", "both"])
def test_evidence_is_unbiased(case):
    """Six taxa, two sites: the mean of small bridges' estimates against all trees that obey, their lengths integrated."""
    target = target_with(case, n_sites=2)
    exact = tree_evidences(6, 2)[obeying(target.constraint)].mean()
    ladder = Ladder((0.3, 1.0), (None,) * 2)
    for source, oversampling in ((near_the_prior(target), 5), (prior_proposal(target), 1)):
        ratios = []
        for k in range(80):
            state = bridge.initialise(source, 20, (7, k), oversampling, ladder)
            while not state.done:
                state = bridge.step(state, source, Moves())
            ratios.append(np.exp(state.estimate) / exact)
        error = np.std(ratios) / np.sqrt(len(ratios))
        assert error < 0.08, "the test would not notice a bias"
        assert abs(np.mean(ratios) - 1) < 4 * error


@pytest.mark.parametrize("case", list(CASES))
@pytest.mark.parametrize("kind", ["prior", "bootstrap"])
def test_starts_obey(case, kind):
    target = target_with(case)
    proposal = start(target, kind, np.random.default_rng(1))
    children, _, tops, _ = proposal.sample(300, [2])
    allowed = obeying(constrained(6, CASES[case][0], (), CASES[case][2]))
    assert allowed[which_trees(target, children, tops)].all()
    if kind == "bootstrap":
        assert np.exp(log_topology(proposal)).max() > 0.1
