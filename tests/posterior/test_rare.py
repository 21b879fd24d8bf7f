"""Laws of rare splits: found where trees of a split differ in more than that split, and only there."""

import numpy as np
import pytest
from reference.bridges import one_law
from reference.shapes import random_patterns
from reference.topologies import names

from vaiphy.kernels import clades
from vaiphy.posterior.proposal import fit
from vaiphy.posterior.rare import emphasised
from vaiphy.posterior.tree_law import ALONE, Fitting, IslandFitting, Trees, clade_keys
from vaiphy.target import target_of

N = 17
PLAIN = Fitting(**ALONE)


def tree_of_quartets(pairings):
    """Four clades of four taxa; which of its others the first taxon of each is paired with."""
    children = np.empty((N - 2, 2), dtype=np.int64)
    for q, pair in enumerate(pairings):
        first = 1 + 4 * q
        others = [first + k for k in (1, 2, 3) if k != pair]
        children[3 * q] = first, first + pair
        children[3 * q + 1] = others
        children[3 * q + 2] = N + 3 * q, N + 3 * q + 1
    children[12], children[13], children[14] = (N + 2, N + 5), (N + 8, N + 11), (N + 12, N + 13)
    return children


def trees_with_an_island(n, share, rng):
    """Each quartet is mostly of one kind; on the island all four are of another, which are far apart in the tree."""
    island = rng.permutation(n) < round(share * n)
    kinds = np.where(rng.random((n, 4)) < 0.95, 1, 2)
    kinds[island] = 3
    children = np.array([tree_of_quartets(row) for row in kinds])
    return Trees(children, rng.gamma(4.0, 0.02, size=(n, 2 * N - 2)), np.full(n, 2 * N - 3)), island


def target():
    return target_of(random_patterns(names(N), 4, np.random.default_rng(1)), "JC")


def log_density(proposal, trees):
    return proposal.log_path(proposal.log_laws(*trees), 0.0)


def test_trees_of_a_small_island_are_drawn_more_often():
    of = target()
    trees, _ = trees_with_an_island(600, 0.03, np.random.default_rng(5))
    weights = np.full(600, 1 / 600)
    assert emphasised(of, trees, weights, PLAIN) == []  # none is allowed
    allowed = Fitting(islands=IslandFitting(most=1))
    found = emphasised(of, trees, weights, allowed)
    assert 1 <= len(found) <= allowed.rare.most
    assert all(own.sum() == pytest.approx(1.0, abs=1e-12) for own in found)
    new, island = trees_with_an_island(600, 0.5, np.random.default_rng(6))
    z = np.zeros((600, 0))
    without, withal = (fit(of, *trees, z, weights, fitting) for fitting in (PLAIN, allowed))
    assert len(withal.laws) == 1 + len(found)
    gain = log_density(withal, new) - log_density(without, new)
    assert gain[island].mean() > 1.0
    assert gain[~island].mean() > -0.4
    # It is a mixture, and exactly what is drawn from: weights of draws under the one law have a mean of 1.
    draws = withal.sample(4000, [7])[:3]
    ratio = np.exp(log_density(without, draws) - log_density(withal, draws))
    assert ratio.mean() == pytest.approx(1.0, abs=4 * ratio.std() / np.sqrt(4000))


def test_where_a_law_is_enough_there_is_no_other():
    """Draws of one law, which a law describes well, rare splits and all."""
    of, rng = target(), np.random.default_rng(8)
    start = fit(of, *trees_with_an_island(400, 0.0, rng)[0], np.zeros((400, 0)), np.full(400, 1 / 400), one_law())
    children, lengths, tops, _ = start.sample(1000, [9])
    assert emphasised(of, Trees(children, lengths, tops), np.full(1000, 1e-3), Fitting()) == []
    out = np.empty(1000)
    clades.log_densities(start.laws[0].clades, clade_keys(N), children, lengths, tops, out)
    assert np.isfinite(out).all()
