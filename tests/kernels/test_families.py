"""Leaf operations of both families against matrix exponentials; likelihoods against slow pruning; slopes against differences."""

import numpy as np
import pytest
from reference import states
from reference.bridges import arrays_of, caterpillar, log_likelihoods
from reference.random_trees import random_binary_tree
from reference.shapes import random_patterns
from reference.slow_models import log_likelihood as slow_log_likelihood
from reference.slow_models import slow_model
from reference.topologies import names, tree_of
from scipy.linalg import expm

from vaiphy import likelihood
from vaiphy.kernels import branch, families
from vaiphy.kernels.layout import PATTERNS, ROW_AT, TABLE_AT, TERM_AT
from vaiphy.models.alphabets import AA, BIN, DNA, MORPH
from vaiphy.models.priors import LengthPrior
from vaiphy.models.substitution import model_of
from vaiphy.target import Part, Target, target_of

EQUAL = [("JC+I+G2", DNA), ("MK+G4", MORPH(3)), ("JC2+ASC", BIN), ("GTR2+I", BIN), ("Poisson+FO+I", AA), ("F81", DNA)]
GENERAL = [("GTR+I+G2", DNA), ("ORDERED+G2+ASC", MORPH(3)), ("LG+I", AA), ("GTR2+FO+G4", BIN), ("HKY", DNA), ("MK+I", MORPH(4))]
each_family = pytest.mark.parametrize("models", [EQUAL, GENERAL], ids=["equal input", "spectral"])


def random_tips(n_taxa, alphabet, n_patterns, rng, soft):
    """Single states, sets of states, missing data; or probabilities. No +ASC pattern is constant for sure."""
    s = alphabet.n_states
    if soft:
        return rng.random((n_taxa, s, n_patterns))
    tips = np.eye(s)[rng.integers(s, size=(n_taxa, n_patterns))].swapaxes(1, 2)
    tips = np.maximum(tips, (rng.random(tips.shape) < 0.3) & (rng.random((n_taxa, 1, n_patterns)) < 0.3))
    return np.where(rng.random((n_taxa, 1, n_patterns)) < 0.1, 1.0, tips)


def parted(models, n_taxa, rng, linked=True):
    """A target of several parts, one of them with soft tips."""
    parts = []
    for k, (text, alphabet) in enumerate(models):
        n_patterns = 3 + 2 * k
        tips = random_tips(n_taxa, alphabet, n_patterns, rng, soft=k == 1)
        counts = rng.integers(1, 5, size=n_patterns).astype(float)
        parts.append(Part(f"part{k}", tips, counts, model_of(text, alphabet)))
    return Target(names(n_taxa), tuple(parts), LengthPrior(), linked)


def moderate(target, n, rng):
    """Parameter points that are not extreme, so that absolute errors mean something."""
    return np.clip(target.draw_parameters(n, rng), -3, 3)


def pieces(target, z, part_rates):
    """Part by part: (states, patterns, generator, frequencies, rates of categories, weights), the invariable class first."""
    at = 0
    for part, rate in zip(target.parts, part_rates):
        model = slow_model(part.model, z[at : at + part.model.n_parameters])
        at += part.model.n_parameters
        extra = [model.p_inv] if part.model.invariable else []
        n_patterns = len(part.counts) + (part.model.n_states if part.model.ascertained else 0)
        rates = np.append(np.zeros(len(extra)), rate * model.rates)
        yield part.model.n_states, n_patterns, model.generator, model.pi, rates, np.append(extra, model.weights)


def as_parts(row, target, z, part_rates, tip):
    """A row of partials (or of a tip) as arrays (categories, states, patterns), one for each part."""
    at, out = 0, []
    for n_states, n_patterns, _, _, rates, _ in pieces(target, z, part_rates):
        c = 1 if tip else len(rates)
        block = row[at : at + c * n_states * n_patterns].reshape(c, n_states, n_patterns)
        out.append(np.repeat(block, len(rates), axis=0) if tip else block)
        at += c * n_states * n_patterns
    assert at == len(row)
    return out


