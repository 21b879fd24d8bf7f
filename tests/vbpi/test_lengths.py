"""Branch lengths: densities of bases and flows are exact, and derivatives are those of the functions."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

from vaiphy.branches import jc_sampler  # noqa: E402
from vaiphy.vbpi import bases, flows, training  # noqa: E402
from vaiphy.vbpi.network import draw  # noqa: E402
from vaiphy.vbpi.settings import Settings  # noqa: E402


@pytest.fixture
def topologies(network):
    return draw(network, *network.probabilities(np.zeros(network.n_entries)), 4, np.random.default_rng(1))


def parameters_of(network, settings, seed=5, spread=0.15):
    """A flow that does something: all parameters at random."""
    where = training.parts(network, settings)
    rng = np.random.default_rng(seed)
    found = spread * rng.standard_normal(where["shared"].stop).astype(np.float32)
    return [torch.from_numpy(found[where[name]]) for name in ("base", "flow", "shared")]


@pytest.mark.parametrize("flow", ["none", "planar", "realnvp"])
def test_the_density_is_that_of_the_transformed_base(network, topologies, flow):
    """log q(b) = log p(y) - log |det d log b / dy| - sum log b, the determinant by automatic differentiation."""
    settings = Settings(flow=flow)
    base, table, shared = parameters_of(network, settings)
    log_lengths, log_q = training.draw_lengths(network, settings, [base, table, shared], topologies, np.random.default_rng(3))
    drawn = bases.draw("lognormal", training._rows(base, network, topologies), np.random.default_rng(3))
    rows = training._rows(table, network, topologies) if settings.n_layers else table
    for t in range(len(log_lengths)):

        def lengths_of(y, t=t):
            here = rows[t : t + 1] if settings.n_layers else rows
            moved, _ = flows.apply(settings, here, shared, y[None], network.n_taxa)
            return (drawn.centre[t] + drawn.scale[t] * moved)[0]

        jacobian = torch.autograd.functional.jacobian(lengths_of, drawn.y[t])
        expected = drawn.log_density[t] - torch.linalg.slogdet(jacobian)[1] - log_lengths[t].sum()
        assert float(log_q[t]) == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize("flow", ["planar", "realnvp"])
def test_a_flow_begins_by_doing_nothing(network, topologies, flow):
    settings = Settings(flow=flow)
    table = torch.from_numpy(flows.start_table(settings, network.n_numbers, 7, np.random.default_rng(1)).ravel())
    shared = torch.zeros(flows.n_shared(settings))
    y = torch.randn(4, 7, generator=torch.Generator().manual_seed(1))
    moved, log_det = flows.apply(settings, training._rows(table, network, topologies), shared, y, 5)
    assert np.allclose(moved, y, atol=1e-4)
    assert np.allclose(log_det, 0.0, atol=1e-4)


@pytest.mark.parametrize("counts", [(0.4, 3.0), (30.0, 1900.0), (5.0, 2.0)])
def test_the_jc_base_is_the_jc_sampler(counts):
    columns = torch.log(torch.tensor(counts)).expand(1, 500, 2)
    drawn = bases.draw("jc", columns, np.random.default_rng(1))
    log_lengths = (drawn.centre + drawn.scale * drawn.y).double().numpy()[0]
    lengths = np.exp(log_lengths)
    density = jc_sampler.log_density(lengths, counts[1], counts[0])
    expected = (density + log_lengths).sum() + float(torch.log(drawn.scale).sum())
    assert float(drawn.log_density[0]) == pytest.approx(expected, rel=1e-3)
    others, _ = jc_sampler.sample(np.full(20_000, counts[1]), counts[0], np.random.default_rng(2))
    assert log_lengths.mean() == pytest.approx(np.log(others).mean(), abs=4.0 * log_lengths.std() / np.sqrt(500))


@pytest.mark.parametrize("counts", [(1.5, 4.0), (30.0, 400.0), (6.0, 3.0)])
def test_draws_of_the_jc_base_move_with_its_parameters(counts):
    """A draw as a function of the parameters, its place in the distribution held fixed, has the derivative that is returned."""
    from scipy.special import betainc, betaincinv

    a, b = (torch.tensor([value], dtype=torch.float64, requires_grad=True) for value in counts)
    share, log_mass = bases.TruncatedBeta.apply(a, b, np.random.default_rng(4))
    place = betainc(*counts, share.item()) / betainc(*counts, 0.75)
    found = [g.item() for g in torch.autograd.grad(share + 0.5 * log_mass, (a, b))]

    def value(x, y):
        mass = betainc(x, y, 0.75)
        return betaincinv(x, y, place * mass) + 0.5 * np.log(mass)

    step = 1e-4
    expected = [
        (value(counts[0] + step, counts[1]) - value(counts[0] - step, counts[1])) / (2 * step),
        (value(counts[0], counts[1] + step) - value(counts[0], counts[1] - step)) / (2 * step),
    ]
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-7)
