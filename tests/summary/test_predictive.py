"""Posterior predictive checks: quiet under the true model, loud where it is wrong, and quick."""

import time

import numpy as np
import pytest

from vaiphy import datasets
from vaiphy.alignment import MISSING, Alignment, compress
from vaiphy.alphabets import DNA
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.models.substitution import model_of
from vaiphy.summary.predictive import N_DRAWS, check
from vaiphy.summary.predictive import along as under

NAMES = ["composition", "composition of taxa", "site rates", "pairwise distances"]


def along(tree, n_sites, rng):
    return random_alignment(tree, n_sites, rng).sites


def checked(sites, tree, seed=3):
    patterns = compress(Alignment(tree.taxa, sites))
    return {found.name: found for found in check(patterns, [(tree, along)] * N_DRAWS, np.random.default_rng(seed))}


@pytest.fixture
def tree():
    return random_tree(taxon_names(12), np.random.default_rng(1))


def test_the_true_model_fits():
    rng = np.random.default_rng(2)
    surprises = 0
    for _ in range(30):
        tree = random_tree(taxon_names(8), rng)
        found = checked(random_alignment(tree, 300, rng, missing=0.2).sites, tree)
        assert list(found) == NAMES
        surprises += sum(not one.fits for one in found.values())
    assert surprises <= 8  # 120 checks with two chances in a hundred each


def test_p_values_are_calibrated():
    rng = np.random.default_rng(5)
    tree = random_tree(taxon_names(6), rng)
    values = [[one.p for one in checked(along(tree, 200, rng), tree, seed).values()] for seed in range(50)]
    mean = np.mean(values, axis=0)
    assert mean == pytest.approx(0.5, abs=4 * 0.29 / 50**0.5 + 0.02)


def test_a_skewed_composition_is_told(tree):
    rng = np.random.default_rng(3)
    sites = along(tree, 900, rng)
    sites[sites == 4] = np.where(rng.random(np.count_nonzero(sites == 4)) < 0.6, 1, 4)
    found = checked(sites, tree)["composition"]
    assert not found.fits
    assert "G is below" in found.sentence or "A is above" in found.sentence


def test_one_odd_taxon_is_named(tree):
    rng = np.random.default_rng(4)
    sites = along(tree, 900, rng)
    turned = (sites[5] == 1) & (rng.random(900) < 0.7)
    sites[5, turned] = 4
    found = checked(sites, tree)["composition of taxa"]
    assert not found.fits
    assert tree.taxa[5] in found.sentence


def test_rates_that_differ_between_sites_are_told(tree):
    rng = np.random.default_rng(6)
    slow, fast = tree.with_lengths(0.02 * tree.length), tree.with_lengths(1.98 * tree.length)
    sites = np.hstack([along(slow, 450, rng), along(fast, 450, rng)])
    found = checked(sites, tree)["site rates"]
    assert not found.fits
    assert "rates differ between sites" in found.sentence


def test_a_wrong_tree_is_seen_in_the_distances(tree):
    sites = along(tree, 900, np.random.default_rng(7))
    order = np.random.default_rng(8).permutation(12)
    assert not checked(sites[order], tree)["pairwise distances"].fits


def test_gaps_are_no_misfit(tree):
    rng = np.random.default_rng(9)
    sites = along(tree, 600, rng)
    sites[:6, :400] = MISSING
    sites[3, sites[3] == 1] = 5  # A or G
    assert checked(sites, tree)["site rates"].fits


def test_a_model_fits_its_own_data_and_a_simpler_one_does_not(tree):
    rng = np.random.default_rng(11)
    truth = model_of("HKY{4.0}+F{0.4,0.1,0.1,0.4}+G4{0.3}", DNA)
    sites = under(truth, np.zeros(0))(tree, 900, rng)
    patterns = compress(Alignment(tree.taxa, sites))
    assert all(one.fits for one in check(patterns, [(tree, under(truth, np.zeros(0)))] * N_DRAWS, rng))
    simpler = {one.name: one for one in check(patterns, [(tree, under(model_of("JC", DNA), np.zeros(0)))] * N_DRAWS, rng)}
    assert not simpler["composition"].fits
    assert not simpler["site rates"].fits


def test_any_model_can_be_plugged_in(tree):
    def only_a(tree, n_sites, rng):
        return np.ones((tree.n_taxa, n_sites), dtype=np.uint8)

    patterns = compress(Alignment(tree.taxa, only_a(tree, 50, None)))
    assert all(one.fits for one in check(patterns, [(tree, only_a)] * 50, np.random.default_rng(1)))
    assert check(patterns, [], np.random.default_rng(1)) == ()


@pytest.mark.parametrize("name", ["DS1", "DS4"])
def test_it_is_cheap(name):
    patterns = compress(datasets.load(name))
    tree = random_tree(patterns.taxa, np.random.default_rng(1))
    began = time.process_time()
    check(patterns, [(tree, along)] * N_DRAWS, np.random.default_rng(1))
    assert time.process_time() - began < 3  # half a second on an idle machine
