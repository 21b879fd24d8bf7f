"""Priors of branch lengths: MrBayes's definitions, densities that integrate to one, draws that follow them."""

from math import lgamma, log

import numpy as np
import pytest
from scipy.stats import expon, gamma, kstest

from vaiphy.errors import InputError
from vaiphy.models.priors import LengthPrior, length_prior

PRIORS = ["exp(10)", "gammadir(1,0.1,1,1)", "gammadir(2,3,0.7,0.4)", "gammadir(1.5,2,2,3)"]


def test_exponential():
    lengths = np.random.default_rng(1).exponential(0.1, size=(3, 8))
    ours = length_prior("exp(7)").log_density(lengths, 5)
    assert ours == pytest.approx(expon.logpdf(lengths[:, 1:], scale=1 / 7).sum(axis=1))


def test_mrbayes_default_has_its_closed_form():
    n = 6
    lengths = np.random.default_rng(1).exponential(0.1, size=(4, 2 * n - 2))
    branches, total = 2 * n - 3, lengths[:, 1:].sum(axis=1)
    expected = lgamma(branches) + (1 - branches) * np.log(total) + log(0.1) - 0.1 * total
    assert length_prior("gammadir(1,0.1,1,1)").log_density(lengths, n) == pytest.approx(expected)


@pytest.mark.parametrize("text", PRIORS)
def test_density_integrates_to_one(text):
    """Three taxa: three outer branches. In logs of the lengths, so that poles at zero do no harm."""
    prior = length_prior(text)

    scale = log(prior.draw(3, 2000, np.random.default_rng(1))[:, 1:].mean())
    nodes, weights = np.polynomial.legendre.leggauss(90)
    grid = scale + (nodes - 0.72) / 1.72 * 16 if prior.kind == "exp" else scale + nodes * 16 - 11
    jacobian = 16 / 1.72 if prior.kind == "exp" else 16
    points = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
    values = prior.log_density(np.concatenate((np.zeros((len(points), 1)), np.exp(points)), axis=1), 3) + points.sum(axis=1)
    mass = (jacobian * weights[:, None, None]) * (jacobian * weights[:, None]) * (jacobian * weights)
    assert float(np.exp(values) @ mass.ravel()) == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize("text", PRIORS)
@pytest.mark.parametrize("n_taxa", [3, 5])
def test_terms_are_the_density(text, n_taxa):
    prior = length_prior(text)
    lengths = prior.draw(n_taxa, 6, np.random.default_rng(2)) + 1e-12
    constant, outer, inner, rate, power = prior.terms(n_taxa)
    branches = lengths[:, 1:]
    alpha = [outer] * (n_taxa - 1) + [inner] * (n_taxa - 3) + [outer]
    total = branches.sum(axis=1)
    by_hand = constant + np.log(branches) @ (np.array(alpha) - 1) - rate * total + power * np.log(total)
    assert prior.log_density(lengths, n_taxa) == pytest.approx(by_hand)


def test_draws_follow_the_definition():
    rng = np.random.default_rng(3)
    assert kstest(length_prior("exp(10)").draw(5, 4000, rng)[:, 3], expon(scale=0.1).cdf).pvalue > 0.001
    lengths = length_prior("gammadir(2,3,0.7,0.4)").draw(5, 4000, rng)
    assert not lengths[:, 0].any()
    total = lengths.sum(axis=1)
    assert kstest(total, gamma(2, scale=1 / 3).cdf).pvalue > 0.001
    shares = (lengths[:, 1:] / total[:, None]).mean(axis=0)
    outer, inner = 0.7, 0.28
    expected = np.array([outer, outer, outer, outer, inner, inner, outer]) / (5 * outer + 2 * inner)
    assert shares == pytest.approx(expected, abs=0.01)


def test_importance_between_priors_is_unbiased():
    """Draws from one prior weighed by the ratio of densities average one: both are normalised over the same lengths."""
    rng = np.random.default_rng(4)
    source, target = length_prior("gammadir(4,20,1,1)"), length_prior("exp(35)")
    lengths = source.draw(4, 40000, rng)
    ratio = np.exp(target.log_density(lengths, 4) - source.log_density(lengths, 4))
    assert ratio.mean() == pytest.approx(1, abs=4 * ratio.std() / 200)


@pytest.mark.parametrize("text", PRIORS)
def test_text_and_back(text):
    assert str(length_prior(text)) == text
    assert length_prior(f" Unconstrained:{text.upper()}") == length_prior(text)
    assert text in length_prior(text).words() or "Exponential(10)" in length_prior(text).words()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("exp", r"write exp\(RATE\) or gammadir"),
        ("exp(0)", "must be from 0.02 to 1,000,000, not 0"),
        ("exp(nan)", "must be from 0.02 to"),
        ("exp(1e7)", "must be from 0.02 to"),
        ("exp(1,2)", "2 numbers, exp takes 1"),
        ("exp(ten)", "not a list of numbers"),
        ("gammadir(1,1)", "2 numbers, gammadir takes 4"),
        ("uniform(0,1)", "'uniform' is unknown; known are"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text, message):
    with pytest.raises(InputError, match=message) as caught:
        length_prior(text)
    assert "\n" not in str(caught.value)


def test_the_default_is_exp_ten():
    assert LengthPrior() == length_prior("exp(10)")
