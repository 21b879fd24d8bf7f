"""Summaries of weighted trees against slow counting, DendroPy and hand-made cases."""

import time
from collections import Counter

import dendropy
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.random_trees import random_binary_tree
from reference.shapes import branch_lengths

from vaiphy.cli import main
from vaiphy.summary import consensus, posterior
from vaiphy.trees import splits
from vaiphy.trees.sample import TreeSample, binary_arrays
from vaiphy.trees.tree import Tree, TreeError, from_splits, with_taxa
from vaiphy.weights import systematic


def make_sample(n, n_trees, samples, seed, replicates=4):
    """Weighted trees on few topologies that share splits."""
    rng = np.random.default_rng(seed)
    taxa = tuple(f"t{i + 1}" for i in range(n))
    children = np.array([binary_arrays(random_binary_tree(n, rng, taxa))[0] for _ in range(n_trees)])
    weights = rng.exponential(size=samples)
    return TreeSample(
        taxa,
        children,
        rng.integers(n_trees, size=samples).astype(np.int32),
        rng.exponential(0.1, size=(samples, 2 * n - 2)),
        np.log(weights / weights.sum()),
        (np.arange(samples) % replicates).astype(np.int32),
    )


@settings(max_examples=20)
@given(st.integers(4, 9), st.integers(1, 12), st.integers(0, 1000))
def test_support_and_lengths_equal_slow_counting(n, n_trees, seed):
    sample = make_sample(n, n_trees, 30, seed)
    table = posterior.summarise(sample).splits
    support, total = Counter(), Counter()
    for i in range(sample.n_samples):
        tree = sample.tree(i)
        for vertex, split in enumerate(tree.splits):
            if split:
                support[split] += sample.weights[i]
                total[split] += sample.weights[i] * tree.length[vertex]
    assert dict(zip(table.splits, table.support)) == pytest.approx(dict(support))
    assert dict(zip(table.splits, table.mean)) == pytest.approx({s: total[s] / support[s] for s in support})
    assert table.n_trivial == n
    assert table.support[:n] == pytest.approx(1)
    assert [table.members(i) for i in range(1, n)] == [(name,) for name in sample.taxa[1:]]
    assert (np.diff(table.support[n:]) <= 1e-12).all()


@settings(max_examples=20)
@given(st.integers(4, 9), st.integers(0, 1000))
def test_own_arrays_and_trees_give_the_same_summary(n, seed):
    sample = make_sample(n, 5, 25, seed)
    rng = np.random.default_rng(seed)
    trees = []
    for i in range(25):
        tree = sample.tree(i)
        tree = tree.rerooted(int(rng.integers(tree.n_vertices)))
        order = tuple(rng.permutation(sample.taxa).tolist()) if i else sample.taxa
        trees.append(with_taxa(tree, order))
    first = posterior.summarise(sample)
    second = posterior.summarise(splits.from_trees(trees, sample.weights.tolist(), sample.replicate.tolist()))
    assert first.splits.splits[:n] == second.splits.splits[:n]
    rows = [second.splits.row[s] for s in first.splits.splits]
    for name in ("support", "mean", "median", "lower", "upper", "hpd_lower", "hpd_upper", "deviation"):
        assert getattr(first.splits, name) == pytest.approx(getattr(second.splits, name)[rows])
    assert first.asdsf == pytest.approx(second.asdsf)
    assert first.tree_length == pytest.approx(second.tree_length)
    assert first.extended.topology == second.extended.topology
    assert dict(zip(first.topologies.topologies, first.topologies.probability)) == pytest.approx(
        dict(zip(second.topologies.topologies, second.topologies.probability))
    )


def test_more_than_64_taxa_need_more_than_one_word():
    sample = make_sample(150, 4, 12, 5)
    table = posterior.summarise(sample).splits
    trees = splits.from_trees([sample.tree(i) for i in range(12)], sample.weights.tolist())
    slow = dict(zip(trees.splits, trees.support()))
    assert dict(zip(table.splits, table.support)) == pytest.approx(slow)


def test_topologies_written_in_two_ways_are_one():
    tree = random_binary_tree(5, np.random.default_rng(3))
    children, lengths = binary_arrays(tree)
    swapped = children[:, ::-1].copy()
    sample = TreeSample(
        tree.taxa,
        np.array([children, swapped]),
        np.array([0, 1], np.int32),
        np.array([lengths, lengths]),
        np.log([0.5, 0.5]),
        np.zeros(2, np.int32),
    )
    summary = posterior.summarise(sample)
    assert len(summary.topologies) == 1
    assert dict(zip(summary.splits.splits, summary.splits.mean)) == pytest.approx(branch_lengths(tree))


