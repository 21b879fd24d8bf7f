"""Merging kernels against slow oracles."""

from itertools import combinations

import numpy as np
import pytest
from reference.shapes import interpret
from scipy.integrate import quad

from vaiphy import csmc
from vaiphy.alignment import compress, fold_states
from vaiphy.csmc import engine
from vaiphy.csmc import forest as forests
from vaiphy.csmc import guide as guides
from vaiphy.csmc.forest import taxon_hashes
from vaiphy.csmc.unroot import unrooted_arrays
from vaiphy.kernels import division, merge, ordered, support
from vaiphy.likelihood import log_likelihood
from vaiphy.models.jc69 import JC69
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.trees.sample import binary_arrays
from vaiphy.trees.tree import Tree


@pytest.fixture(scope="module")
def case():
    """A tree and its data, with missing bases."""
    rng = np.random.default_rng(1)
    tree = random_tree(taxon_names(7), rng)
    return tree, fold_states(compress(random_alignment(tree, 300, rng, missing=0.1)))


def message(partials, length):
    u = JC69.decay(length)
    return u * partials + 0.25 * (1 - u) * partials.sum(axis=0)


def test_a_merger_is_a_pruning_step(case):
    _, patterns = case
    forest = forests.begin(patterns, 3)
    lengths = np.array([[0.1, 0.3], [0.001, 0.02], [1.0, 0.0]])
    forests.merge_roots(forest, np.array([0, 2, 5]), np.array([3, 1, 6]), lengths)
    for k, (a, b) in enumerate([(0, 3), (2, 1), (5, 6)]):
        tips = patterns.tips.astype(float)
        product = message(tips[a], lengths[k, 0]) * message(tips[b], lengths[k, 1])
        vertex = 7 + k
        expected = np.log(0.25 * product.sum(axis=0)) @ patterns.counts
        assert forest.log_likelihood[vertex] == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(forest.pool[forest.slot[vertex]], 4 * product / product.sum(axis=0), rtol=1e-5, atol=1e-6)


def test_plain_python_agrees(case):
    _, patterns = case
    pool = np.empty((3, 4, patterns.n_patterns), dtype=np.float32)
    pool[:2] = forests.leaves(patterns)[0][:2]
    results = []
    for function in (merge.merge_many, merge.merge_many.py_func):
        gain, work = np.empty(1), np.empty(patterns.n_patterns)
        args = (np.array([2]), np.array([0]), np.array([1]), np.array([[0.1, 0.2]]))
        function(JC69, pool, patterns.counts, *args, gain, work)
        results.append((gain[0], pool[2].copy()))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5)


def test_slots_are_shared_and_freed(case):
    _, patterns = case
    forest = forests.begin(patterns, 64)
    n_slots = len(forest.free)
    rng = np.random.default_rng(2)
    for n_roots in range(7, 1, -1):
        pairs = np.array([rng.choice(n_roots, 2, replace=False) for _ in range(64)])
        forests.merge_roots(forest, pairs[:, 0], pairs[:, 1], np.full((64, 2), 0.1))
        forests.resample(forest, rng.integers(0, 64, size=64))
        live = np.unique(forest.roots[forest.roots >= 7])
        assert n_slots - len(forest.free) == len(live)  # no slot is held for anybody else
        assert (forest.slot[live] >= 0).all()
        assert len(np.unique(forest.slot[live])) == len(live)


def test_ratios_give_the_likelihood_of_a_branch(case):
    _, patterns = case
    pool = np.empty((4, 4, patterns.n_patterns), dtype=np.float32)
    pool[:3] = forests.leaves(patterns)[0][:3]
    ratio, work = np.empty(patterns.n_patterns, dtype=np.float32), np.empty(patterns.n_patterns)
    merge.ratio_in_star(JC69, ratio, pool, 0, 1, 0.2, pool, 2)
    values = []
    for length in (0.05, 0.4):
        gain = np.empty(1)
        where = (np.array([3]), np.array([0]), np.array([1]))
        merge.merge_many(JC69, pool, patterns.counts, *where, np.array([[length, 0.2]]), gain, work)
        whole = np.empty(1)
        merge.agreement_many(JC69, pool, np.array([3]), pool, np.array([2]), patterns.counts, whole, work)
        by_ratio = np.log1p(JC69.decay(length) * ratio.astype(float)) @ patterns.counts
        values.append(gain[0] + whole[0] - by_ratio)
    assert values[0] == pytest.approx(values[1], abs=2e-3)


@pytest.mark.parametrize(("n_same", "n_different"), [(300, 0), (300, 3), (200, 60), (40, 20)])
def test_gamma_fits_the_conditional(n_same, n_different):
    """Two sequences: the ratio is 3 where they agree and -1 where they differ."""
    ratio = np.array([3.0, -1.0], dtype=np.float32)
    counts = np.array([n_same, n_different], dtype=np.float64)
    shape, rate = merge.fit_gamma(JC69.beta, ratio, counts.astype(np.float32), 0.1, 10.0)

    def log_density(b):
        same, different = 1 + 3 * JC69.decay(b), 1 - JC69.decay(b)
        return n_same * np.log(same / 4) + (n_different * np.log(different) if n_different else 0.0) - 10 * b

    grid = np.linspace(1e-6, 3, 20001)
    top = max(map(log_density, grid))
    moments = [quad(lambda b, k=k: b**k * np.exp(log_density(b) - top), 1e-12, 3, limit=500)[0] for k in range(3)]
    mean = moments[1] / moments[0]
    variance = moments[2] / moments[0] - mean**2
    assert shape / rate == pytest.approx(mean, rel=0.05)
    assert shape / rate**2 == pytest.approx(variance, rel=0.2)


