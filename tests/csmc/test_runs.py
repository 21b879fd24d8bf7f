"""What users call: names, repeats, statements, starting trees, and DS1."""

import numpy as np
import pytest

from vaiphy import csmc, vi
from vaiphy.alignment import compress
from vaiphy.csmc.search import Archive, bootstrap_trees
from vaiphy.csmc.support import SupportMerger, support_merger
from vaiphy.datasets import load
from vaiphy.likelihood import log_likelihoods
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.search.rearrange import topology_hashes
from vaiphy.trees.sample import parents_of


@pytest.fixture(scope="module")
def patterns():
    rng = np.random.default_rng(21)
    return compress(random_alignment(random_tree(taxon_names(9), rng), 200, rng))


def test_names_agree_on_the_evidence(patterns):
    rng = np.random.default_rng(1)
    fit = vi.fit(patterns, rng=rng)
    found = {
        name: csmc.estimate(patterns, rng=rng, proposal=name, fit=fit, repeats=4, n_particles=512, threads=2)
        for name in ("guided", "pairwise", "paper")
    }
    guided = found["guided"]
    assert guided.sd < 0.5
    assert guided.mean <= guided.combined
    assert guided.se == pytest.approx(guided.sd / 2)
    assert "unrooted binary topologies, 15 branch lengths with an Exp(10) prior" in guided.statement
    for name in ("pairwise", "paper"):  # valid, but far less precise: they lose particles
        assert found[name].mean < guided.mean + 1.0


def test_one_run(patterns):
    particles = csmc.run(patterns, rng=np.random.default_rng(2), target="rooted", proposal="vanilla", n_particles=64)
    assert particles.statement.startswith("log marginal likelihood under JC69, uniform prior over rooted")
    assert particles.rooted_children.shape == (64, 8, 2)


def test_seeds_repeat(patterns):
    first, second = (
        csmc.run(patterns, rng=np.random.default_rng(3), proposal="pairwise", n_particles=64).log_evidence for _ in range(2)
    )
    assert first == second


def test_unknown_names(patterns):
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="not one of guided, pairwise, paper, authors, vanilla"):
        csmc.run(patterns, rng=rng, proposal="best")
    with pytest.raises(ValueError, match="made from a fitted distribution"):
        csmc.run(patterns, rng=rng, proposal="paper")
    with pytest.raises(ValueError, match="floor must be positive"):
        SupportMerger(np.zeros(0, dtype=np.uint64), np.zeros(0), floor=0.0)


def test_starting_topologies(patterns):
    children = csmc.starting_topologies(patterns, 20, np.random.default_rng(4), threads=2)
    assert 1 <= len(children) <= 20
    assert len(np.unique(topology_hashes(children))) == len(children)
    lengths = np.full((len(children), 16), 0.1)
    assert np.isfinite(log_likelihoods(parents_of(children), lengths, patterns)).all()


def test_support_is_the_share_of_trees(patterns):
    rng = np.random.default_rng(5)
    trees = vi.fit(patterns, rng=rng, iterations=3).sample_trees(50, rng)
    merger = support_merger(trees, np.zeros(50))
    support = dict(zip(merger.hashes.tolist(), merger.support))
    hashes = csmc.forest.taxon_hashes(9)
    for taxon in range(9):  # every tree separates a taxon from the others
        assert support[int(hashes[taxon])] == pytest.approx(1.0)
    clade = next(split for split in trees.tree(0).splits if split.bit_count() > 1)
    together = sum(clade in trees.tree(i).splits for i in range(50)) / 50
    clade_hash = int(np.bitwise_xor.reduce([hashes[t] for t in range(9) if clade >> t & 1]))
    assert support[clade_hash] == pytest.approx(together)


def test_climbing_never_loses_mass(patterns):
    archive = Archive(csmc.Target("unrooted").for_search(patterns))
    archive.add(*bootstrap_trees(archive.target, 5, np.random.default_rng(6)))
    before = max(archive.masses)
    archive.climb(archive.best(3))
    assert max(archive.masses) >= before
    archive.expand(archive.best(1))
    assert archive.expanded == {archive.best(1)[0]} or max(archive.masses) > before


@pytest.mark.slow
def test_ds1_reaches_the_consensus():
    """Published consensus -7108.4 (unrooted, Exp(10))."""
    patterns = compress(load("DS1"))
    rng = np.random.default_rng(1)
    fit = vi.fit(patterns, rng=rng, threads=2)
    found = csmc.estimate(patterns, rng=rng, fit=fit, repeats=4, threads=2)
    assert abs(found.mean + 7108.4) < 3.0
