"""TreeSample: binary arrays and trees agree, selection keeps weights."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference.random_trees import random_binary_tree

from vaiphy.runner import checkpoint
from vaiphy.trees.sample import TreeSample, binary_arrays, equal_weights, parents_of
from vaiphy.trees.tree import Tree, TreeError


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


def test_shapes_are_checked():
    with pytest.raises(TreeError, match="expected"):
        TreeSample(("a", "b", "c", "d"), np.zeros((1, 1, 2), np.int32), *(np.zeros(1, np.int32),) * 4)


def test_parameters_stay_with_their_trees(rng, tmp_path):
    plain = _sample(rng)
    kappa = np.arange(plain.n_samples, dtype=float)
    sample = replace(plain, parameters={"kappa": kappa, "pi(A)": -kappa})
    chosen = sample.select(np.array([3, 3, 17]))
    assert chosen.parameters["kappa"].tolist() == [3.0, 3.0, 17.0]
    drawn = equal_weights(sample, 100)
    length = dict(zip(sample.lengths.sum(axis=1), kappa))
    assert drawn.parameters["kappa"].tolist() == [length[total] for total in drawn.lengths.sum(axis=1)]
    checkpoint.save(tmp_path / "x.ckpt", {}, sample.to_arrays())
    back = TreeSample.from_arrays(sample.taxa, checkpoint.load(tmp_path / "x.ckpt")[1])
    assert back.parameters.keys() == {"kappa", "pi(A)"}
    assert np.array_equal(back.parameters["pi(A)"], -kappa)
    assert not TreeSample.from_arrays(plain.taxa, plain.to_arrays()).parameters
    with pytest.raises(TreeError, match="each parameter needs one entry"):
        replace(plain, parameters={"kappa": kappa[1:]})
