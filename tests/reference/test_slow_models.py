"""The slow oracle itself: pruning equals the sum over all states, and JC69's other oracle."""

import numpy as np
import pytest
from reference.exact import brute_log_likelihood
from reference.random_trees import random_binary_tree
from reference.slow_models import brute_site_likelihoods, log_likelihood, site_log_likelihoods, slow_model

from vaiphy.alphabets import BIN, DNA, MORPH
from vaiphy.models.substitution import model_of


@pytest.mark.parametrize(
    ("text", "alphabet"),
    [("GTR+I+G4", DNA), ("HKY+G2", DNA), ("MK+G2", MORPH(3)), ("ORDERED", MORPH(3)), ("GTR2+I", BIN)],
)
def test_pruning_is_the_sum_over_states(text, alphabet):
    rng = np.random.default_rng(1)
    tree = random_binary_tree(4, rng, tuple("abcd"))
    codes = rng.integers(1, alphabet.everything + 1, size=(4, 5))
    codes[:, 0] = alphabet.everything
    model = model_of(text, alphabet)
    slow = slow_model(model, model.draw_prior(1, rng)[0])
    tips = alphabet.indicators(codes)
    likelihoods = brute_site_likelihoods(tree, tips, slow)
    assert np.exp(site_log_likelihoods(tree, tips, slow)) == pytest.approx(likelihoods)
    assert likelihoods[0] == pytest.approx(1)


def test_jc69_by_another_way():
    rng = np.random.default_rng(2)
    tree = random_binary_tree(4, rng, tuple("abcd"))
    codes = rng.integers(1, 16, size=(4, 6))
    edges = tuple((v, int(tree.parent[v])) for v in range(tree.n_vertices) if v != tree.root)
    lengths = np.array([tree.length[v] for v, _ in edges])
    ours = log_likelihood(tree, DNA.indicators(codes), np.ones(6), slow_model(model_of("JC", DNA)))
    assert ours == pytest.approx(brute_log_likelihood(edges, lengths, codes))


def test_variable_characters_have_all_the_probability():
    """+ASC: over all patterns that are not constant, probabilities sum to one."""
    rng = np.random.default_rng(3)
    tree = random_binary_tree(4, rng, tuple("abcd"))
    alphabet = MORPH(3)
    states = np.stack(np.meshgrid(*[np.arange(3)] * 4, indexing="ij")).reshape(4, -1)
    variable = states[:, (states != states[0]).any(axis=0)]
    slow = slow_model(model_of("MK+G2{0.5}+ASC", alphabet))
    each = [log_likelihood(tree, alphabet.indicators(1 << column[:, None]), np.ones(1), slow) for column in variable.T]
    assert np.exp(each).sum() == pytest.approx(1)
