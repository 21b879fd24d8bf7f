"""Simulated trees and alignments follow the model."""

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from vaiphy.errors import InputError
from vaiphy.formats import newick
from vaiphy.simulate import random_alignment, random_tree, taxon_names


def test_topologies_are_uniform():
    rng = np.random.default_rng(1)
    counts = Counter(random_tree(taxon_names(5), rng).topology for _ in range(3000))
    assert len(counts) == 15
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_lengths_are_exponential():
    rng = np.random.default_rng(2)
    tree = random_tree(taxon_names(2000), rng, rate=5.0)
    assert tree.is_binary
    lengths = np.delete(tree.length, tree.root)
    assert kstest(lengths, "expon", args=(0, 1 / 5)).pvalue > 1e-3


def test_sequences_differ_as_often_as_jc69_says():
    rng = np.random.default_rng(3)
    tree = newick.read("((a:0.1,b:0.2):0.3,(c:0.05,d:0.4):0,e:1);")
    n_sites = 100_000
    sites = random_alignment(tree, n_sites, rng).sites
    for first, second, length in (("a", "b", 0.3), ("a", "c", 0.45), ("c", "d", 0.45), ("b", "e", 1.5)):
        i, j = tree.taxa.index(first), tree.taxa.index(second)
        expected = 0.75 * (1 - np.exp(-4 / 3 * length))
        error = np.sqrt(expected * (1 - expected) / n_sites)
        assert abs((sites[i] != sites[j]).mean() - expected) < 4 * error
    shares = np.bincount(sites.ravel(), minlength=9)[[1, 2, 4, 8]] / sites.size
    assert np.allclose(shares, 0.25, atol=4 * 0.5 / np.sqrt(n_sites))


def test_missing_data_and_seeds():
    tree = random_tree(taxon_names(6), np.random.default_rng(4))
    one = random_alignment(tree, 5000, np.random.default_rng(5), missing=0.3)
    two = random_alignment(tree, 5000, np.random.default_rng(5), missing=0.3)
    assert np.array_equal(one.sites, two.sites)
    assert abs((one.sites == 15).mean() - 0.3) < 4 * np.sqrt(0.21 / 30_000)


def test_impossible_requests():
    rng = np.random.default_rng(6)
    with pytest.raises(InputError):
        random_tree(("a", "b"), rng)
    with pytest.raises(InputError):
        random_alignment(newick.read("(a,b,c);"), 10, rng)
    with pytest.raises(InputError):
        random_alignment(newick.read("(a:1,b:1,c:1);"), 0, rng)
