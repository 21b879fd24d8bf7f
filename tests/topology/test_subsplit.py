"""The subsplit law: normalised, positive everywhere, equal to a slow oracle, and sampled as it says."""

import numpy as np
import pytest
from reference.random_trees import random_binary_tree
from reference.topologies import SlowSubsplitLaw, all_children
from scipy.stats import chi2

from vaiphy.rearrange import topology_hashes
from vaiphy.topology import subsplit
from vaiphy.topology.subsplit import SubsplitLaw
from vaiphy.treesample import binary_arrays

#: floor, sharing, recombined: all sources together, and each nearly alone.
OPTIONS = [(0.05, 5.0, 0.2), (1e-4, 0.0, 0.0), (0.3, 1e6, 0.0), (1e-4, 1e6, 0.5), (1e-3, 500.0, 0.02)]


def some_trees(n_taxa: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A few of all topologies, with weights; one has none."""
    rng = np.random.default_rng(seed)
    trees = all_children(n_taxa)
    chosen = rng.choice(len(trees), size=min(len(trees), 6), replace=False)
    weights = rng.exponential(10.0, size=len(chosen)) + 1.0
    weights[-1] = 0.0
    return trees[chosen], weights


@pytest.mark.parametrize("n_taxa", [3, 4, 5, 6, 7])
@pytest.mark.parametrize(("floor", "sharing", "recombined"), OPTIONS)
def test_sums_to_one_and_equals_the_oracle(n_taxa: int, floor: float, sharing: float, recombined: float) -> None:
    for seed in range(3 if n_taxa < 7 else 1):
        trees, weights = some_trees(n_taxa, seed)
        law = subsplit.fit(trees, weights, floor, sharing, recombined)
        everything = all_children(n_taxa)
        density = np.exp(law.log_density(everything))
        assert density.sum() == pytest.approx(1.0, abs=1e-12)
        assert density.min() > 0.0
        slow = SlowSubsplitLaw(trees, weights, floor, sharing, recombined)
        assert density == pytest.approx(np.array([slow.density(tree) for tree in everything]), rel=1e-10)


@pytest.mark.parametrize("n_taxa", [4, 5, 6])
@pytest.mark.parametrize(("floor", "sharing", "recombined"), OPTIONS[:3])
def test_sampled_frequencies(n_taxa: int, floor: float, sharing: float, recombined: float) -> None:
    n_draws = 40_000
    law = subsplit.fit(*some_trees(n_taxa, 1), floor, sharing, recombined)
    everything = all_children(n_taxa)
    order = {key: i for i, key in enumerate(topology_hashes(everything).tolist())}
    assert len(order) == len(everything)
    drawn, log_q, n_floor = law.sample(n_draws, np.random.default_rng(2))
    found = np.bincount([order[key] for key in topology_hashes(drawn).tolist()], minlength=len(everything))
    assert log_q == pytest.approx(law.log_density(drawn), abs=1e-12)
    assert (n_floor >= 0).all()
    expected = n_draws * np.exp(law.log_density(everything))
    rare = expected < 8.0
    found = np.append(found[~rare], found[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    if expected[-1] < 8.0:
        assert found[-1] <= expected[-1] + 5.0 * np.sqrt(expected[-1]) + 3.0
        found, expected = found[:-1], expected[:-1]
    statistic = (np.square(found - expected) / expected).sum()
    assert statistic < chi2.isf(1e-4, max(1, len(expected) - 1))


def test_floor_draws_are_counted() -> None:
    """A clade is split by the floor with the floor's probability; a clade never seen always is."""
    trees, weights = some_trees(4, 0)
    law = subsplit.fit(trees[:1], weights[:1], floor=0.2)
    _, _, n_floor = law.sample(20_000, np.random.default_rng(0))
    assert (n_floor > 0).mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / 20_000))


@pytest.mark.parametrize("n_taxa", [63, 64, 65, 130])
def test_many_taxa(n_taxa: int) -> None:
    """Clades of more than one 64-bit word: draws are valid trees, with the density that `log_density` gives them."""
    rng = np.random.default_rng(n_taxa)
    trees = np.array([binary_arrays(random_binary_tree(n_taxa, rng))[0] for _ in range(5)])
    weights = rng.exponential(size=5)
    law = subsplit.fit(trees, weights, floor=0.01, sharing=1.0, recombined=0.1)
    drawn, log_q, n_floor = law.sample(200, rng)
    assert log_q == pytest.approx(law.log_density(drawn), abs=1e-9)
    assert (n_floor > 0).any()
    above = np.arange(n_taxa, 2 * n_taxa - 2)
    assert (drawn < above[None, :, None]).all()
    for tree in drawn:
        assert sorted(tree.ravel().tolist()) == list(range(1, 2 * n_taxa - 3))
    slow = SlowSubsplitLaw(trees, weights, 0.01, 1.0, 0.1)
    some = np.concatenate([drawn[:3], trees])
    assert law.log_density(some) == pytest.approx(np.log([slow.density(tree) for tree in some]), rel=1e-9)


def test_density_ignores_numbering() -> None:
    rng = np.random.default_rng(5)
    law = subsplit.fit(*some_trees(6, 3), floor=0.01)
    trees = all_children(6)
    turned = np.where(rng.random((*trees.shape[:2], 1)) < 0.5, trees, trees[:, :, ::-1])
    assert np.array_equal(law.log_density(trees), law.log_density(np.ascontiguousarray(turned)))


def test_arrays_round_trip() -> None:
    law = subsplit.fit(*some_trees(6, 4), floor=0.02, sharing=3.0, recombined=0.1)
    back = SubsplitLaw.from_arrays({name: array.copy() for name, array in law.to_arrays().items()})
    assert np.array_equal(law.log_density(all_children(6)), back.log_density(all_children(6)))
    first, second = (x.sample(500, np.random.default_rng(1)) for x in (law, back))
    assert all(np.array_equal(x, y) for x, y in zip(first, second))
