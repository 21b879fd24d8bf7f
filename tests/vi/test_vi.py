"""Coordinate ascent: the ELBO against brute force and monotone, the IWELBO against exact evidence, and the edges of use."""

from dataclasses import replace
from itertools import permutations, product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.exact import augmented_trees, log_evidence

import vaiphy
from vaiphy import vi
from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.datasets import load
from vaiphy.summary import evidence
from vaiphy.trees.tree import Tree
from vaiphy.vi import steps, updates


def make_patterns(codes):
    codes = np.asarray(codes, dtype=np.uint8)
    return compress(Alignment(tuple(f"t{i}" for i in range(len(codes))), codes))


def random_patterns(n_taxa, n_sites, seed, symbols=(1, 2, 4, 8)):
    """Sequences with some resemblance: each taxon copies an earlier one, with changes."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(symbols, size=n_sites)]
    for _ in range(n_taxa - 1):
        row = rows[rng.integers(len(rows))].copy()
        changed = rng.random(n_sites) < 0.2
        row[changed] = rng.choice(symbols, size=changed.sum())
        rows.append(row)
    return make_patterns(np.stack(rows))


AMBIGUOUS = (1, 2, 4, 8, 15, 15, 5, 14)


def brute_elbo(data, state, n_taxa, rate):
    """ELBO from its definition, with Z and trees enumerated and branch lengths on a fine grid."""
    n_internal = n_taxa - 2
    counts = updates.expected_counts(data, state.ancestral)
    rows = steps.optimal_rows(counts.statistics, rate)
    v = (np.arange(200_000) + 0.5) / 200_000
    length = -0.75 * np.log1p(-v)

    def branch_law(vertex, internal):
        a, d, s1, s2, s3 = rows[vertex, internal]
        log_f = (a - 1) * np.log1p(-v) + s1 * np.log1p(-0.75 * v) + s2 * np.log1p(-0.5 * v) + s3 * np.log1p(-0.25 * v)
        log_f += d * np.log(v) if d > 0 else 0.0
        mass = np.exp(log_f - log_f.max())
        return mass / mass.sum()  # probability of each cell of v

    edge_value = {}
    for vertex in range(n_taxa + n_internal):
        for internal in range(n_internal):
            if vertex == n_taxa + internal:
                continue
            mass = branch_law(vertex, internal)
            # E log p(Y_vertex | Z_internal, b) over sites and states, E log prior - E log q.
            expected = 0.0
            for p, count in enumerate(data.counts):
                for state_i in range(4):
                    q_i = state.ancestral[internal, state_i, p]
                    if vertex < n_taxa:
                        bits = data.tips[vertex, :, p].astype(float)
                        probability = bits.sum() * v / 4 + bits[state_i] * (1 - v)
                        expected += count * q_i * (mass * np.log(probability)).sum()
                    else:
                        for state_j in range(4):
                            q_j = state.ancestral[vertex - n_taxa, state_j, p]
                            probability = v / 4 + (1 - v) * (state_i == state_j)
                            expected += count * q_i * q_j * (mass * np.log(probability)).sum()
            log_prior = log(rate) - rate * length
            log_q = np.log(np.maximum(mass, 1e-300) * 200_000) + np.log(4 / 3 * (1 - v))
            edge_value[vertex, internal] = expected + (mass * (log_prior - log_q)).sum()
    trees = augmented_trees(n_taxa)
    scores = np.array([sum(edge_value[i, j - n_taxa] for i, j in tree) for tree in trees])
    q_tree = np.exp(scores - scores.max())
    q_tree /= q_tree.sum()
    entropy_z = -(data.counts * (state.ancestral * np.log(np.maximum(state.ancestral, 1e-300))).sum(axis=(0, 1))).sum()
    value = (q_tree * (scores - np.log(q_tree) - log(len(trees)))).sum()
    return value + entropy_z - data.counts.sum() * log(4) + data.log_constant


def test_elbo_equals_brute_force_on_four_taxa():
    patterns = make_patterns([[1, 2, 4, 15], [1, 2, 8, 15], [2, 2, 4, 4], [2, 15, 5, 15]])
    chosen = vi.Settings()
    rng = np.random.default_rng(0)
    data = vi.columns(patterns)
    state = vi.initialise(patterns, chosen, initial="random", rng=rng)
    for _ in range(3):
        assert state.elbo == pytest.approx(brute_elbo(data, state, 4, 10.0), abs=2e-4)
        state, _ = vi.step(state, data, chosen, rng=rng)


@settings(max_examples=30, deadline=None)
@given(
    n_taxa=st.integers(3, 8),
    n_sites=st.integers(1, 40),
    seed=st.integers(0, 10_000),
    initial=st.sampled_from(["bionj", "random"]),
    ambiguous=st.booleans(),
    rate=st.sampled_from([2.0, 10.0]),
)
def test_elbo_never_decreases(n_taxa, n_sites, seed, initial, ambiguous, rate):
    patterns = random_patterns(n_taxa, n_sites, seed, AMBIGUOUS if ambiguous else (1, 2, 4, 8))
    result = vi.fit(patterns, initial=initial, iterations=30, tolerance=0.0, prior_rate=rate, rng=np.random.default_rng(seed))
    trace = result.elbo_trace
    assert (np.diff(trace) > -1e-8 * np.abs(trace[:-1])).all()


def test_elbo_is_below_the_exact_evidence():
    codes = np.array([[1, 2], [1, 4], [8, 2], [8, 2]], dtype=np.uint8)
    result = vi.fit(make_patterns(codes), rng=np.random.default_rng(1))
    assert result.elbo < log_evidence(augmented_trees(4), codes)


@pytest.mark.parametrize("tree_law", ["spanning", "slantis"])
@pytest.mark.parametrize("branch_law", ["optimal", "jc", "likely"])
@pytest.mark.parametrize(
    "codes",
    [
        [[1, 1], [1, 2], [1, 1], [2, 1]],
        [[1, 15], [5, 2], [1, 15], [2, 15]],
    ],
)
def test_weights_are_unbiased_for_the_exact_evidence(tree_law, branch_law, codes):
    codes = np.array(codes, dtype=np.uint8)
    exact = log_evidence(augmented_trees(4), codes)
    # Densities of the branch laws may vanish at 0 where the target does not; a share of the prior bounds the weights.
    # The JC sampler hardly knows the prior on two sites, so it needs a larger one.
    result = vi.fit(
        make_patterns(codes),
        tree_law=tree_law,
        branch_law=branch_law,
        iterations=5,
        n_trees=32,
        prior_share=0.05 if branch_law == "optimal" else 0.6,
        rng=np.random.default_rng(3),
    )
    ratios = np.exp(result.sample_log_weights(20_000, np.random.default_rng(4)) - exact)
    assert abs(ratios.mean() - 1.0) < 4 * ratios.std() / np.sqrt(len(ratios))
    assert ratios.std() / np.sqrt(len(ratios)) < 0.05


@pytest.fixture(scope="module")
def five_taxa():
    """Site patterns of five taxa and their exact log evidence."""
    codes = np.array([[1, 2], [1, 2], [4, 2], [4, 1], [4, 1]], dtype=np.uint8)
    return make_patterns(codes), log_evidence(augmented_trees(5), codes)


def fits_from_several_starts(patterns, **options):
    starts = enumerate(["bionj", "random", "random"])
    return [vi.fit(patterns, initial=initial, rng=np.random.default_rng(seed), **options) for seed, initial in starts]


def test_the_mixture_of_fits_is_unbiased_on_five_taxa(five_taxa):
    """A single fit knows one naming of the three internal vertices, and its mean weight is right only after millions of draws;
    the mixture of fits under all their namings has weights with a small variance."""
    patterns, exact = five_taxa
    fits = fits_from_several_starts(patterns, prior_share=0.3, iterations=3)
    named = [
        replace(fit, ancestral=np.ascontiguousarray(fit.ancestral[list(names)]))
        for fit in fits
        for names in permutations(range(3))
    ]
    weights = [fit.sample_mixture_log_weights(named, 3000, np.random.default_rng(k)) for k, fit in enumerate(named)]
    ratios = np.exp(np.concatenate(weights) - exact)
    error = ratios.std() / np.sqrt(len(ratios))
    assert error < 0.02
    assert abs(ratios.mean() - 1.0) < 4 * error


def test_miselbo_of_several_fits(five_taxa):
    patterns, exact = five_taxa
    fits = fits_from_several_starts(patterns, prior_share=0.05)
    single = evidence.iwelbo(fits[0], 2000, 5, rng=np.random.default_rng(5))
    mixed = evidence.miselbo(fits, 2000, 5, rng=np.random.default_rng(5))
    assert mixed.n_samples == 6000
    assert mixed.mean == pytest.approx(exact, abs=0.3)
    assert single.mean < exact + 0.1
    with pytest.raises(ValueError, match="at least one"):
        evidence.miselbo([], rng=np.random.default_rng(0))


def test_a_mixture_of_one_is_the_fit_itself():
    result = vi.fit(random_patterns(6, 30, 1), rng=np.random.default_rng(1))
    alone = result.sample_log_weights(50, np.random.default_rng(2))
    mixed = result.sample_mixture_log_weights([result], 50, np.random.default_rng(2))
    np.testing.assert_allclose(alone, mixed, atol=1e-9)
    twice = result.sample_mixture_log_weights([result, result], 50, np.random.default_rng(2))
    np.testing.assert_allclose(alone, twice, atol=1e-9)


def test_aligned_fits_are_the_same_fits_under_other_names():
    patterns = random_patterns(8, 200, 2)
    fit = vi.fit(patterns, rng=np.random.default_rng(1))
    shuffled = replace(fit, ancestral=np.ascontiguousarray(fit.ancestral[::-1]))
    apart = evidence.miselbo([fit, shuffled], 300, 3, rng=np.random.default_rng(2))
    together = vi.align([fit, shuffled])
    # Vertices with the same states, but for rounding, are interchangeable.
    np.testing.assert_allclose(together[1].ancestral, fit.ancestral, rtol=0.0, atol=1e-9)
    joined = evidence.miselbo(together, 300, 3, rng=np.random.default_rng(2))
    assert joined.pooled - apart.pooled > -1.0
    alone = [evidence.iwelbo(f, 2000, 2, rng=np.random.default_rng(3)).pooled for f in (fit, shuffled)]
    assert alone[0] == pytest.approx(alone[1], abs=1.5)  # renaming changes no bound


def test_density_of_a_draw_is_found_again():
    result = vi.fit(random_patterns(7, 50, 2), prior_share=0.1, rng=np.random.default_rng(1))
    trees = result.sample_trees(40, np.random.default_rng(2))
    np.testing.assert_allclose(result.log_density(trees), trees.log_density, atol=1e-9)
    assert (trees.parents[:, :7] >= 7).all()


def test_threads_change_nothing():
    patterns = random_patterns(9, 60, 3)
    for tree_law in ("spanning", "slantis"):
        first, second = (
            vi.fit(patterns, tree_law=tree_law, iterations=5, threads=t, rng=np.random.default_rng(1)) for t in (1, 2)
        )
        assert np.array_equal(first.ancestral, second.ancestral)
        weights = [f.sample_log_weights(600, np.random.default_rng(2), threads=t) for t, f in ((1, first), (2, second))]
        assert np.array_equal(*weights)


def test_saved_and_restored():
    patterns = random_patterns(6, 40, 4)
    result = vi.fit(patterns, branch_law="jc", jc_prior=(2.0, 1.5), iterations=7, rng=np.random.default_rng(1))
    restored = vi.Fit.from_arrays(patterns, result.to_arrays())
    assert restored.settings == result.settings
    assert restored.elbo == result.elbo
    np.testing.assert_array_equal(restored.elbo_trace, result.elbo_trace)
    same = [f.sample_log_weights(20, np.random.default_rng(3)) for f in (result, restored)]
    np.testing.assert_array_equal(*same)


def test_continuing_equals_running_through():
    patterns = random_patterns(6, 40, 5)
    whole = vi.fit(patterns, iterations=6, tolerance=0.0, rng=np.random.default_rng(1))
    chosen = vi.Settings(tolerance=0.0)
    state = vi.initialise(patterns, chosen, rng=np.random.default_rng(1))
    for _ in range(3):
        state, info = vi.step(state, vi.columns(patterns), chosen, rng=np.random.default_rng(9))
    assert info.iteration == 3
    rest = vi.fit(patterns, iterations=3, tolerance=0.0, state=state, rng=np.random.default_rng(2))
    assert rest.elbo_trace[-1] == whole.elbo_trace[-1]
    assert rest.elbo == rest.elbo_trace[-1]


def test_a_report_can_stop_the_fit():
    seen = []
    result = vi.fit(
        random_patterns(6, 40, 5), report=lambda info: seen.append(info) or len(seen) == 3, tolerance=0.0,
        rng=np.random.default_rng(1),
    )  # fmt: skip
    assert len(seen) == 3
    assert len(result.elbo_trace) == 4


@pytest.mark.parametrize("mix", [False, True])
def test_damped_steps_reach_the_same_optimum(mix):
    patterns = random_patterns(6, 200, 6)
    full = vi.fit(patterns, rng=np.random.default_rng(1))
    damped = vi.fit(patterns, step_size=0.5, mix_probabilities=mix, iterations=400, rng=np.random.default_rng(1))
    assert damped.elbo == pytest.approx(full.elbo, abs=1e-2)


def test_slantis_finds_what_the_exact_law_finds():
    patterns = random_patterns(7, 300, 7)
    exact = vi.fit(patterns, rng=np.random.default_rng(1))
    sampled = vi.fit(patterns, tree_law="slantis", iterations=60, rng=np.random.default_rng(1))
    assert max(sampled.elbo_trace) == pytest.approx(exact.elbo, abs=1.0)
    assert 0 < sampled.best_iteration <= 60
    assert all(1.0 <= info.effective_trees <= 128.0 + 1e-9 for info in sampled.trace[1:])


def test_bootstrap_starts_differ():
    patterns = random_patterns(9, 25, 8)
    starts = [vi.initialise(patterns, vi.Settings(), initial="bootstrap", rng=np.random.default_rng(s)).elbo for s in range(6)]
    assert len(set(starts)) > 1


class TestEdges:
    def test_three_taxa(self):
        codes = np.array([[1, 2], [1, 2], [1, 4]], dtype=np.uint8)
        result = vi.fit(make_patterns(codes), prior_share=0.05, rng=np.random.default_rng(1))
        exact = log_evidence(augmented_trees(3), codes)
        ratios = np.exp(result.sample_log_weights(20_000, np.random.default_rng(2)) - exact)
        assert abs(ratios.mean() - 1.0) < 4 * ratios.std() / np.sqrt(len(ratios))
        assert result.most_probable_tree().topology == frozenset()

    def test_two_taxa_are_too_few(self):
        with pytest.raises(ValueError, match="at least 3"):
            vi.fit(make_patterns([[1], [2]]), rng=np.random.default_rng(1))

    def test_identical_sequences(self):
        result = vi.fit(make_patterns(np.tile([1, 2, 4, 8, 1], (5, 20))), rng=np.random.default_rng(1))
        found = evidence.iwelbo(result, 300, 3, rng=np.random.default_rng(2))
        assert np.isfinite(found.mean)
        assert result.sample_trees(50, np.random.default_rng(3)).lengths.max() < 0.3

    def test_all_missing_columns_change_nothing(self):
        codes = np.array([[1, 1, 2, 4], [1, 2, 2, 4], [2, 2, 2, 4], [2, 2, 1, 4]], dtype=np.uint8)
        empty = np.full((4, 3), 15, dtype=np.uint8)
        one = empty[:, :1].copy()
        one[2] = 8
        plain, padded = (
            vi.fit(make_patterns(c), initial="random", rng=np.random.default_rng(1))
            for c in (codes, np.hstack([codes, empty, one]))
        )
        assert padded.elbo == pytest.approx(plain.elbo - log(4.0), abs=1e-10)

    def test_nothing_observed_at_all(self):
        result = vi.fit(make_patterns(np.full((4, 3), 15)), rng=np.random.default_rng(1))
        assert result.elbo == pytest.approx(0.0, abs=1e-9)
        weights = result.sample_log_weights(100, np.random.default_rng(2))
        np.testing.assert_allclose(weights, 0.0, atol=1e-8)  # the proposal is the prior, and the prior is the posterior

    def test_saturated_pairs(self):
        rng = np.random.default_rng(1)
        result = vi.fit(make_patterns(rng.choice([1, 2, 4, 8], size=(5, 200))), rng=np.random.default_rng(1))
        found = evidence.iwelbo(result, 300, 3, rng=np.random.default_rng(2))
        assert np.isfinite(found.mean)
        assert np.isfinite(result.elbo)

    @pytest.mark.parametrize(
        "options",
        [
            {"tree_law": "best"}, {"branch_law": "gamma"}, {"step_size": 0.0}, {"prior_rate": 1.0}, {"n_trees": 0},
            {"initial": "nj"}, {"prior_share": 1.0},
        ],
    )  # fmt: skip
    def test_bad_settings(self, options):
        with pytest.raises(ValueError, match="|".join(options).replace("_", ".")):
            vi.fit(random_patterns(5, 10, 1), rng=np.random.default_rng(1), **options)

    def test_initial_tree_of_other_taxa(self):
        tree = Tree(("a", "b", "c"), np.array([3, 3, 3, -1]), np.array([0.1, 0.1, 0.1, 0.0]))
        with pytest.raises(ValueError, match="initial tree"):
            vi.fit(random_patterns(5, 10, 1), initial=tree, rng=np.random.default_rng(1))


def test_sweep_equals_a_plain_update():
    """The compiled sweep against Eq. 6 written out with loops over vertices and dictionaries of pulls."""
    patterns = random_patterns(5, 12, 3, AMBIGUOUS)
    data = vi.columns(patterns)
    state = vi.initialise(patterns, vi.Settings(), initial="random", rng=np.random.default_rng(2))
    new, entropy = updates.sweep_ancestral(data, state.ancestral, state.edge_probability, state.sensitivity)
    expected = state.ancestral.copy()
    for i, p in product(range(3), range(len(data.counts))):
        score = np.zeros(4)
        for leaf in range(5):
            size = int(data.sizes[leaf, p])
            if size < 4:
                pull = state.edge_probability[leaf, i] * state.sensitivity[leaf, i, size - 1]
                score += pull * data.tips[leaf, :, p]
        for j in range(3):
            if j != i:
                score += state.edge_probability[5 + j, i] * state.sensitivity[5 + j, i, 0] * expected[j, :, p]
        expected[i, :, p] = np.exp(score - score.max()) / np.exp(score - score.max()).sum()
    np.testing.assert_allclose(new, expected, atol=1e-12)
    assert entropy == pytest.approx(updates.entropy(data, new), rel=1e-10)


def test_counts_equal_a_plain_sum():
    patterns = random_patterns(5, 12, 4, AMBIGUOUS)
    data = vi.columns(patterns)
    z = vi.initialise(patterns, vi.Settings(), initial="random", rng=np.random.default_rng(2)).ancestral
    counts = updates.expected_counts(data, z)
    for vertex, i in product(range(8), range(3)):
        if vertex == 5 + i:
            continue
        expected = np.zeros(4)
        for p, count in enumerate(data.counts):
            if vertex < 5:
                size = int(data.sizes[vertex, p])
                if size == 4:
                    continue
                inside = float(data.tips[vertex, :, p] @ z[i, :, p])
            else:
                size, inside = 1, float(z[vertex - 5, :, p] @ z[i, :, p])
            expected[0] += count * (1 - inside)
            expected[size] += count * inside
        np.testing.assert_allclose(counts.statistics[vertex, i], expected, atol=1e-10)


def test_public_names():
    patterns = random_patterns(5, 20, 1)
    result = vaiphy.fit(patterns, rng=np.random.default_rng(1))
    found = vaiphy.iwelbo(result, n_samples=100, repeats=2, rng=np.random.default_rng(1))
    assert found.mean < 0
    assert isinstance(patterns, SitePatterns)


@pytest.mark.slow
@pytest.mark.parametrize("tree_law", ["spanning", "slantis"])
@pytest.mark.parametrize(
    ("name", "paper"),
    [
        ("DS1", -7490.54), ("DS2", -31203.44), ("DS3", -33911.13), ("DS4", -13700.86), ("DS5", -8464.77),
        ("DS6", -7157.84), ("DS8", -9462.21),
    ],
)  # fmt: skip
def test_the_papers_table_is_reached(name, paper, tree_law):
    """Table 1, column VaiPhy, with its setting: 200 iterations, S = 128, L = 3000; the paper's "DS7" is DS8."""
    patterns = compress(load(name))
    result = vi.fit(patterns, tree_law=tree_law, iterations=200, n_trees=128, rng=np.random.default_rng(1), threads=2)
    found = vaiphy.iwelbo(result, n_samples=3000, repeats=10, rng=np.random.default_rng(2), threads=2)
    assert found.mean > paper