def test_consensus_agrees_with_dendropy():
    sample = make_sample(8, 3, 60, 11)
    chosen = sample.select(systematic(sample.weights, 200, 0.5))
    text = "\n".join(_newick(chosen.tree(i)) for i in range(200))
    trees = dendropy.TreeList.get(data=text, schema="newick", rooting="force-unrooted")
    theirs = trees.consensus(min_freq=0.5000001)
    theirs.encode_bipartitions()
    namespace = trees.taxon_namespace
    expected = set()
    for bipartition in theirs.bipartition_encoding:
        names = {taxon.label for taxon in bipartition.leafset_taxa(namespace)}
        side = names if "t1" not in names else set(chosen.taxa) - names
        split = sum(1 << chosen.taxa.index(name) for name in side)
        if 1 < split.bit_count() < 7:
            expected.add(split)
    assert posterior.summarise(chosen).majority.topology == expected


def _newick(tree, vertex=None):
    vertex = tree.root if vertex is None else vertex
    if vertex == tree.root and vertex < tree.n_taxa:
        tree = tree.rerooted(int(tree.children[vertex][0]))
        return _newick(tree)
    below = ",".join(_newick(tree, v) for v in tree.children[vertex])
    text = f"({below})" if below else tree.taxa[vertex]
    return text + (";" if vertex == tree.root else f":{tree.length[vertex]}")


TAXA = ("a", "b", "c", "d", "e")
CD, DE, CDE, BC = 0b01100, 0b11000, 0b11100, 0b00110


def tree_of(*splits, length=1.0):
    trivial = [0b11110, *(1 << i for i in range(1, 5))]
    return from_splits(TAXA, dict.fromkeys((*splits, *trivial), length))


def test_extended_consensus_adds_what_fits():
    trees = [tree_of(CDE, DE)] * 4 + [tree_of(CDE, CD)] * 3 + [tree_of(BC, DE)] * 3
    summary = posterior.summarise(splits.from_trees(trees))
    assert summary.majority.topology == {CDE, DE}
    trees = [tree_of(CDE, DE)] * 4 + [tree_of(CDE, CD)] * 4 + [tree_of(BC)] * 2
    summary = posterior.summarise(splits.from_trees(trees))
    assert summary.majority.topology == {CDE}
    assert summary.extended.topology == {CDE, min(CD, DE)}
    assert sorted(summary.majority.support[~np.isnan(summary.majority.support)]) == pytest.approx([0.8])


def test_an_exact_half_is_not_a_majority():
    summary = posterior.summarise(splits.from_trees([tree_of(CD), tree_of(BC)]))
    assert summary.majority.topology == set()


def test_maximum_credibility_does_not_favour_fewer_splits():
    trees = [tree_of(CDE, DE)] * 5 + [tree_of()] * 5
    assert posterior.summarise(splits.from_trees(trees)).credible.topology == {CDE, DE}


def test_credible_sets_count_topologies():
    trees = [tree_of(CDE, DE)] * 6 + [tree_of(CDE, CD)] * 3 + [tree_of(BC, DE)]
    table = posterior.summarise(splits.from_trees(trees)).topologies
    assert table.probability == pytest.approx([0.6, 0.3, 0.1])
    assert [table.credible_set(level) for level in (0.5, 0.6, 0.9, 0.95, 1.0)] == [1, 1, 2, 3, 3]


def test_replicates_are_judged_by_their_own_weights():
    taxa = ("a", "b", "c", "d")
    children = np.array([[[2, 3], [1, 4]], [[1, 2], [3, 4]]], dtype=np.int32)
    sample = TreeSample(
        taxa,
        children,
        np.array([0, 1, 0, 1], np.int32),
        np.ones((4, 6)),
        np.log([0.1, 0.4, 0.1, 0.4]),
        np.array([0, 0, 1, 1], np.int32),
        np.log([3.0, 1.0, 7.0, 7.0]),
    )
    table = posterior.summarise(sample).splits
    row = table.row[0b1100]
    assert table.support[row] == pytest.approx(0.2)
    assert table.replicate_support[:, row] == pytest.approx([0.75, 0.5])
    assert sample.of_replicate(0).weights == pytest.approx([0.75, 0.25])


def test_joined_samples_keep_their_own_supports():
    first = splits.from_trees([tree_of(CDE, DE)] * 3 + [tree_of(CDE, CD)])
    second = splits.from_trees([tree_of(BC, DE)])
    both = splits.joined([first, second])
    rows = dict(zip(both.splits, both.replicate_support().T.tolist()))
    assert rows[CDE] == pytest.approx([1, 0])
    assert rows[DE] == pytest.approx([0.75, 1])
    assert dict(zip(both.splits, both.support()))[DE] == pytest.approx(0.875)
    assert both.tree(4).topology == {BC, DE}