@each_family
def test_partials_over_a_branch_are_a_matrix_exponential(models):
    rng = np.random.default_rng(1)
    target = parted(models, 4, rng)
    z = moderate(target, 3, rng)
    family, data, ones = target.family(z), target.data, np.ones(len(models))
    for point, length, tip, multiply in (
        (0, 0.3, False, False),
        (1, 1e-9, True, False),
        (2, 2.5, True, True),
        (1, 0.05, False, True),
    ):
        source = data.tips[2] if tip else rng.random(data.layout[ROW_AT, -1])
        before = rng.random(data.layout[ROW_AT, -1])
        out = before.copy()
        families.carry(family, point, data, length, source, tip, out, multiply)
        old, sources = (as_parts(x, target, z[point], ones, t) for x, t in ((before, False), (source, tip)))
        found = as_parts(out, target, z[point], ones, False)
        for (_, _, q, _, rates, _), x, y, was in zip(pieces(target, z[point], ones), sources, found, old):
            expected = np.array([expm(q * rate * length) @ x[c] for c, rate in enumerate(rates)])
            assert y == pytest.approx(expected * (was if multiply else 1.0), abs=1e-12)


@each_family
def test_tables_are_the_likelihood_as_a_function_of_a_length(models):
    rng = np.random.default_rng(2)
    target = parted(models, 4, rng)
    z = moderate(target, 2, rng)
    family, data, ones = target.family(z), target.data, np.ones(len(models))
    exponents, table = np.empty(data.layout[TERM_AT, -1]), np.full(data.layout[TABLE_AT, -1], np.nan)
    for point, x_tip, y_tip in ((0, True, True), (1, True, False), (0, False, True), (1, False, False)):
        x = data.tips[0] if x_tip else rng.random(data.layout[ROW_AT, -1])
        y = data.tips[3] if y_tip else rng.random(data.layout[ROW_AT, -1])
        families.fill_exponents(family, point, data, exponents)
        families.fill_table(family, point, data, x, x_tip, y, y_tip, table)
        xs, ys = (as_parts(v, target, z[point], ones, tip) for v, tip in ((x, x_tip), (y, y_tip)))
        for k, (_, n_patterns, q, pi, rates, weights) in enumerate(pieces(target, z[point], ones)):
            rows = table[data.layout[TABLE_AT, k] : data.layout[TABLE_AT, k + 1]].reshape(-1, n_patterns)
            mu = np.append(0.0, exponents[data.layout[TERM_AT, k] : data.layout[TERM_AT, k + 1]])
            for b in (0.0, 0.01, 0.4, 3.0):
                expected = sum(
                    w * np.einsum("a,ap,ab,bp->p", pi, xs[k][c], expm(q * rate * b), ys[k][c])
                    for c, (rate, w) in enumerate(zip(rates, weights))
                )
                assert np.exp(-mu * b) @ rows == pytest.approx(expected, abs=1e-12)


@each_family
@pytest.mark.parametrize("linked", [True, False])
def test_log_likelihoods_are_those_of_slow_pruning(models, linked):
    rng = np.random.default_rng(3)
    for n_taxa in (3, 4, 7):
        target = parted(models, n_taxa, rng, linked)
        z = moderate(target, 4, rng)
        trees = [random_binary_tree(n_taxa, rng, names(n_taxa), rate=2.0) for _ in z]
        children, lengths, tops = (np.concatenate(x) for x in zip(*(arrays_of(tree) for tree in trees)))
        shares = np.array([part.counts.sum() for part in target.parts])
        shares /= shares.sum()
        free = np.exp(np.column_stack([z[:, len(z[0]) - target.n_rates :], np.zeros(len(z))]))
        rates = np.ones((len(z), len(models))) if linked else free / free.sum(axis=1, keepdims=True) / shares
        assert rates @ shares == pytest.approx(1.0)
        expected = np.zeros(len(z))
        for i in range(len(z)):
            at, tree = 0, tree_of(children[i], lengths[i])
            for part, rate in zip(target.parts, rates[i]):
                model = slow_model(part.model, z[i, at : at + part.model.n_parameters])
                at += part.model.n_parameters
                expected[i] += slow_log_likelihood(tree.with_lengths(tree.length * rate), part.tips, part.counts, model)
        assert log_likelihoods(target, z, children, lengths, tops) == pytest.approx(expected, rel=1e-10)


