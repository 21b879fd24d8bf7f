"""Lazy regrafting: scores are exact for the tree that a move gives, and every neighbour is reached."""

import numpy as np
import pytest
from reference.random_trees import random_binary_tree
from reference.topologies import tree_of

from vaiphy.alignment import MISSING, SitePatterns, compress
from vaiphy.kernels import binary, neighbourhood
from vaiphy.likelihood import log_likelihood
from vaiphy.models.jc69 import JC69
from vaiphy.models.simulate import random_alignment, random_tree
from vaiphy.search.climb import climb, neighbours
from vaiphy.search.rearrange import topology_hashes
from vaiphy.target import SimpleTarget
from vaiphy.trees.sample import binary_arrays

RATE = 10.0
EVERYTHING = 1e6


def some_data(n_taxa: int, seed: int, n_sites: int = 60) -> tuple[np.ndarray, np.ndarray, SitePatterns]:
    """A random tree, and data from another one on the same taxa (some of them missing)."""
    rng = np.random.default_rng(seed)
    tree = random_binary_tree(n_taxa, rng, tuple(f"t{i}" for i in range(n_taxa)))
    alignment = random_alignment(random_binary_tree(n_taxa, rng, tree.taxa), n_sites, rng, missing=0.1)
    return *binary_arrays(tree), compress(alignment)


def height(children: np.ndarray, lengths: np.ndarray, patterns: SitePatterns) -> float:
    """Log-likelihood plus log prior of the lengths."""
    n_branches = len(lengths) - 1
    return log_likelihood(tree_of(children, lengths), patterns) + n_branches * np.log(RATE) - RATE * lengths[1:].sum()


