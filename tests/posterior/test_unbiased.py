"""The mean of many small bridges' estimates is the evidence, known exactly by other means."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from reference.bridges import joint_evidence, one_law, quartet_evidence
from reference.exact import log_evidence, unrooted_topologies
from reference.topologies import all_children, names
from scipy.stats import qmc

from vaiphy.alignment import SitePatterns
from vaiphy.models.alphabets import DNA
from vaiphy.models.arrays import EqualInput
from vaiphy.models.priors import length_prior
from vaiphy.models.rates import category_means
from vaiphy.models.substitution import model_of
from vaiphy.posterior import bridge, states
from vaiphy.posterior.ladder import Ladder
from vaiphy.posterior.parameters import walk_of
from vaiphy.posterior.particles import Moves
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.posterior.results import result
from vaiphy.posterior.settings import Settings
from vaiphy.target import Part, Target, target_of

CODES = np.array([[1, 1, 2, 8], [1, 2, 2, 1], [4, 2, 1, 1], [4, 1, 15, 1], [1, 2, 8, 5]], dtype=np.uint8)


def finished(proposal, n, seed, moves, ladder=None, conditional_size=0.5, oversampling=1):
    state = bridge.initialise(proposal, n, seed, oversampling, ladder)
    while not state.done:
        state = bridge.step(state, proposal, moves, conditional_size)
    return state


def learned(target, moves, seed=1, oversampling=1):
    """A proposal fitted to a first bridge, and a frozen ladder of few temperatures between it and the posterior."""
    first = finished(prior_proposal(target), 400, (seed, 1), moves, conditional_size=0.8)
    p, log_weights = first.particles, first.log_weights
    weights = np.exp(log_weights - log_weights.max())
    proposal = fit(
        target,
        p.children,
        p.lengths,
        p.tops,
        p.z,
        weights / weights.sum(),
        one_law(floor=0.05, widening=0.7),
    )
    return proposal, finished(proposal, 200 // oversampling, (seed, 2), moves, oversampling=oversampling).found


def relative_estimates(proposal, ladder, exact, moves, n_bridges, n_particles, seed=3, oversampling=1):
    """Estimates of the evidence by many bridges, divided by what it is."""
    states = [finished(proposal, n_particles, (seed, 9, k), moves, ladder, oversampling=oversampling) for k in range(n_bridges)]
    assert len({stage.beta for state in states for stage in state.stages}) == len(ladder.betas)
    return np.exp([state.estimate - exact for state in states])


def assert_unbiased(ratios, most_error, oracle_error=0.0):
    error = np.hypot(ratios.std(ddof=1) / np.sqrt(len(ratios)), oracle_error)
    assert error < most_error, "the test would not notice a bias"
    assert abs(ratios.mean() - 1) < 4 * error


def test_a_mixture_of_laws():
    """Two laws, neither of which has the posterior alone; guarded draws, more of them than particles."""
    codes = CODES[:4]
    target = target_of(SitePatterns(names(4), codes, np.ones(4), np.arange(4)), "JC")
    exact = log_evidence(unrooted_topologies(4), codes)
    rng, trees, laws = np.random.default_rng(5), all_children(4).astype(np.int64), []
    for few, mean in (([0, 0, 1], 0.08), ([2, 2, 1], 0.2)):
        lengths, fitting = rng.gamma(1.0, mean, size=(60, 6)), one_law(floor=0.4, widening=0.7)
        drawn = trees[rng.choice(few, size=60)], lengths, np.full(60, 5), np.zeros((60, 0))
        some = fit(target, *drawn, np.full(60, 1 / 60), fitting)
        laws.append(some.laws[0])
    proposal = replace(some, laws=tuple(laws), log_shares=np.log([0.6, 0.4]), guard=0.5)
    drawn = proposal.guarded_sample(1000, [1])
    assert np.bincount(drawn.laws).tolist() == [600, 400]
    for ladder in (Ladder((0.3, 1.0), (None,) * 2), Ladder((1.0,), (None,))):
        assert_unbiased(relative_estimates(proposal, ladder, exact, Moves(), 800, 24, oversampling=3), 0.02)


@pytest.mark.parametrize("n_taxa", [4, 5])
def test_jc69(n_taxa):
    codes = CODES[:n_taxa]
    target = target_of(SitePatterns(names(n_taxa), codes, np.ones(4), np.arange(4)), "JC")
    exact = log_evidence(unrooted_topologies(n_taxa), codes)
    moves = Moves()
    proposal, ladder = learned(target, moves)
    assert_unbiased(relative_estimates(proposal, ladder, exact, moves, 400, 12), 0.02)
    # From the prior, with a ladder that is far too short for it.
    short = Ladder((0.1, 0.4, 1.0), (None,) * 3)
    assert_unbiased(relative_estimates(prior_proposal(target), short, exact, moves, 400, 12), 0.04)


@pytest.mark.parametrize(("n_taxa", "model"), [(4, "JC"), (5, "JC"), (4, "K80")])
def test_many_draws_for_each_particle(n_taxa, model):
    """The first temperature carries 25 draws a particle, and chooses the particles from them."""
    codes = CODES[:n_taxa, :3]
    target = target_of(SitePatterns(names(n_taxa), codes, np.ones(3), np.arange(3)), model)
    if model == "JC":
        exact = log_evidence(unrooted_topologies(n_taxa), codes)
    else:
        exact = np.log(integrated(target.parts[0].tips, model)[0])
    moves = Moves(walks=2)
    proposal, ladder = learned(target, moves, oversampling=25)
    one = finished(proposal, 6, (5,), moves, ladder, oversampling=25)
    assert (one.size, len(one.first), len(one.particles), one.stages[0].resampled) == (6, 150, 6, True)
    walk = ladder.walks[-1]
    # To the posterior at once, or nearly; few lengths drawn widely, or most.
    for guard, betas in ((proposal.guard, (1.0,)), (proposal.guard, (0.6, 1.0)), (3.0, (0.9, 1.0))):
        guarded, fixed = replace(proposal, guard=guard), Ladder(betas, (walk,) * len(betas))
        assert_unbiased(relative_estimates(guarded, fixed, exact, moves, 250, 6, oversampling=25), 0.03)
    # From the prior, by hardly any temperatures and particles.
    walk = walk_of(bridge.initialise(prior_proposal(target), 99, (1,)).particles, np.full(99, 1 / 99))
    short = Ladder((0.5, 1.0), (walk, walk))
    assert_unbiased(relative_estimates(prior_proposal(target), short, exact, moves, 250, 3, oversampling=25), 0.04)


@dataclass(frozen=True)
class ThreeStates:
    """An equal-input model of unequal frequencies that no other room has heard of."""

    pi: tuple[float, ...] = (0.6, 0.3, 0.1)
    name: ClassVar[str] = "three states"
    family: ClassVar[str] = "equal_input"
    n_states: ClassVar[int] = 3
    n_categories: ClassVar[int] = 2
    n_parameters: ClassVar[int] = 0
    ascertained: ClassVar[bool] = False
    invariable: ClassVar[bool] = True
    exchangeable: ClassVar[bool] = False
    blocks: ClassVar[tuple[()]] = ()

    def arrays(self, z):
        n, pi = len(z), np.array(self.pi)
        same = np.repeat([[0.5, 2.0]], n, axis=0)
        beta = np.full(n, 1 / (1 - pi @ pi))
        return EqualInput(np.repeat([pi], n, axis=0), beta, same, np.full((n, 2), 0.4), np.full(n, 0.2))

    def log_prior(self, z):
        return np.zeros(len(z))

    def draw_prior(self, n, rng):
        return np.zeros((n, 0))

    def start(self):
        return np.zeros(0)

    def columns(self, z):
        return {}

    def words(self):
        return ["Three states."]


@pytest.fixture(scope="module")
def three_states():
    """A target under that model, some states known and some not, and its log evidence by numerical integration."""
    rng = np.random.default_rng(2)
    tips = np.eye(3)[rng.integers(3, size=(5, 3))].swapaxes(1, 2)
    tips[1, :, 2], tips[3, :, 1] = 1.0, [0.9, 0.05, 0.05]
    model = ThreeStates()
    target = Target(names(5), (Part("all", tips, np.ones(3), model),), length_prior("exp(5)"))
    pi = np.array(model.pi)
    generator = (np.repeat([pi], 3, axis=0) - np.eye(3)) / (1 - pi @ pi)
    trees = all_children(5)
    exact = np.log(joint_evidence(trees, tips, generator, pi, [0.0, 0.5, 2.0], [0.2, 0.4, 0.4], 5.0).mean())
    return target, float(exact)


def test_a_model_that_no_other_room_knows(three_states):
    target, exact = three_states
    moves = Moves()
    proposal, ladder = learned(target, moves)
    assert_unbiased(relative_estimates(proposal, ladder, exact, moves, 400, 12), 0.02)


def test_the_whole_sampler_with_that_model(three_states):
    target, exact = three_states
    state = states.initialise(target, Settings(accuracy=0.01), seed=4)
    while not state.done:
        state = states.step(state)
    found = result(state)
    assert found.converged, found.reasons
    assert found.std_error < 0.02, "the test would not notice a wrong value"
    assert abs(found.log_evidence - exact) < 4 * found.std_error


def flat_simplex(u):
    """Uniform numbers (K, k - 1) as points of a flat Dirichlet of k, by breaking a stick."""
    left, columns = np.ones(len(u)), []
    for j in range(u.shape[1]):
        share = 1 - (1 - u[:, j]) ** (1 / (u.shape[1] - j))
        columns.append(left * share)
        left = left * (1 - share)
    return np.column_stack([*columns, left])


#: Which of six rates (AC AG AT CG CT GT) are the same, and what else is free.
HKY = (0, 1, 0, 0, 1, 0)
MODELS = {"K80": (HKY, False, False, False), "HKY+G": (HKY, True, True, False), "GTR+I+G": (range(6), True, True, True)}


def at_points(u, tips, name):
    """p(X | parameters) at points of the unit cube that stand for the prior."""
    classes, frequencies, gamma, invariable = MODELS[name]
    classes = np.array(classes)
    n_rates = classes.max() + 1
    r, u = flat_simplex(u[:, : n_rates - 1])[:, classes], u[:, n_rates - 1 :]
    exchange = np.zeros((len(r), 4, 4))
    exchange[:, *np.triu_indices(4, 1)] = r
    exchange = exchange + exchange.swapaxes(1, 2)
    pi = np.full((len(r), 4), 0.25)
    if frequencies:
        pi, u = flat_simplex(u[:, :3]), u[:, 3:]
    rates = category_means(-np.log1p(-u[:, 0]), 4) if gamma else np.ones((len(r), 1))
    weights = np.full(rates.shape, 1 / rates.shape[1])
    if invariable:
        p = u[:, 1:2]
        rates = np.column_stack([np.zeros(len(p)), rates / (1 - p)])
        weights = np.column_stack([p, weights * (1 - p)])
    return quartet_evidence(tips, exchange, pi, rates, weights)


def integrated(tips, name, n_scrambles=4, n_points=1024):
    """The evidence and its standard error: lengths exactly, parameters by scrambled Sobol points (one parameter: Gauss)."""
    classes, frequencies, gamma, invariable = MODELS[name]
    d = max(classes) + 3 * frequencies + gamma + invariable
    if d == 1:
        nodes, weights = np.polynomial.legendre.leggauss(64)
        return float(weights / 2 @ at_points((nodes[:, None] + 1) / 2, tips, name)), 0.0
    means = []
    for k in range(n_scrambles):
        u = qmc.Sobol(d, rng=np.random.default_rng(k)).random(n_points)
        means.append(at_points(np.clip(u, 1e-9, 1 - 1e-9), tips, name).mean())
    return float(np.mean(means)), float(np.std(means, ddof=1) / np.sqrt(n_scrambles))


@pytest.mark.parametrize("name", list(MODELS))
def test_parameters_are_integrated_too(name):
    codes = np.array([[1, 1, 2], [1, 4, 2], [1, 1, 2], [1, 4, 15]], dtype=np.uint8)
    target = target_of(SitePatterns(names(4), codes, np.ones(3), np.arange(3)), name)
    assert target.n_parameters == {"K80": 1, "HKY+G": 5, "GTR+I+G": 10}[name]
    exact, error = integrated(target.parts[0].tips, name)
    moves = Moves(walks=4)
    proposal, ladder = learned(target, moves)
    ratios = relative_estimates(proposal, ladder, np.log(exact), moves, 200, 48)
    assert_unbiased(ratios, 0.03, error / exact)


def test_the_oracle_itself():
    """Diagonalised or not, the integral over lengths is the same."""
    rng = np.random.default_rng(1)
    tips = DNA.indicators(CODES[:4, :3])
    model = model_of("GTR+I+G2", DNA)
    z = 0.5 * model.draw_prior(1, rng)
    arrays, r, pi = model.arrays(z), model.exchangeabilities(z), model.frequencies(z)
    q = r[0] * pi[0] - np.diag(r[0] @ pi[0])
    q /= -(pi[0] @ np.diag(q))
    rates, weights = np.append(0.0, arrays.rates[0]), np.append(arrays.p_inv[0], arrays.weights[0])
    slow = joint_evidence(all_children(4), tips, q, pi[0], rates, weights).mean()
    assert quartet_evidence(tips, r, pi, rates[None], weights[None])[0] == pytest.approx(slow, rel=1e-10)
    jc = joint_evidence(all_children(5), DNA.indicators(CODES[:, :3]), (0.25 - np.eye(4)) * 4 / 3, np.full(4, 0.25), [1.0], [1.0])
    assert np.log(jc.mean()) == pytest.approx(log_evidence(unrooted_topologies(5), CODES[:, :3]), rel=1e-12)


@pytest.mark.parametrize(
    ("model", "prior"),
    [("JC", "exp(10)"), ("JC", "gammadir(1,0.1,1,1)"), ("JC", "gammadir(3,2,2,0.5)"), ("HKY+G", "gammadir(1,0.1,1,1)")],
)
def test_no_data_is_evidence_one(model, prior):
    """From a proposal that is fitted to something else, so that there is a way to go."""
    codes = np.full((5, 1), 15, dtype=np.uint8)
    target = target_of(
        SitePatterns(names(5), codes, np.ones(1), np.zeros(1, dtype=np.int64)), model, length_prior(prior), fold=False
    )
    rng = np.random.default_rng(4)
    n = 100
    trees = all_children(5).astype(np.int64)[rng.integers(6, size=n)]
    lengths = np.abs(target.length_prior.draw(5, n, rng)) * rng.uniform(0.5, 1.5, size=8)
    z = 0.7 * target.draw_parameters(n, rng)
    proposal = fit(
        target,
        trees,
        lengths,
        np.full(n, 7),
        z,
        rng.dirichlet(np.ones(n)),
        one_law(floor=0.2, widening=0.5),
    )
    moves = Moves()
    ladder = finished(proposal, 200, (1,), moves, conditional_size=0.7).found
    assert_unbiased(relative_estimates(proposal, ladder, 0.0, moves, 150, 32), 0.06)
