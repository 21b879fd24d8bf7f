"""Densities under several distributions at once are those under each alone."""

from dataclasses import replace

import numpy as np
import pytest
from reference.bridges import one_law, random_trees
from reference.shapes import interpret
from reference.topologies import names

from vaiphy.kernels import clades, mixtures
from vaiphy.models.alphabets import DNA
from vaiphy.models.priors import length_prior
from vaiphy.models.substitution import model_of
from vaiphy.posterior.mixing import densities, mixture_of
from vaiphy.posterior.proposal import clade_keys, fit, prior_proposal
from vaiphy.target import Part, Target


def laws_of(n, rng, floor):
    """Three laws that know partly the same trees, one of them nothing at all; and trees that some know and some do not."""
    target = Target(names(n), (Part("all", np.ones((n, 4, 1)), np.ones(1), model_of("JC", DNA)),), length_prior("exp(10)"))
    seen = random_trees(n, 60, rng)
    laws = list(prior_proposal(target).laws)
    for part in (slice(0, 40), slice(20, 60)):
        trees = [np.concatenate([column[part]] * 3) for column in seen]
        some = np.arange(len(trees[0])) % 40 < 25
        own = [column[some] for column in trees]
        weights = rng.dirichlet(np.ones(len(own[0])))
        laws += fit(target, *own, np.zeros((len(own[0]), 0)), weights, replace(one_law(floor=floor), guard=0.5)).laws
    trees = [np.concatenate([a, b]) for a, b in zip(seen, random_trees(n, 20, rng))]
    return laws, trees


@pytest.mark.parametrize("n", [4, 7, 20])
def test_each_column_is_what_its_law_says(n):
    laws, trees = laws_of(n, np.random.default_rng(n), 0.02)
    found = densities(mixture_of(laws), clade_keys(n), np.zeros(7), np.ones(len(trees[0])), *trees)[0]
    assert len(np.unique(found[:, 1] - found[:, 2])) > 40  # they do not agree
    for k, law in enumerate(laws):
        alone = np.empty(len(trees[0]))
        clades.log_densities(law.clades, clade_keys(n), *trees, alone)
        assert found[:, k] == pytest.approx(alone, rel=1e-12)


def test_plain_python_does_the_same(monkeypatch):
    n = 6
    laws, trees = laws_of(n, np.random.default_rng(9), 0.02)
    scales = np.random.default_rng(1).uniform(0.5, 2.0, len(trees[0]))
    guard = np.array([0.1, 1.0, 10.0, 1.0, 10.0, np.log(10.0), np.log(10.0)])
    trees[1][0, 3] = 1e-11  # far from any Gamma
    compiled = densities(mixture_of(laws), clade_keys(n), guard, scales, *trees)
    with monkeypatch.context() as patch, np.errstate(over="ignore"):
        interpret(patch, clades, mixtures)
        plain = densities(mixture_of(laws), clade_keys(n), guard, scales, *trees)
    for one, other in zip(compiled, plain):
        assert np.isfinite(one).all()
        assert one == pytest.approx(other, rel=1e-10, abs=1e-10)
