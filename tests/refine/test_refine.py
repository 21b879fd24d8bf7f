"""The posterior over unrooted binary trees: exact on enumerable cases, restorable, independent of threads, and honest.

With few sites a Gamma of shape two or more vanishes at zero where the posterior does not, and the weights have infinite
variance; the tests against exact values therefore ask for a guard (`Settings.guard`).
"""

import io
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from reference.exact import quadrature, site_likelihoods, tree_evidence, unrooted_topologies
from reference.topologies import all_children, names, tree_of

from vaiphy import refine
from vaiphy.alignment import MISSING, Alignment, SitePatterns, compress
from vaiphy.model import log_n_unrooted
from vaiphy.rearrange import topology_hashes
from vaiphy.refine import Refinement, Settings, State, adapt, sample
from vaiphy.refine.explore import Archive
from vaiphy.refine.sample import Draws
from vaiphy.simulate import random_alignment, random_tree
from vaiphy.topology import subsplit

SMALL = Settings(replicates=2, min_batches=1, max_batches=1, min_ess=1.0, guard=0.1)
EXACT = replace(SMALL, min_batches=5, max_batches=5)


def run(patterns: SitePatterns, settings: Settings = SMALL, seed: int = 1, threads: int = 1) -> Refinement:
    state = refine.initialise(patterns, settings, seed)
    while not state.done:
        state, _ = refine.step(state, threads)
    return refine.result(state)


def patterns_of(sites: np.ndarray) -> SitePatterns:
    return compress(Alignment(names(len(sites)), sites.astype(np.uint8), source="test"))