def screened(
    children: np.ndarray, lengths: np.ndarray, patterns: SitePatterns, margin: float, most: int = 10_000, radius: int = 1000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Moves, scores and spans of one tree's neighbourhood."""
    moves, scores, spans = np.empty((most, 4), dtype=np.int32), np.empty(most), np.empty((most, 3))
    data = (patterns.tips, patterns.counts, 0.75 * RATE)
    kept = neighbourhood.screen(JC69, children, lengths, *data, margin, radius, most, moves, scores, spans)
    assert kept <= most
    return moves[:kept], scores[:kept], spans[:kept]


def moved(children: np.ndarray, lengths: np.ndarray, moves: np.ndarray, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    trees, starts = np.empty((len(moves), *children.shape), dtype=np.int32), np.zeros((len(moves), len(lengths)))
    binary.apply_moves(children, lengths, moves, spans, trees, starts)
    return trees, starts


@pytest.mark.parametrize("n_taxa", [4, 5, 6, 7, 8])
@pytest.mark.parametrize("margin", [3.0, EVERYTHING])
def test_scores_are_exact(n_taxa: int, margin: float) -> None:
    for seed in range(3):
        children, lengths, patterns = some_data(n_taxa, seed)
        moves, scores, spans = screened(children, lengths, patterns, margin)
        assert (scores > -margin).all()
        trees, starts = moved(children, lengths, moves, spans)
        before = height(children, lengths, patterns)
        for tree, start, score in zip(trees, starts, scores):
            assert sorted(tree.ravel().tolist()) == list(range(1, 2 * n_taxa - 3))
            assert (tree < np.arange(n_taxa, 2 * n_taxa - 2)[:, None]).all()
            assert height(tree, start, patterns) - before == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("n_taxa", [4, 5, 6, 7, 8, 12])
def test_all_neighbours_are_reached(n_taxa: int) -> None:
    """2(n - 3)(2n - 7) topologies are one regrafting away (Allen & Steel 2001); none is the tree itself."""
    children, lengths, patterns = some_data(n_taxa, 7, n_sites=5)
    trees, _ = moved(children, lengths, *screened(children, lengths, patterns, EVERYTHING)[::2])
    topologies = {tree_of(tree).topology for tree in trees}
    assert len(topologies) == 2 * (n_taxa - 3) * (2 * n_taxa - 7)
    assert tree_of(children).topology not in topologies


@pytest.mark.parametrize("n_taxa", [5, 8, 12])
def test_radius_one_is_nni(n_taxa: int) -> None:
    """The 2(n - 3) trees of nearest-neighbour interchange lie one branch away; a wider radius reaches no fewer trees."""
    children, lengths, patterns = some_data(n_taxa, 7, n_sites=5)
    reached: set[frozenset] = set()
    for radius in range(1, n_taxa):
        moves, _, spans = screened(children, lengths, patterns, EVERYTHING, radius=radius)
        found = {tree_of(tree).topology for tree in moved(children, lengths, moves, spans)[0]}
        assert found >= reached
        reached = found
        if radius == 1:
            assert len(found) == 2 * (n_taxa - 3)
            assert all(len(topology & tree_of(children).topology) == n_taxa - 4 for topology in found)
    assert len(reached) == 2 * (n_taxa - 3) * (2 * n_taxa - 7)


def test_three_branches_are_near_their_optimum() -> None:
    """Hanging the part into the middle of the branch instead, the branch as long, is no better."""
    children, lengths, patterns = some_data(7, 3)
    moves, scores, spans = screened(children, lengths, patterns, 8.0)
    assert len(moves)
    target = spans[:, 1] + spans[:, 2]
    halves = np.column_stack([spans[:, 0], target / 2, target / 2])
    trees, starts = moved(children, lengths, moves, halves)
    before = height(children, lengths, patterns)
    plain = np.array([height(tree, start, patterns) for tree, start in zip(trees, starts)]) - before
    assert (scores >= plain - 0.05).all()


def test_good_places_near_the_end_of_a_long_branch_are_not_missed() -> None:
    """Screened narrowly, a tree has the same good neighbours as when every move is optimised.

    Branches are long here, so that hanging a part into the middle of one, as the screen first does, costs far more than the
    margin even where its right place near an end is as good as the tree itself.
    """
    n_found = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = random_tree(tuple(f"t{i}" for i in range(16)), rng, rate=6.0)
        patterns = compress(random_alignment(truth, 1000, rng))
        children, lengths = climb(SimpleTarget(patterns, JC69, RATE), *binary_arrays(truth))
        found = []
        for margin in (8.0, EVERYTHING):
            moves, scores, spans = screened(children, lengths, patterns, margin)
            good = scores > -8.0
            found.append(set(topology_hashes(moved(children, lengths, moves[good], spans[good])[0]).tolist()))
        assert found[0] == found[1]
        n_found += len(found[1])
    assert n_found >= 12


def test_output_of_limited_size() -> None:
    children, lengths, patterns = some_data(8, 1)
    _, scores, _ = screened(children, lengths, patterns, EVERYTHING)
    trees, _, best = neighbours(SimpleTarget(patterns, JC69, RATE), children, lengths, EVERYTHING, 5)
    assert len(trees) == 5
    assert best[0] == scores.max()
    assert (np.diff(best) <= 0).all()
    assert len(np.unique(topology_hashes(trees))) == 5
    assert len(screened(children, lengths, patterns, EVERYTHING, most=7)[0]) == 7


@pytest.mark.parametrize("n_taxa", [5, 8, 15, 30])
def test_moves_made_together(n_taxa: int) -> None:
    for seed in range(5):
        children, lengths, patterns = some_data(n_taxa, seed)
        moves, scores, spans = screened(children, lengths, patterns, EVERYTHING)
        best = np.random.default_rng(seed).permutation(len(scores)) if seed % 2 else np.argsort(-scores)
        tree, start = np.empty_like(children), np.zeros_like(lengths)
        n_made = binary.apply_together(children, lengths, moves[best], spans[best], tree, start)
        assert n_made >= 1
        assert sorted(tree.ravel().tolist()) == list(range(1, 2 * n_taxa - 3))
        assert (tree < np.arange(n_taxa, 2 * n_taxa - 2)[:, None]).all()
        assert (start[1:] > 0).all()
        # One move alone is that move.
        binary.apply_together(children, lengths, moves[best[:1]], spans[best[:1]], tree, start)
        trees, starts = moved(children, lengths, moves[best[:1]], spans[best[:1]])
        assert topology_hashes(tree[None])[0] == topology_hashes(trees)[0]
        assert sorted(start) == pytest.approx(sorted(starts[0]))


def test_climbing_finds_the_true_tree() -> None:
    """Much data, a clear tree: the climb ends there from any start."""
    rng = np.random.default_rng(0)
    truth = random_binary_tree(10, rng, tuple(f"t{i}" for i in range(10)))
    truth = truth.with_lengths(np.maximum(truth.length, 0.05))
    patterns = compress(random_alignment(truth, 2000, rng))
    for _ in range(3):
        children, lengths = binary_arrays(random_binary_tree(10, rng, truth.taxa))
        found, _ = climb(SimpleTarget(patterns, JC69, RATE), children, lengths)
        assert tree_of(found).topology == truth.topology


def test_missing_everywhere() -> None:
    """Taxa without data: all moves of such a taxon score by the prior alone, without a warning or NaN."""
    children, lengths, patterns = some_data(6, 2)
    codes = patterns.codes.copy()
    codes[2] = MISSING
    empty = SitePatterns(patterns.taxa, codes, patterns.counts, patterns.site_pattern)
    _, scores, _ = screened(children, lengths, empty, EVERYTHING)
    assert np.isfinite(scores).all()
