"""Mixtures: renamed fits are as good as the fit, do not overlap, and reach the most that a mixture can have."""

import numpy as np
import pytest

from vaiphy import vi
from vaiphy.alignment import compress
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.summary.evidence import miselbo
from vaiphy.vi import mixtures


@pytest.fixture(scope="module")
def patterns():
    rng = np.random.default_rng(4)
    return compress(random_alignment(random_tree(taxon_names(9), rng), 400, rng))


def log_weights(components, n_samples=400):
    """Log-weights of draws from each component under the mixture of all."""
    streams = np.random.default_rng(2).spawn(len(components))
    return np.concatenate([f.sample_mixture_log_weights(components, n_samples, rng) for f, rng in zip(components, streams)])


def test_the_bound_of_a_mixture_is_reached(patterns):
    best = mixtures.fit_mixture(patterns, 4, rng=np.random.default_rng(1), restarts=2)
    single, mixed = log_weights(best[:1], 1600), log_weights(best)
    error = np.sqrt(single.var() / len(single) + mixed.var() / len(mixed))
    assert mixed.mean() - single.mean() == pytest.approx(np.log(4), abs=4.0 * error)


def test_no_ensemble_has_more_than_its_mean_and_log_s(patterns):
    fits = [vi.fit(patterns, initial="bootstrap" if k else "bionj", rng=np.random.default_rng(k)) for k in range(3)]
    singles = np.array([log_weights([f], 1200).mean() for f in fits])
    for components in (fits, vi.align(fits)):
        mixed = log_weights(components)
        assert mixed.mean() < singles.mean() + np.log(3) + 4.0 * mixed.std() / np.sqrt(len(mixed)) + 0.05
    assert miselbo(mixtures.renamed(fits[0], 3, np.random.default_rng(1)), 200, 2, rng=np.random.default_rng(1)).mean < 0.0


def test_names_differ_and_can_run_out(patterns):
    fit = vi.fit(patterns, rng=np.random.default_rng(1), iterations=2)
    found = mixtures.renamed(fit, 6, np.random.default_rng(1))
    assert len({f.ancestral.tobytes() for f in found}) == 6
    assert found[0].ancestral.tobytes() == fit.ancestral.tobytes()
    small = compress(random_alignment(random_tree(taxon_names(4), np.random.default_rng(1)), 30, np.random.default_rng(1)))
    with pytest.raises(ValueError, match="fewer than 3 ways"):
        mixtures.renamed(vi.fit(small, rng=np.random.default_rng(1), iterations=2), 3, np.random.default_rng(1))