def tree_like_sites(n_taxa: int, n_sites: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return random_alignment(random_tree(names(n_taxa), rng), n_sites, rng).sites


def simulated(n_taxa: int = 7, n_sites: int = 80, seed: int = 3) -> SitePatterns:
    return patterns_of(tree_like_sites(n_taxa, n_sites, seed))


# --- Against enumeration and exact integration


@pytest.mark.parametrize(
    ("n_taxa", "n_sites", "seed"), [(3, 3, 0), (4, 1, 1), (4, 2, 2), (4, 4, 3), (4, 6, 4), (5, 1, 5), (5, 2, 6), (5, 2, 7)]
)
def test_evidence_and_topologies_are_exact(n_taxa: int, n_sites: int, seed: int) -> None:
    sites = tree_like_sites(n_taxa, n_sites, seed)
    sites[0, 0], sites[1, 0], sites[-1, -1] = 1, 2, MISSING  # not all the same, and not all known
    exact = np.array([tree_evidence(edges, sites) for edges in unrooted_topologies(n_taxa)])
    found = run(patterns_of(sites), EXACT)
    assert found.trust_ok, found.reasons
    assert found.std_error < 0.02
    ratio = np.exp(found.log_evidence - np.log(exact.mean()))
    assert abs(ratio - 1.0) < 4.0 * found.std_error
    for estimate, error in zip(found.replicate_log_evidence, found.replicate_std_error):
        assert abs(np.exp(estimate - np.log(exact.mean())) - 1.0) < 4.0 * error
    probability = exact / exact.sum()
    order = {key: i for i, key in enumerate(topology_hashes(all_children(n_taxa)).tolist())}
    of_draw = np.array([order[key] for key in topology_hashes(found.sample.children).tolist()])[found.sample.topology]
    for t in range(len(exact)):
        hits = of_draw == t
        estimate = found.sample.weights[hits].sum()
        error = np.sqrt(np.square(found.sample.weights * (hits - probability[t])).sum())
        assert abs(estimate - probability[t]) < 4.0 * error + 1e-12


def test_branch_lengths_are_exact() -> None:
    """The posterior mean of u(b) = exp(-4b/3) for a pendant branch of 4 taxa: draws against integration with one more factor."""
    sites = tree_like_sites(4, 3, 9)
    found = run(patterns_of(sites), EXACT)
    trees = found.sample
    total, moment = 0.0, 0.0
    for edges in unrooted_topologies(4):
        pendant = next(e for e, pair in enumerate(edges) if 1 in pair)
        value, first = _evidence_and_moment(edges, sites, pendant)
        total, moment = total + value, moment + first
    draws = np.exp(-4.0 / 3.0 * trees.lengths[:, 1])
    estimate = (trees.weights * draws).sum()
    error = np.sqrt(np.square(trees.weights * (draws - estimate)).sum())
    assert abs(estimate - moment / total) < 4.0 * error


def _evidence_and_moment(edges: tuple[tuple[int, int], ...], sites: np.ndarray, branch: int) -> tuple[float, float]:
    nodes, weights = quadrature(sites.shape[1] + 1, 10.0)
    grid = np.array(list(product(nodes, repeat=len(edges))))
    mass = np.array([np.prod(w) for w in product(weights, repeat=len(edges))])
    terms = mass * site_likelihoods(edges, grid, sites).prod(axis=1)
    return float(terms.sum()), float(terms @ grid[:, branch])


@pytest.mark.parametrize("n_steps", [1, 5, 8])
def test_a_hurried_run_is_still_exact(n_steps: int) -> None:
    """The search may end anywhere: a law learned from few trees is worse, but the weights know it. The guard stays in force."""
    sites = tree_like_sites(5, 2, 6)
    exact = np.mean([tree_evidence(edges, sites) for edges in unrooted_topologies(5)])
    patterns = patterns_of(sites)
    state = refine.initialise(patterns, EXACT, 1)
    with pytest.raises(ValueError, match="no tree"):
        refine.hurried(state)
    for _ in range(n_steps):
        state, _ = refine.step(state)
    state = refine.hurried(state)
    restored = saved_and_restored(state, patterns)
    while not state.done:
        state, _ = refine.step(state)
        restored, _ = refine.step(restored)
    found = refine.result(state)
    assert abs(np.exp(found.log_evidence - np.log(exact)) - 1.0) < 4.0 * found.std_error
    assert same(found, refine.result(restored))


# --- Determinism


def arrays_equal(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return first.keys() == second.keys() and all(np.array_equal(first[key], second[key], equal_nan=True) for key in first)


def same(first: Refinement, second: Refinement) -> bool:
    scalars = all(
        np.array_equal(getattr(first, f.name), getattr(second, f.name), equal_nan=f.name not in ("reasons", "trace"))
        for f in fields(Refinement)
        if f.name != "sample"
    )
    return scalars and arrays_equal(first.sample.to_arrays(), second.sample.to_arrays())


def saved_and_restored(state: State, patterns: SitePatterns) -> State:
    """Through a file, as a checkpoint does."""
    file = io.BytesIO()
    np.savez(file, **state.to_arrays())
    file.seek(0)
    with np.load(file) as stored:
        return refine.from_arrays(dict(stored), patterns, state.settings)


def test_a_restored_state_goes_on_identically() -> None:
    """One run is saved and restored after every step, the other is not: equal to the last bit at every stage."""
    patterns, settings = simulated(), replace(SMALL, min_batches=2, max_batches=2)
    kept = refine.initialise(patterns, settings, 5)
    restored = saved_and_restored(kept, patterns)
    stages = set()
    while not kept.done:
        kept, info = refine.step(kept)
        restored, other = refine.step(restored)
        stages.add(info.stage)
        assert (info.stage, info.message) == (other.stage, other.message)
        assert arrays_equal(kept.to_arrays(), restored.to_arrays())
        restored = saved_and_restored(restored, patterns)
    assert stages == {"explore", "adapt", "sample"}
    assert restored.done
    assert same(refine.result(kept), refine.result(restored))


def test_threads_change_nothing() -> None:
    assert same(run(simulated(), threads=1), run(simulated(), threads=2))
    one = replace(SMALL, replicates=1)
    assert same(run(simulated(), one, threads=1), run(simulated(), one, threads=4))


def test_seeds_matter() -> None:
    assert not same(run(simulated(), seed=1), run(simulated(), seed=2))


def test_order_of_taxa_does_not_matter() -> None:
    """The law is rooted at the first taxon; the answer is not."""
    sites = tree_like_sites(6, 60, 8)
    first = run(patterns_of(sites), EXACT)
    second = run(patterns_of(sites[::-1]), EXACT)
    assert first.log_evidence == pytest.approx(second.log_evidence, abs=4.0 * np.hypot(first.std_error, second.std_error))


# --- Awkward data


def finite(found: Refinement) -> bool:
    return bool(np.isfinite(found.log_evidence) and np.isfinite(found.std_error) and np.isfinite(found.sample.lengths).all())


def test_identical_sequences() -> None:
    """No information on topology: all are equally probable."""
    found = run(patterns_of(np.tile(tree_like_sites(5, 100, 1)[:1], (5, 1))), EXACT)
    assert finite(found)
    by_topology = np.bincount(found.sample.topology, weights=found.sample.weights)
    assert len(by_topology) == 15
    assert by_topology == pytest.approx(np.full(15, 1 / 15), abs=0.02)


def test_columns_without_data() -> None:
    sites = tree_like_sites(5, 60, 2)
    without = run(patterns_of(sites), EXACT)
    column = np.concatenate([sites, np.full((5, 3), MISSING)], axis=1)
    found = run(patterns_of(column), EXACT)
    assert found.log_evidence == pytest.approx(without.log_evidence, abs=4.0 * np.hypot(found.std_error, without.std_error))


def test_a_taxon_without_data() -> None:
    """It divides the branch that it hangs from, whose two parts have independent priors: p(X') = p(X) E[rate TL / (2n - 3)].

    TL is the tree length under the posterior without that taxon.
    """
    sites = tree_like_sites(5, 60, 2)
    without = run(patterns_of(sites), EXACT)
    found = run(patterns_of(np.concatenate([sites, np.full((1, 60), MISSING)])), EXACT)
    relative = 10.0 * without.sample.lengths[:, 1:].sum(axis=1) / 7.0
    expected = without.log_evidence + np.log((without.sample.weights * relative).sum())
    assert found.log_evidence == pytest.approx(expected, abs=4.0 * np.hypot(found.std_error, without.std_error))


def test_saturated_pairs() -> None:
    """Two sequences that differ at every site, and unrelated ones."""
    rng = np.random.default_rng(0)
    sites = 1 << rng.integers(4, size=(5, 60))
    sites[1] = np.where(sites[0] == 8, 1, 2 * sites[0])
    assert finite(run(patterns_of(sites)))


def test_three_taxa() -> None:
    found = run(patterns_of(tree_like_sites(3, 200, 2)))
    assert finite(found)
    assert found.sample.n_topologies == 1


def test_too_few_taxa() -> None:
    with pytest.raises(ValueError, match="at least 3 taxa"):
        refine.initialise(patterns_of(tree_like_sites(3, 5, 0)[:2]), SMALL, 1)


@pytest.mark.parametrize("kind", ["bionj", "random"])
def test_other_starting_trees(kind: str) -> None:
    usual = run(simulated(), EXACT)
    other = run(simulated(), replace(EXACT, starts=(kind,) * 3))
    assert usual.log_evidence == pytest.approx(other.log_evidence, abs=4.0 * np.hypot(usual.std_error, other.std_error))


def test_sampled_trees_are_consistent() -> None:
    found = run(simulated())
    assert found.sample.taxa == names(7)
    assert found.sample.n_samples == found.n_samples == len(found.log_weights) == 2 * sample.BATCH
    assert np.exp(found.sample.log_weights).sum() == pytest.approx(1.0)
    assert found.elbo < found.log_evidence
    tree = found.sample.tree(int(found.sample.weights.argmax()))
    assert tree.topology == tree_of(found.sample.children[found.sample.topology[found.sample.weights.argmax()]]).topology


# --- What is said about trust


def made_up(n: int = 4000, n_replicates: int = 4, seed: int = 0) -> Draws:
    """Good draws for 4 taxa: near-equal weights, topologies in the same proportions in every replicate."""
    rng = np.random.default_rng(seed)
    size = n * n_replicates
    chosen = rng.choice(3, size=size, p=[0.6, 0.3, 0.1])
    log_ratio = rng.normal(-100.0, 0.5, size=size)
    densities = np.log(np.array([0.6, 0.3, 0.1]))[chosen][:, None].repeat(n_replicates, axis=1)
    return Draws(
        all_children(4)[chosen].astype(np.int32),
        rng.gamma(2.0, 0.05, size=(size, 6)),
        log_ratio + densities[:, 0],
        log_ratio + densities[:, 0] - 0.1,
        densities,
        np.repeat(np.arange(n_replicates, dtype=np.int32), n),
        np.zeros(size, dtype=bool),
    )


def judged(draws: Draws, accuracy: float = 0.05, notes: tuple[str, ...] = ()) -> Refinement:
    return sample.summarise(draws, names(4), accuracy, (), notes)


def test_good_draws_are_trusted() -> None:
    found = judged(made_up())
    assert found.trust_ok
    assert found.reasons == ()
    assert found.log_evidence == pytest.approx(-100.0 + 0.125 - log_n_unrooted(4), abs=5 * found.std_error)
    assert found.asdsf < 0.02


def test_disagreeing_replicates_are_reported() -> None:
    draws = made_up()
    shifted = replace(draws, log_ratio=draws.log_ratio - 1.0 * (draws.replicate == 2))
    found = judged(shifted)
    assert not found.trust_ok
    assert any("replicates disagree" in reason for reason in found.reasons)
    assert found.std_error >= 0.2  # the scatter, not the draws' own error
    lowered = judged(shifted, accuracy=1.0)
    assert not lowered.trust_ok


def test_agreement_within_errors_is_not_disagreement() -> None:
    """Noisy replicates that differ as much as their errors say: only the error is too large."""
    draws = made_up(n=60)
    rng = np.random.default_rng(1)
    found = judged(replace(draws, log_ratio=draws.log_ratio + rng.normal(0.0, 1.0, size=240)))
    assert not any("disagree" in reason for reason in found.reasons)
    assert any("above the 0.05 asked for" in reason for reason in found.reasons)


def test_a_heavy_tail_is_reported() -> None:
    draws = made_up()
    tail = np.random.default_rng(3).pareto(0.9, size=len(draws.log_ratio)) + 1.0
    found = judged(replace(draws, log_ratio=draws.log_ratio + np.log(tail)), accuracy=100.0)
    assert found.pareto_k > 0.7
    assert any("Pareto k-hat" in reason for reason in found.reasons)
    assert not found.trust_ok


def test_accuracy_not_reached_is_reported() -> None:
    assert judged(made_up(), accuracy=0.01).trust_ok
    found = judged(made_up(), accuracy=1e-4)
    assert not found.trust_ok
    assert any("above the 0.0001 asked for" in reason for reason in found.reasons)


def test_different_split_frequencies_are_reported() -> None:
    """Replicates on different islands of equal mass: the evidence agrees, the trees do not."""
    draws = made_up(n_replicates=2)
    trees = all_children(4).astype(np.int32)
    found = judged(replace(draws, children=trees[draws.replicate]))
    assert not found.trust_ok
    assert any("split frequencies differ" in reason for reason in found.reasons)


def test_evidence_from_unlearned_splits_is_reported() -> None:
    draws = made_up()
    found = judged(replace(draws, from_floor=np.arange(len(draws.log_ratio)) % 10 == 0))
    assert found.floor_share == pytest.approx(0.1, abs=0.02)
    assert any("had not learned" in reason for reason in found.reasons)


def test_notes_count_against_a_result() -> None:
    found = judged(made_up(), notes=("something else",))
    assert found.reasons == ("something else",)
    assert not found.trust_ok


def test_an_unfinished_run_says_so() -> None:
    state = refine.initialise(simulated(), replace(SMALL, min_batches=2, max_batches=2), 1)
    with pytest.raises(ValueError, match="no final sample"):
        refine.result(state)
    while state.draws is None:
        state, _ = refine.step(state)
    found = refine.result(state)
    assert not found.trust_ok
    assert "ended before" in found.reasons[0]


def test_progress_never_falls() -> None:
    state, seen = refine.initialise(simulated(), SMALL, 1), [0.0]
    while not state.done:
        state, info = refine.step(state)
        seen.append(info.progress)
    assert (np.diff(seen) >= 0.0).all()
    assert seen[-1] == 1.0
    again, info = refine.step(state)
    assert again is state
    assert info.progress == 1.0


def test_trees_that_the_law_neglects_are_expanded_first() -> None:
    """By p w: a probable tree that the law gives too little first, an improbable one behind it however little it is given."""
    trees = all_children(6)
    law = subsplit.fit(trees[:1], np.array([1e6]))
    density = law.log_density(trees)
    fair, probable, hopeless, known = np.argsort(density)[[-1, -2, 0, -3]].tolist()
    archive = Archive(refine.initialise(simulated(6), SMALL, 1).problem)
    archive.children = list(trees[[fair, hopeless, probable, known]])
    # Weights e^0.1, e^17, e^8, e^8; p w would rank the second first, were its weight not more than can matter.
    archive.masses = [density[fair] + 0.1, density[hopeless] + 17.0, density[probable] + 8.0, density[known] + 8.0]
    archive.expanded = {3}
    p_w = [2.0 * archive.masses[i] - density[k] for i, k in ((1, hopeless), (2, probable))]
    assert p_w[0] > p_w[1]
    replicate = adapt.Replicate(0, archive, law=law)
    assert adapt._neglected(replicate, 0.0) == [2, 1]
