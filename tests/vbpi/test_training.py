"""Training: the evidence from weights is exact on five taxa, gradients are those of the bound, and a run goes on as it would."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from reference.exact import log_evidence, unrooted_topologies  # noqa: E402
from reference.topologies import names  # noqa: E402
from vbpi.conftest import CODES  # noqa: E402

from vaiphy.alignment import compress  # noqa: E402
from vaiphy.kernels.subsplits import add_gradient  # noqa: E402
from vaiphy.models.simulate import random_alignment, random_tree  # noqa: E402
from vaiphy.search.rearrange import topology_hashes  # noqa: E402
from vaiphy.vbpi import training  # noqa: E402
from vaiphy.vbpi.estimates import lower_bounds, sample  # noqa: E402
from vaiphy.vbpi.network import draw, replay  # noqa: E402
from vaiphy.vbpi.settings import Settings  # noqa: E402
from vaiphy.vbpi.support import fitted  # noqa: E402
from vaiphy.weights import log_mean_exp, normalised  # noqa: E402


def begun(network, support, patterns, **options):
    settings = Settings(iterations=400, **options)
    return settings, training.initialise(network, support, patterns, settings, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("flow", "base"), [("none", "lognormal"), ("planar", "lognormal"), ("realnvp", "lognormal"), ("none", "jc")]
)
def test_weights_estimate_the_evidence(network, support, patterns, flow, base):
    settings, state = begun(network, support, patterns, flow=flow, base=base)
    where = training.parts(network, settings)
    parameters = state.parameters.copy()
    rng = np.random.default_rng(8)
    for name, spread in (("trees", 0.5), ("flow", 0.02), ("shared", 0.02)):
        parameters[where[name]] += spread * rng.standard_normal(where[name].stop - where[name].start).astype(np.float32)
    drawn = sample(network, patterns, settings, parameters, 40_000, np.random.default_rng(2))
    ratio = np.exp(drawn.log_weights - log_evidence(unrooted_topologies(5), CODES))
    error = ratio.std() / np.sqrt(len(ratio))
    assert error < 0.03  # the test has power
    assert abs(ratio.mean() - 1.0) < 4.0 * error
    bounds = lower_bounds(drawn.log_weights)
    assert bounds["LB-1"] < bounds["LB-10"] < 0.02 + log_evidence(unrooted_topologies(5), CODES)


@pytest.mark.parametrize(("flow", "base"), [("none", "lognormal"), ("realnvp", "lognormal"), ("realnvp", "jc"), ("planar", "jc")])
def test_training_raises_the_bound(network, trees, flow, base):
    """From lengths that are too short by a third."""
    rng = np.random.default_rng(1)
    data = compress(random_alignment(random_tree(names(5), rng), 300, rng))
    support = fitted(data, trees, np.full((15, 8), 0.1), Settings())
    settings, state = begun(network, support, data, flow=flow, base=base, tree_rate=0.02, length_rate=0.004, first_power=1.0)
    state.parameters[training.parts(network, settings)["base"].start :: 2][: network.n_numbers] -= 0.4

    def tens(parameters):
        drawn = sample(network, data, settings, parameters, 5000, np.random.default_rng(2)).log_weights
        return np.array([log_mean_exp(row) for row in drawn.reshape(-1, 10)])

    before = tens(state.parameters)
    state, info = training.step(state, network, data, settings, 300, np.random.default_rng(3))
    after = tens(state.parameters)
    assert after.mean() > before.mean() + 4.0 * np.sqrt((before.var() + after.var()) / len(after))
    assert info.iteration == 300


def test_the_gradient_in_the_trees_is_that_of_the_bound(network, trees):
    """Lengths aside, over all pairs of the fifteen trees: the expected gradient is the slope of the expected bound."""
    rng = np.random.default_rng(5)
    logits, joint = rng.normal(size=network.n_entries), rng.normal(scale=2.0, size=15)
    drawn = draw(network, *network.probabilities(logits), 2000, rng)
    chosen = np.ascontiguousarray(drawn.chosen[np.unique(topology_hashes(drawn.children), return_index=True)[1]])
    pairs = [(i, j) for i in range(15) for j in range(15)]

    def log_q(at):
        return replay(network, network.probabilities(at)[1], chosen).log_q

    def bound(at):
        q = np.exp(log_q(at))
        return sum(q[i] * q[j] * log_mean_exp((joint - log_q(at))[[i, j]]) for i, j in pairs)

    gradient, probability = np.zeros(network.n_entries), network.probabilities(logits)[0]
    for pair in map(list, pairs):
        values = (joint - log_q(logits))[pair]
        share = np.exp(log_q(logits)[pair].sum())
        coefficient = share * (training.learning_signals(values) - normalised(values))
        add_gradient(network.start, network.row_of, probability, np.ascontiguousarray(chosen[pair]), coefficient, gradient)
    for e in range(network.n_entries):
        step = np.zeros_like(logits)
        step[e] = 1e-5
        assert gradient[e] == pytest.approx((bound(logits + step) - bound(logits - step)) / 2e-5, abs=1e-6)


def test_the_gradient_in_the_lengths_is_that_of_the_log_joint(network, support, patterns):
    """At fixed draws, against differences of the function itself."""
    settings, state = begun(network, support, patterns, flow="realnvp")
    where = training.parts(network, settings)
    trees = draw(network, *network.probabilities(state.parameters[where["trees"]]), 3, np.random.default_rng(1))
    base, flow, shared = (torch.from_numpy(state.parameters[where[name]].copy()) for name in ("base", "flow", "shared"))

    def value(at):
        return training.log_joint_ratio(
            network, patterns, settings, [at, flow, shared], trees, 0.7, np.random.default_rng(4)
        ).sum()

    (found,) = torch.autograd.grad(value(base.requires_grad_()), base)
    assert int((found != 0.0).sum()) > 20
    for i in torch.nonzero(found).ravel().tolist():
        step = torch.zeros_like(base)
        step[i] = 0.01
        with torch.no_grad():
            slope = float(value(base + step) - value(base - step)) / 0.02
        assert float(found[i]) == pytest.approx(slope, abs=0.02 + 0.01 * abs(slope))


def test_steps_in_pieces_are_the_same_steps(network, support, patterns):
    settings, state = begun(network, support, patterns)

    def gone_on(state, pieces):
        for size in pieces:
            state, _ = training.step(state, network, patterns, settings, size, np.random.default_rng([1, state.iteration]))
        return state

    kept = state.parameters.tobytes()
    one, two = gone_on(state, [5, 5]), gone_on(state, [5, 5])
    assert state.parameters.tobytes() == kept != one.parameters.tobytes()
    assert one.parameters.tobytes() == two.parameters.tobytes()


def test_learning_signals():
    """Mnih and Rezende's formula, written out."""
    values = np.array([-1.0, -2.5, 0.3])
    for k, signal in enumerate(training.learning_signals(values)):
        others = np.delete(values, k)
        replaced = np.append(others, others.mean())
        assert signal == pytest.approx(np.log(np.exp(values).mean()) - np.log(np.exp(replaced).mean()))


def test_the_schedule_is_the_papers_scaled():
    settings = Settings(iterations=400_000, first_power=0.001)
    assert settings.power(0) == pytest.approx(0.001)
    assert settings.power(50_000) == pytest.approx(0.5, abs=0.001)
    assert settings.power(100_000) == settings.power(399_999) == 1.0
    assert settings.rate(0.001, 19_999) == 0.001
    assert settings.rate(0.001, 20_000) == pytest.approx(0.00075)
