"""Equal-input models of four states: JC69's own numbers, and F81 against matrix exponentials and sums over states."""

import numpy as np
import pytest
from reference import slow_models
from reference.shapes import random_patterns, random_shape

from vaiphy.alignment import MISSING
from vaiphy.alphabets import AA, DNA
from vaiphy.errors import InputError
from vaiphy.likelihood import log_likelihood, node_marginals, optimise
from vaiphy.models.jc69 import JC69
from vaiphy.models.replacement import replacement_of
from vaiphy.models.substitution import model_of
from vaiphy.search.optimum import optimum
from vaiphy.search.starts import bionj, distances
from vaiphy.target import target_of

F81 = model_of("F81+F{0.1,0.2,0.3,0.4}", DNA)


def test_jc_is_jc69():
    own = replacement_of(model_of("JC", DNA))
    assert own.beta == JC69.beta
    assert np.array_equal(own.pi, JC69.pi)
    assert own.exchangeable
    assert not replacement_of(F81).exchangeable


@pytest.mark.parametrize(
    ("text", "alphabet", "reason"),
    [
        ("F81", DNA, "free parameters"),
        ("JC+G4{0.5}", DNA, "different rates"),
        ("JC+I{0.2}", DNA, "different rates"),
        ("K80{2}", DNA, "not equally likely"),
        ("Poisson", AA, "20 states"),
    ],
)
def test_other_models_are_refused(text, alphabet, reason):
    with pytest.raises(InputError, match=reason):
        replacement_of(model_of(text, alphabet))


def test_likelihood_and_marginals_with_unequal_frequencies():
    rng = np.random.default_rng(1)
    slow, model = slow_models.slow_model(F81), replacement_of(F81)
    for n_taxa, n_vertices in ((3, 4), (4, 6), (6, 9)):
        tree = random_shape(n_taxa, n_vertices, rng)
        patterns = random_patterns(tree.taxa, 12, rng)
        patterns.codes[0] = MISSING
        tips = patterns.tips.astype(float)
        expected = slow_models.log_likelihood(tree, tips, patterns.counts, slow)
        assert log_likelihood(tree, patterns, model) == pytest.approx(expected, rel=1e-11)
        marginals = node_marginals(tree, patterns, model)
        assert marginals.sum(axis=1) == pytest.approx(1.0)
        whole = np.exp(slow_models.site_log_likelihoods(tree, tips, slow))
        for state in range(4):  # if the first taxon's state were known
            seen = tips.copy()
            seen[0] *= np.eye(4)[state][:, None]
            share = np.exp(slow_models.site_log_likelihoods(tree, seen, slow)) / whole
            assert marginals[0, state] == pytest.approx(share, rel=1e-9, abs=1e-12)


def test_distances_and_best_lengths_with_unequal_frequencies():
    rng = np.random.default_rng(2)
    model = replacement_of(F81)
    patterns = random_patterns(tuple("abcde"), 200, rng)
    start = bionj(distances(patterns, model=model), patterns.taxa)
    tree, value = optimise(start, patterns, tolerance=1e-9, model=model)
    best = optimum(target_of(patterns, F81.name), start)
    assert value == pytest.approx(best.log_likelihood, abs=1e-4)
    assert value == log_likelihood(tree, patterns, model)
    # Two sequences: the distance is where the likelihood of the share of differences is highest.
    share = 0.3
    pair = -np.log(1 - model.beta * share) / model.beta
    assert (1 - model.decay(pair)) / model.beta == pytest.approx(share)
