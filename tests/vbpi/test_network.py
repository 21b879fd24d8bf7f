"""The network: probabilities of trees sum to one, draws follow them, branches are known by what they are."""

import numpy as np
import pytest
from reference.topologies import subsplits
from scipy.stats import chisquare

from vaiphy.kernels import subsplits as kernels
from vaiphy.search.rearrange import topology_hashes
from vaiphy.vbpi.network import clades_of, draw, network_of, replay, split_numbers


@pytest.fixture
def logits(network):
    return np.random.default_rng(1).normal(size=network.n_entries)


def drawn_trees(network, logits, n_trees=20_000, seed=2):
    return draw(network, *network.probabilities(logits), n_trees, np.random.default_rng(seed))


def test_all_trees_are_drawn_as_often_as_their_probability_says(network, logits):
    found = drawn_trees(network, logits)
    keys, first, times = np.unique(topology_hashes(found.children), return_index=True, return_counts=True)
    probability = np.exp(found.log_q[first])
    assert len(keys) == 15
    assert probability.sum() == pytest.approx(1.0)
    assert chisquare(times, len(found.log_q) * probability).pvalue > 1e-3


def test_probabilities_are_products_of_the_tables(network, logits):
    """An oracle with sets: the conditional probability of each split of a clade beside its sister."""
    found = drawn_trees(network, logits, 500)
    rows = {}
    for children, chosen in zip(found.children, found.chosen):
        for (clade, sister, split), k in zip(_vertices(children), range(3)):
            rows.setdefault((clade, sister), {})[split] = logits[chosen[k]]
    for children, log_q in zip(found.children, found.log_q):
        total = 0.0
        for clade, sister, split in _vertices(children):
            row = rows[clade, sister]
            total += row[split] - np.log(sum(np.exp(value) for value in row.values()))
        assert log_q == pytest.approx(total)


def _vertices(children):
    """Clade, sister (taxon 0 at the top) and split of every internal vertex, in order."""
    n = len(children) + 2
    clades = [frozenset([v]) for v in range(n)]
    sister = {2 * n - 3: frozenset([0])}
    for a, b in children.tolist():
        clades.append(clades[a] | clades[b])
    for a, b in children.tolist():
        sister[a], sister[b] = clades[b], clades[a]
    return [(clades[n + k], sister[n + k], frozenset([clades[a], clades[b]])) for k, (a, b) in enumerate(children.tolist())]


def test_vertices_agree_with_the_oracle_of_the_subsplit_law(trees):
    for children in trees:
        large = [row for row in _vertices(children) if len(row[0]) > 2]
        assert [(clade, split) for clade, _, split in large] == [(clade, split) for clade, _, split in subsplits(children)]


def test_numbers_of_branches(network, logits):
    """Equal numbers mean equal splits, and equal pairs of a split and how one of its sides is divided."""
    found = drawn_trees(network, logits, 300)
    meaning = {}
    for children, numbers in zip(found.children, found.numbers):
        for v, here in _branches(children).items():
            for number, value in zip(numbers[v - 1].tolist(), here):
                assert meaning.setdefault(number, value) == value
    assert len(set(meaning.values())) == len(meaning)
    assert max(meaning) < network.n_numbers
    assert (found.numbers[:, :, 0] == split_numbers(network, found.children)).all()


def _branches(children):
    n = len(children) + 2
    rows = {n + k: row for k, row in enumerate(_vertices(children))}
    clades = {v: frozenset([v]) for v in range(1, n)} | {v: row[0] for v, row in rows.items()}
    found = {}
    for clade, _, split in rows.values():
        for side in split:
            v = next(w for w, other in clades.items() if other == side)
            found[v] = ("up", side, clade - side)
    top = 2 * n - 3
    return {
        v: (
            ("split", clade),
            ("down", clade, rows[v][2]) if v >= n else "nothing below",
            "nothing above" if v == top else found[v],
        )
        for v, clade in clades.items()
    }


def test_a_support_of_few_trees_draws_their_recombinations_only(trees):
    few = network_of(trees[[0, 7]])
    found = drawn_trees(few, np.zeros(few.n_entries), 500)
    allowed = set(clades_of(trees[[0, 7]]).ravel().tolist())
    assert set(clades_of(found.children).ravel().tolist()) <= allowed


def test_gradient_is_the_slope_of_the_probability(network, logits):
    found = drawn_trees(network, logits, 6)
    coefficient = np.random.default_rng(3).normal(size=6)
    gradient = np.zeros(network.n_entries)
    probability, _ = network.probabilities(logits)
    kernels.add_gradient(network.start, network.row_of, probability, found.chosen, coefficient, gradient)

    def value(at):
        return coefficient @ replay(network, network.probabilities(at)[1], found.chosen).log_q

    for e in range(network.n_entries):
        step = np.zeros_like(logits)
        step[e] = 1e-6
        assert gradient[e] == pytest.approx((value(logits + step) - value(logits - step)) / 2e-6, abs=1e-6)
