"""Simulated trees and alignments follow the model."""

from collections import Counter

import numpy as np
import pytest
from reference.slow_models import brute_site_likelihoods, slow_model
from scipy.stats import chisquare, kstest

from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA
from vaiphy.errors import InputError
from vaiphy.formats import newick
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.models.substitution import model_of


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


@pytest.mark.parametrize(
    ("text", "alphabet"),
    [
        ("GTR+I+G4", DNA),
        ("F81+F{0.1,0.2,0.3,0.4}+I{0.3}", RNA),
        ("ORDERED+G4{0.5}", MORPH(3)),
        ("MK+ASC", MORPH(3)),
        ("GTR2+G4", BIN),
    ],
)
def test_patterns_are_as_frequent_as_the_model_says(text, alphabet):
    """All patterns of three taxa, counted, against their probabilities by a sum over states."""
    rng = np.random.default_rng(5)
    tree = newick.read("(a:0.1,b:0.4,c:0.8);")
    model = model_of(text, alphabet)
    z = model.draw_prior(1, rng)[0]
    n_sites, k = 40_000, alphabet.n_states
    found = random_alignment(tree, n_sites, rng, model=model, z=z)
    assert found.alphabet is alphabet
    states = np.log2(found.sites).astype(int)
    counts = np.bincount(states[0] * k * k + states[1] * k + states[2], minlength=k**3)
    patterns = np.stack(np.meshgrid(*[np.arange(k)] * 3, indexing="ij")).reshape(3, -1)
    chance = brute_site_likelihoods(tree, alphabet.indicators(1 << patterns), slow_model(model, z))
    if model.ascertained:
        chance = np.where((patterns == patterns[0]).all(axis=0), 0, chance)
    assert not counts[chance == 0].any()
    common = chance * n_sites > 5
    expected = n_sites * np.append(chance[common], chance[~common].sum()) / chance.sum()
    observed = np.append(counts[common], counts[~common].sum())
    kept = expected > 0
    assert chisquare(observed[kept], expected[kept]).pvalue > 1e-3


def test_amino_acids_differ_as_the_matrix_says():
    rng = np.random.default_rng(6)
    tree = newick.read("(a:0.3,b:0.2,c:0);")
    model = model_of("LG+I{0.2}+G4{0.5}", AA)
    sites = random_alignment(tree, 50_000, rng, model=model).sites
    arrays = model.arrays(np.zeros((1, 0)))
    p = np.tensordot(arrays.weights[0], model.transition(np.zeros(0), 0.5), axes=1) + 0.2 * np.eye(20)
    same = float(arrays.pi[0] @ np.diag(p))
    assert (sites[0] == sites[1]).mean() == pytest.approx(same, abs=4 * np.sqrt(same * (1 - same) / 50_000))
    assert np.bincount(np.log2(sites[2]).astype(int), minlength=20) / 50_000 == pytest.approx(arrays.pi[0], abs=0.006)


def test_missing_characters_of_any_alphabet():
    tree = newick.read("(a:0.3,b:0.2,c:0.1);")
    found = random_alignment(tree, 2000, np.random.default_rng(7), missing=0.3, model=model_of("Poisson", AA))
    assert (found.sites == AA.everything).mean() == pytest.approx(0.3, abs=0.03)


def test_what_cannot_be_simulated():
    rng = np.random.default_rng(8)
    tree = newick.read("(a:0.3,b:0.2,c:0.1);")
    with pytest.raises(InputError, match=r"model 'HKY': it has free parameters; give their values"):
        random_alignment(tree, 10, rng, model=model_of("HKY", DNA))
    with pytest.raises(InputError, match="the branches are too short for"):
        random_alignment(tree.with_lengths(tree.length * 0), 10, rng, model=model_of("MK+ASC", MORPH(2)))