def test_quantiles_and_intervals_of_weighted_values():
    values, ones = np.arange(1.0, 101.0), np.full(100, 0.01)
    assert posterior.weighted_quantiles(values, ones, np.array([0.5])) == pytest.approx(50.5)
    doubled = posterior.weighted_quantiles(np.repeat(values, 2), np.full(200, 0.005), np.array([0.1, 0.9]))
    assert posterior.weighted_quantiles(values, ones, np.array([0.1, 0.9])) == pytest.approx(doubled, abs=0.51)
    rng = np.random.default_rng(1)
    draws = np.sort(rng.exponential(size=200_000))
    low, high = posterior.shortest_interval(draws, np.ones(len(draws)))
    assert low < 0.001
    assert high == pytest.approx(-np.log(0.05), rel=0.02)
    tilted = rng.normal(size=100_000)
    weight = np.exp(tilted)  # N(0, 1) tilted by exp(x) is N(1, 1)
    order = np.argsort(tilted)
    found = posterior.weighted_quantiles(tilted[order], weight[order], np.array([0.025, 0.5, 0.975]))
    assert found == pytest.approx([1 - 1.96, 1, 1 + 1.96], abs=0.05)


def test_trees_without_lengths_have_supports_but_no_lengths():
    summary = posterior.summarise(splits.from_trees([tree_of(CDE, DE, length=np.nan)]))
    assert np.isnan(summary.splits.mean).all()
    assert np.isnan(summary.tree_length[0])
    assert summary.splits.support == pytest.approx(1)


def test_a_root_of_degree_two_is_no_split_of_its_own():
    # ((a:1,b:1):0.25,(c:1,d:1):0.5); as a rooted program writes it
    rooted = Tree(("a", "b", "c", "d"), np.array([4, 4, 5, 5, 6, 6, -1]), np.array([1, 1, 1, 1, 0.25, 0.5, 0]))
    assert branch_lengths(rooted)[0b1100] == pytest.approx(0.75)
    assert len(branch_lengths(rooted)) == 5


def test_different_taxa_are_refused():
    other = Tree(("a", "b", "c", "x"), np.array([4, 4, 4, 4, -1]), np.ones(5))
    first = Tree(("a", "b", "c", "d"), np.array([4, 4, 4, 4, -1]), np.ones(5))
    with pytest.raises(TreeError, match="not on the same taxa"):
        splits.from_trees([first, other])
    with pytest.raises(TreeError, match="no trees"):
        splits.from_trees([])


def test_rooting_at_an_outgroup():
    tree = tree_of(CDE, DE)
    rooted = consensus.rooted_at(tree, ["e"])
    assert rooted.topology == tree.topology
    assert rooted.root == rooted.parent[4]
    both = consensus.rooted_at(tree, ["d", "e"])
    assert any(both.clades[v] == DE for v in both.children[both.root])
    with_first = consensus.rooted_at(tree, ["a", "b"])
    assert any(with_first.clades[v] == 0b00011 for v in with_first.children[with_first.root])
    with pytest.raises(TreeError, match="not a group"):
        consensus.rooted_at(tree, ["a", "e"])
    with pytest.raises(TreeError, match="'zebra' is not among the taxa"):
        consensus.rooted_at(tree, ["zebra"])


@given(st.integers(4, 20), st.integers(0, 1000))
def test_names_and_ladders_leave_the_tree_alone(n, seed):
    tree = random_binary_tree(n, np.random.default_rng(seed))
    again = consensus.ladderised(consensus.named(tree))
    assert branch_lengths(again) == pytest.approx(branch_lengths(tree))
    assert len({again.name(v) for v in range(again.n_vertices)}) == again.n_vertices
    assert again.name(again.root) == "Node1"


def test_twenty_thousand_trees_of_sixty_taxa_take_seconds():
    import time

    rng = np.random.default_rng(2)
    base = random_binary_tree(60, rng)
    children = np.array([binary_arrays(base)[0]] * 3000)
    for row in children:  # swap two subtrees that sit beside each other, a few times: many related topologies
        for _ in range(3):
            k = int(rng.integers(10, 58))
            a, b = row[k]
            if a >= 60:
                row[k, 1], row[a - 60, 0] = row[a - 60, 0], b
                if row[a - 60].max() >= a:
                    row[k, 1], row[a - 60, 0] = b, row[k, 1]
    weights = rng.exponential(size=20_000)
    sample = TreeSample(
        base.taxa,
        children,
        rng.integers(3000, size=20_000).astype(np.int32),
        rng.exponential(0.1, (20_000, 118)),
        np.log(weights / weights.sum()),
        np.zeros(20_000, np.int32),
    )
    start = time.process_time()
    summary = posterior.summarise(sample)
    assert summary.n_samples == 20_000
    assert time.process_time() - start < 6  # about 1.5 s on an idle core


def test_a_large_caterpillar_is_summarised_in_linear_time(tmp_path):
    n = 8000
    inside = "".join(f"):0.1,t{k}:0.1" for k in range(2, n - 1))
    (tmp_path / "caterpillar.nwk").write_text("(" * (n - 2) + f"t0:0.1,t1:0.1{inside},t{n - 1}:0.1);\n")
    began = time.process_time()
    result = CliRunner().invoke(main, ["summarise", str(tmp_path / "caterpillar.nwk")], catch_exceptions=False)
    assert time.process_time() - began < 15  # two seconds; a minute and more where something is quadratic
    assert f"1 tree on {n} taxa" in result.output
    assert "too large to be drawn" in result.output
