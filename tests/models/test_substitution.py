"""Substitution models: arrays rebuild the matrix exponential, priors integrate to one, extremes stay finite."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.linalg import expm
from scipy.stats import beta, expon, kstest, t, uniform

from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA
from vaiphy.errors import InputError
from vaiphy.models.arrays import EqualInput, Spectral
from vaiphy.models.substitution import model_of

MODELS = [
    ("JC", DNA), ("F81+G4", DNA), ("K80+I", DNA), ("HKY+G4", DNA), ("TN+I+G4", DNA), ("K81", DNA), ("TIM3", DNA), ("TVMe", DNA),
    ("SYM+G2", RNA), ("GTR+I+G4", DNA), ("001122+G4", DNA), ("GTR{1,2,3,4,5}+F{0.1,0.2,0.3,0.4}+I{0.3}+G4{0.4}", DNA),
    ("LG+G4", AA), ("WAG+I", AA), ("JTT+FO", AA), ("Dayhoff", AA), ("VT", AA), ("mtREV", AA), ("cpREV", AA), ("Blosum62", AA),
    ("Poisson+FO+I+G4", AA), ("MK", MORPH(2)), ("MK+G4+ASC", MORPH(5)), ("ORDERED", MORPH(5)), ("ORDERED", MORPH(2)),
    ("JC2", BIN), ("GTR2+G4", BIN),
]  # fmt: skip
each_model = pytest.mark.parametrize(("text", "alphabet"), MODELS, ids=[text.split("{")[0] for text, _ in MODELS])


def generator(model, z):
    """Q from its definition: exchangeabilities times frequencies, one substitution per unit length."""
    pi, r = model.frequencies(z[None])[0], model.exchangeabilities(z[None])[0]
    q = r * pi
    np.fill_diagonal(q, -q.sum(axis=1))
    return q / -(pi @ np.diag(q))


def rebuilt(arrays, point, category, length):
    """P(b) as a kernel would make it."""
    along = arrays.rates[point, category] * length
    if isinstance(arrays, EqualInput):
        u = np.exp(-arrays.beta[point] * along)
        return u * np.eye(arrays.pi.shape[1]) + (1 - u) * arrays.pi[point]
    return arrays.backward[point] @ np.diag(np.exp(-arrays.decay[point] * along)) @ arrays.forward[point]


@each_model
def test_arrays_are_the_matrix_exponential(text, alphabet):
    model = model_of(text, alphabet)
    z = model.draw_prior(4, np.random.default_rng(1))
    arrays = model.arrays(z)
    assert isinstance(arrays, EqualInput if model.family == "equal_input" else Spectral)
    for point in range(4):
        q = generator(model, z[point])
        for category, length in ((0, 0.0), (0, 0.3), (model.n_categories - 1, 2.0)):
            p = rebuilt(arrays, point, category, length)
            assert p == pytest.approx(expm(q * arrays.rates[point, category] * length), abs=1e-9)
            assert p.sum(axis=1) == pytest.approx(1)
            flow = arrays.pi[point][:, None] * p
            assert flow == pytest.approx(flow.T, abs=1e-12)
            assert model.transition(z[point], length)[category] == pytest.approx(p, abs=1e-9)


@each_model
def test_rates_average_one_with_invariable_sites(text, alphabet):
    model = model_of(text, alphabet)
    arrays = model.arrays(model.draw_prior(50, np.random.default_rng(2)))
    assert arrays.rates.shape == arrays.weights.shape == (50, model.n_categories)
    assert arrays.weights.sum(axis=1) == pytest.approx(1 - arrays.p_inv)
    assert (arrays.weights * arrays.rates).sum(axis=1) == pytest.approx(1)
    assert arrays.pi.sum(axis=1) == pytest.approx(1)
    if isinstance(arrays, Spectral):
        assert not arrays.decay[:, 0].any()
        assert (arrays.decay >= 0).all()


@each_model
def test_parameters_there_and_back(text, alphabet):
    model = model_of(text, alphabet)
    z = model.draw_prior(20, np.random.default_rng(3))
    assert z.shape == (20, model.n_parameters)
    values = model.constrained(z)
    assert list(values) == [block.name for block in model.blocks]
    assert not values or model.unconstrained(values) == pytest.approx(z)
    assert not values or model.from_columns(model.columns(z)) == pytest.approx(z)
    assert model.start().shape == (model.n_parameters,)
    assert np.isfinite(model.log_prior(z)).all()
    for column in model.columns(z).values():
        assert column.shape == (20,)


@each_model
def test_extreme_parameters_stay_finite(text, alphabet):
    model = model_of(text, alphabet)
    d = model.n_parameters
    rng = np.random.default_rng(4)
    z = np.concatenate([[np.full(d, s), *(s * np.eye(d)), *(s * rng.choice([-1, 1], (5, d)))] for s in (-600, -40, 40, 600, 1e4)])
    for part in model.arrays(z):
        assert np.isfinite(part).all()
    assert not np.isnan(model.log_prior(z)).any()
    for column in model.columns(z).values():
        assert np.isfinite(column).all()
    for point in z:
        p = model.transition(point, 0.1)
        assert np.isfinite(p).all()
        assert p.sum(axis=2) == pytest.approx(1, abs=1e-4)


def test_exchangeable_only_where_all_states_are_alike():
    alike = {(text, alphabet.name) for text, alphabet in MODELS if model_of(text, alphabet).exchangeable}
    assert alike == {("JC", "DNA"), ("MK", "MORPH"), ("MK+G4+ASC", "MORPH"), ("JC2", "BIN"), ("ORDERED", "MORPH")}
    assert not model_of("ORDERED", MORPH(3)).exchangeable
    assert model_of("Poisson", AA).exchangeable
    assert model_of("ORDERED", MORPH(2)).family == "equal_input"


@pytest.mark.parametrize("text", ["JC+G4", "JC+I", "K80", "JC+I+G4", "K80+G4", "TNe"])
def test_prior_integrates_to_one(text):
    model = model_of(text, DNA)

    def density(*z):
        return float(np.exp(model.log_prior(np.array([z]))[0]))

    if model.n_parameters == 1:
        mass = quad(density, -60, 60, limit=200, points=[0])[0]
    else:
        mass = dblquad(density, -30, 30, -30, 30, epsabs=1e-6)[0]
    assert mass == pytest.approx(1, abs=1e-4)


def test_gtr_prior_is_a_flat_dirichlet_in_z():
    """Nine or more dimensions: weigh draws of a wide normal distribution instead of a quadrature."""
    for text in ("SYM", "F81", "GTR+I+G4"):
        model = model_of(text, DNA)
        rng = np.random.default_rng(5)
        z = 2.0 * rng.standard_t(8, size=(400_000, model.n_parameters))
        log_ratio = model.log_prior(z) - t(8, scale=2.0).logpdf(z).sum(axis=1)
        ratio = np.exp(log_ratio)
        assert ratio.mean() == pytest.approx(1, abs=5 * ratio.std() / np.sqrt(len(ratio)))
        assert ratio.std() / np.sqrt(len(ratio)) < 0.1


def test_draws_have_mrbayes_priors():
    model = model_of("HKY+I+G4", DNA)
    columns = model.columns(model.draw_prior(4000, np.random.default_rng(6)))
    kappa = columns["kappa"]
    assert kstest(kappa / (1 + kappa), uniform.cdf).pvalue > 0.001
    assert kstest(columns["pi(C)"], beta(1, 3).cdf).pvalue > 0.001
    assert kstest(columns["alpha"], expon.cdf).pvalue > 0.001
    assert kstest(columns["pinvar"], uniform.cdf).pvalue > 0.001
    columns = (gtr := model_of("GTR", DNA)).columns(gtr.draw_prior(4000, np.random.default_rng(7)))
    assert kstest(columns["r(C<->T)"], beta(1, 5).cdf).pvalue > 0.001
    assert sum(columns[name] for name in columns if name.startswith("r(")) == pytest.approx(1)


def test_log_prior_is_the_density_of_draws():
    """In one dimension: the share of draws in an interval is the integral of the density over it."""
    for text in ("JC+G4", "JC+I", "K80"):
        model = model_of(text, DNA)
        z = model.draw_prior(40_000, np.random.default_rng(8))
        inside = np.abs(z[:, 0]) < 1
        grid = np.linspace(-1, 1, 2001)
        expected = np.trapezoid(np.exp(model.log_prior(grid[:, None])), grid)
        assert inside.mean() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / len(z)))


def test_columns_have_mrbayes_names():
    assert list(model_of("GTR+I+G4", DNA).columns(np.zeros((1, 10)))) == [
        *(f"r({a}<->{b})" for a, b in ("AC", "AG", "AT", "CG", "CT", "GT")),
        *(f"pi({base})" for base in "ACGT"),
        "alpha",
        "pinvar",
    ]
    assert next(iter(model_of("LG+FO", AA).columns(np.zeros((1, 19))))) == "pi(Ala)"
    assert list(model_of("GTR2", BIN).columns(np.zeros((1, 1)))) == ["pi(0)", "pi(1)"]


def test_counted_frequencies():
    codes = np.stack([DNA.encode("AACCG"), DNA.encode("AACC-")])
    model = model_of("HKY+F", DNA, codes, np.array([1.0, 1, 1, 1, 4]))
    pi = model.arrays(np.zeros((1, 1))).pi[0]
    assert pi[:3] == pytest.approx(np.array([1, 1, 1]) / 3, abs=1e-7)
    assert pi[3] == pytest.approx(1e-8, rel=1e-3)
    assert "counted in the data, A 0.3333" in " ".join(model.words())
    free = model_of("HKY", DNA, codes)
    assert free.constrained(free.start()[None])["frequencies"][0, 0] > 0.4
    with pytest.raises(InputError, match=r"model 'HKY\+F': \+F counts frequencies in the data"):
        model_of("HKY+F", DNA)


def test_words_say_every_prior():
    said = " ".join(model_of("GTR+I+G4", DNA).words())
    for part in ("GTR+I+G4", "Dirichlet(1,1,1,1,1,1)", "Dirichlet(1,1,1,1)", "Exponential(1)", "Uniform(0,1)", "4 categories"):
        assert part in said
    assert "given that no character is constant" in " ".join(model_of("MK+ASC", MORPH(3)).words())
    assert "fixed at 0.5" in " ".join(model_of("LG+G4{0.5}", AA).words())