def test_jc69_is_the_likelihood_of_old():
    rng = np.random.default_rng(4)
    patterns = random_patterns(names(40), 300, rng)
    trees = [random_binary_tree(40, rng, names(40), rate) for rate in (1.0, 10.0, 1000.0)]
    for fold in (True, False):
        target = target_of(patterns, "JC", fold=fold)
        for tree in trees:
            assert log_likelihoods(target, np.zeros((1, 0)), *arrays_of(tree))[0] == pytest.approx(
                likelihood.log_likelihood(tree, patterns), rel=1e-12
            )


def test_two_thousand_taxa_in_a_row_do_not_underflow():
    rng = np.random.default_rng(5)
    tree = caterpillar(2000, rng)
    patterns = random_patterns(tree.taxa, 5, rng)
    exact = states.log_likelihood_in_logs(tree, patterns.codes, patterns.counts)
    assert exact < -10_000
    found = log_likelihoods(target_of(patterns, "JC", fold=False), np.zeros((1, 0)), *arrays_of(tree))[0]
    assert found == pytest.approx(exact, rel=1e-10)
    target = target_of(patterns, "HKY+G2")
    z = moderate(target, 1, rng)
    model = slow_model(target.parts[0].model, z[0])
    expected = slow_log_likelihood(tree, patterns.tips.astype(float), patterns.counts, model)
    assert log_likelihoods(target, z, *arrays_of(tree))[0] == pytest.approx(expected, rel=1e-10)


@each_family
def test_slopes_are_differences_of_the_score(models):
    """All parts together, some of them with variable sites only, and each alone."""
    rng = np.random.default_rng(6)
    together = parted(models, 5, rng)
    alone = [Target(together.taxa, (part,), LengthPrior()) for part in together.parts]
    for target in (together, *alone):
        z = moderate(target, 1, rng)
        family, data = target.family(z), target.data
        tree = random_binary_tree(5, rng, names(5), rate=3.0)
        children, lengths, tops = arrays_of(tree)
        exponents, table = np.empty(data.layout[TERM_AT, -1]), np.empty(data.layout[TABLE_AT, -1])
        work = np.empty((3, int(data.layout[PATTERNS].max())))
        rows = np.empty((3, data.layout[ROW_AT, -1]))
        for v in (5, 6, 7):
            for side, c in enumerate(children[0, v - 5].tolist()):
                source = data.tips[c] if c < 5 else rows[c - 5]
                families.carry(family, 0, data, float(lengths[0, c]), source, c < 5, rows[v - 5], side == 1)
        families.fill_exponents(family, 0, data, exponents)
        families.fill_table(family, 0, data, data.tips[0], True, rows[2], False, table)

        def score(b, data=data, table=table, exponents=exponents, work=work):
            return branch.score(data, table, exponents, b, work)

        for b in (0.02, 0.3, 1.5):
            lengths[0, 7] = b
            assert score(b) == pytest.approx(log_likelihoods(target, z, children, lengths, tops)[0], rel=1e-12)
            h = 1e-4 * b
            first, second = branch.slopes(data, table, exponents, b, work)
            assert first == pytest.approx((score(b + h) - score(b - h)) / (2 * h), rel=1e-5, abs=1e-6)
            h = 1e-3 * b
            assert second == pytest.approx((score(b + h) - 2 * score(b) + score(b - h)) / h**2, rel=1e-4, abs=1e-4)
