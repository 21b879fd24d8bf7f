"""Whole runs with every kernel as the plain Python it was made from: compiled code computes nothing else.

Compiled and interpreted kernels draw the same random numbers from the same stream, so that runs agree draw by draw.
"""

import importlib
import pkgutil

import numpy as np
import pytest
from reference.shapes import interpret

from vaiphy import csmc, kernels, vi
from vaiphy.alignment import compress
from vaiphy.csmc import engine
from vaiphy.csmc.jc_mixture import mixture_lengths
from vaiphy.csmc.proposals import Proposal
from vaiphy.csmc.support import support_merger
from vaiphy.csmc.targets import Target
from vaiphy.kernels import joining_neighbours, logsum
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names

EFFORT = csmc.Effort(bootstraps=3, climbs=1, expansions=1, at_once=1, neighbours=5, pilots=1, pilot_particles=4, pilots_least=1)


@pytest.fixture(scope="module")
def patterns():
    rng = np.random.default_rng(1)
    return compress(random_alignment(random_tree(taxon_names(4), rng), 6, rng, missing=0.05))


@pytest.fixture
def plain(monkeypatch):
    """A function that calls another with every kernel interpreted."""

    def call(function):
        with monkeypatch.context() as patch, np.errstate(over="ignore", under="ignore"):
            names = [info.name for info in pkgutil.iter_modules(kernels.__path__)]
            modules = [importlib.import_module(f"vaiphy.kernels.{name}") for name in names]
            interpret(patch, *modules)
            patch.setattr(logsum, "quick_log", np.log)  # made of machine instructions; tested by itself
            return function()

    return call


@pytest.mark.parametrize("kind", ["rooted", "unrooted"])
def test_guided_run(patterns, plain, kind):
    """Search (screening, Gammas, moves), guide, mergers in order, branch lengths, particles."""

    def run():
        target, rng = Target(kind), np.random.default_rng(2)
        proposal = csmc.make_proposal("guided", patterns, target, rng, effort=EFFORT)
        return engine.run(patterns, proposal, target, rng, 4)

    compiled, interpreted = run(), plain(run)
    assert np.array_equal(compiled.rooted_children, interpreted.rooted_children)
    assert compiled.rooted_lengths == pytest.approx(interpreted.rooted_lengths, rel=1e-3)
    assert compiled.log_evidence == pytest.approx(interpreted.log_evidence, abs=1e-3)


def test_pairwise_lengths(patterns, plain):
    def run():
        target, rng = Target("unrooted"), np.random.default_rng(3)
        return engine.run(patterns, csmc.make_proposal("pairwise", patterns, target, rng), target, rng, 4)

    compiled, interpreted = run(), plain(run)
    assert compiled.log_evidence == pytest.approx(interpreted.log_evidence, abs=1e-3)


@pytest.mark.parametrize("tree_law", ["spanning", "slantis"])
def test_vaiphy(patterns, plain, tree_law):
    """Coordinate ascent, trees, branch lengths, and phi-CSMC's mergers and mixtures made from them."""

    def run():
        rng = np.random.default_rng(4)
        fit = vi.fit(patterns, rng=rng, iterations=2, tree_law=tree_law)
        trees = fit.sample_trees(5, rng)
        merger = support_merger(trees, np.zeros(5))
        found = engine.run(patterns, Proposal(merger, mixture_lengths(trees, fit.length_law)), Target("unrooted"), rng, 4)
        return fit.elbo, trees.lengths, found.log_evidence

    compiled, interpreted = run(), plain(run)
    assert compiled[0] == pytest.approx(interpreted[0], rel=1e-9)
    assert compiled[1] == pytest.approx(interpreted[1], rel=1e-6)
    assert compiled[2] == pytest.approx(interpreted[2], abs=1e-3)


def test_neighbour_joining(plain):
    distances = np.abs(np.subtract.outer(np.arange(6.0) ** 1.5, np.arange(6.0) ** 1.5))

    def run():
        children, lengths = np.empty((4, 2), dtype=np.int32), np.zeros(10)
        joining_neighbours.bionj(distances, children, lengths)
        parent, length = np.empty(10, dtype=np.int32), np.empty(10)
        joining_neighbours.bionj_parents(distances, parent, length)
        return children, parent, lengths, length

    compiled, interpreted = run(), plain(run)
    assert np.array_equal(compiled[0], interpreted[0])
    assert np.array_equal(compiled[1], interpreted[1])
    assert compiled[2] == pytest.approx(interpreted[2])
    assert compiled[3] == pytest.approx(interpreted[3])
    assert sorted(compiled[2]) == pytest.approx(sorted(compiled[3]))
