"""TreeSample: binary arrays and trees agree, selection keeps weights, systematic resampling is as even as it can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.random_trees import random_binary_tree

from vaiphy.tree import Tree, TreeError
from vaiphy.treesample import TreeSample, binary_arrays, parents_of, systematic


@pytest.fixture
def rng():
    return np.random.default_rng(20220601)


@given(st.integers(3, 12), st.integers(0, 2**32 - 1))
def test_binary_arrays_describe_the_same_tree(n, seed):
    rng = np.random.default_rng(seed)
    tree = random_binary_tree(n, rng)
    tree = tree.rerooted(int(rng.integers(tree.n_vertices)))
    children, lengths = binary_arrays(tree)
    assert (children < np.arange(n, 2 * n - 2)[:, None]).all()
    again = Tree(tree.taxa, parents_of(children), lengths)
    assert again.topology == tree.topology
    assert dict(zip(again.splits, again.length)) == pytest.approx(dict(zip(tree.splits, tree.length)))


def test_a_multifurcation_has_no_binary_arrays():
    star = Tree(("a", "b", "c", "d"), np.array([4, 4, 4, 4, -1]), np.ones(5))
    with pytest.raises(TreeError, match="not an unrooted binary"):
        binary_arrays(star)


def _sample(rng, n=6, trees=5, samples=40):
    arrays = [binary_arrays(random_binary_tree(n, rng)) for _ in range(trees)]
    weights = rng.exponential(size=samples)
    return TreeSample(
        tuple("abcdef"),
        np.array([children for children, _ in arrays]),
        rng.integers(trees, size=samples).astype(np.int32),
        rng.exponential(size=(samples, 2 * n - 2)),
        np.log(weights / weights.sum()),
        (np.arange(samples) % 4).astype(np.int32),
    )


def test_a_replicate_keeps_its_trees_and_relative_weights(rng):
    sample = _sample(rng)
    part = sample.of_replicate(2)
    chosen = np.flatnonzero(sample.replicate == 2)
    assert part.weights == pytest.approx(sample.weights[chosen] / sample.weights[chosen].sum())
    assert np.exp(part.log_weights).sum() == pytest.approx(1.0)
    for k, i in enumerate(chosen):
        assert part.tree(k).topology == sample.tree(int(i)).topology
        assert (part.lengths[k] == sample.lengths[i]).all()


def test_arrays_round_trip(rng):
    sample = _sample(rng)
    again = TreeSample.from_arrays(sample.taxa, sample.to_arrays())
    assert all((getattr(again, k) == v).all() for k, v in sample.to_arrays().items())


def test_effective_size_of_equal_weights_is_their_number(rng):
    sample = _sample(rng)
    assert sample.select(np.arange(10)).effective_size == pytest.approx(10)
    assert sample.effective_size < 40


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.integers(1, 200), st.floats(0, 0.999999))
def test_systematic_resampling_is_within_one_of_expectation(raw, size, uniform):
    weights = np.array(raw) + 1e-6
    weights /= weights.sum()
    counts = np.bincount(systematic(weights, size, uniform), minlength=len(weights))
    assert counts.sum() == size
    assert (np.abs(counts - size * weights) < 1 + 1e-6).all()


def test_shapes_are_checked():
    with pytest.raises(TreeError, match="expected"):
        TreeSample(("a", "b", "c", "d"), np.zeros((1, 1, 2), np.int32), *(np.zeros(1, np.int32),) * 4)