def test_division_is_exact_on_additive_distances():
    """Quartet ((0:1, 1:3):1, 2:1, 3:2) in tenths: the branches of 0 and 1 are 1/4 and 3/4 of their sum."""
    d = np.array([[0, 4, 3, 4], [4, 0, 5, 6], [3, 5, 0, 3], [4, 6, 3, 0]]) / 10
    children, lengths = np.full((5, 2), -1, dtype=np.int32), np.zeros((5, 2))
    share, weight = np.empty(1), np.empty(1)
    division.divide(np.array([0]), np.array([1]), children, lengths, d, 100.0, share, weight)
    assert share[0] == pytest.approx(0.25)
    children[4], lengths[4] = [0, 1], [0.1, 0.3]
    division.divide(np.array([4]), np.array([2]), children, lengths, d, 100.0, share, weight)
    assert share[0] == pytest.approx(0.5)  # 0.1 above the pair, 0.1 above taxon 2


def test_messages_meet_in_the_likelihood(case):
    """Anywhere in a tree, what comes from below and what comes from outside multiply to the same likelihood."""
    tree, patterns = case
    children, lengths = binary_arrays(tree)
    expected = log_likelihood(tree, patterns)
    pool, logs, n_vertices = guides.tree_messages(JC69, forests.leaves(patterns), patterns.counts, children, lengths)
    for vertex in range(1, n_vertices):
        outside = guides.send(JC69, pool, n_vertices + vertex, lengths[vertex])
        joint = 0.25 * (outside * pool[vertex]).sum(axis=0, dtype=float)
        found = logs[vertex] + logs[n_vertices + vertex] + np.log(joint) @ patterns.counts
        assert found == pytest.approx(expected, abs=1e-2)


def test_keys_of_unseen_pairs_are_symmetric_and_distinct():
    hashes = taxon_hashes(40)
    keys = [ordered.unseen_key(hashes[i], hashes[j]) for i, j in combinations(range(40), 2)]
    assert keys == [ordered.unseen_key(hashes[j], hashes[i]) for i, j in combinations(range(40), 2)]
    assert len(set(keys)) == len(keys)
    assert all(2 <= key < 3 for key in keys)


def test_clades_of_parents(case):
    tree, _ = case
    hashes = taxon_hashes(7)
    out = np.empty((1, tree.n_vertices), dtype=np.uint64)
    support.clades_of_parents(tree.parent[None], hashes, out)
    for vertex, clade in enumerate(tree.clades):
        expected = np.bitwise_xor.reduce([hashes[t] for t in range(7) if clade >> t & 1])
        assert out[0, vertex] == expected


def test_unrooting_keeps_the_tree():
    """((0, 3), ((1, 2), 4)) with the root's two branches joined."""
    children = np.array([[[0, 3], [1, 2], [6, 4], [5, 7]]], dtype=np.int32)
    lengths = np.array([[1, 2, 3, 4, 5, 6, 7, 8, 0]], dtype=float)
    binary, spans = unrooted_arrays(children, lengths)
    parent = np.array([5, 6, 6, 5, 7, 8, 7, 8, -1], dtype=np.int32)
    rooted = Tree(tuple("abcde"), parent, lengths[0])
    above = np.full(8, -1, dtype=np.int32)
    above[7] = 0
    for k, pair in enumerate(binary[0]):
        above[pair] = 5 + k
    unrooted = Tree(tuple("abcde"), above, spans[0])
    assert unrooted.is_binary
    assert unrooted.topology == rooted.topology
    by_split = dict(zip(unrooted.splits[1:], spans[0, 1:]))
    for vertex, split in enumerate(rooted.splits[:-1]):
        expected = lengths[0, vertex] if vertex not in (5, 7) else 14.0
        assert by_split[split] == expected


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("module", [ordered, merge])
def test_a_guided_run_in_plain_python_is_the_same(case, module, rooted, monkeypatch):
    """Mergers (`ordered`) and branch lengths (`merge`) interpreted draw the same particles as compiled."""
    _, patterns = case
    target = csmc.Target("rooted" if rooted else "unrooted")
    effort = csmc.Effort(bootstraps=5, climbs=0, expansions=0, pilots=0)
    reference = csmc.prepare(patterns, target, np.random.default_rng(1), effort=effort)
    proposal = csmc.guided_proposal(patterns, reference, target, floor=0.2)

    def particles():
        return engine.run(patterns, proposal, target, np.random.default_rng(2), 12)

    compiled = particles()
    interpret(monkeypatch, module)
    with np.errstate(over="ignore"):  # hashes are meant to overflow
        plain = particles()
    assert np.array_equal(plain.unrooted[0], compiled.unrooted[0])
    np.testing.assert_allclose(plain.unrooted[1], compiled.unrooted[1], rtol=1e-5)
    assert plain.log_evidence == pytest.approx(compiled.log_evidence, rel=1e-7)
