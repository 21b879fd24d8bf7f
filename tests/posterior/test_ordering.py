"""Resampling in an order in which neighbours share splits: unbiased, and frequencies of splits hardly change."""

import numpy as np
import pytest
from reference.bridges import random_trees

from vaiphy.kernels import rooted
from vaiphy.posterior.ordering import by_splits
from vaiphy.posterior.particles import Particles
from vaiphy.posterior.tree_law import clade_keys
from vaiphy.weights import systematic

N = 8


def some_particles(rng, n):
    """Trees of forty topologies in any order, with weights."""
    children, lengths, tops = random_trees(N, 40, rng)
    which = rng.integers(40, size=n)
    return Particles(children[which], lengths[which], tops[which], np.zeros((n, 0)), np.zeros(n), np.zeros((n, 1)))


def frequencies(particles, weights):
    names = np.empty((len(particles), 2 * N - 2), dtype=np.uint64)
    rooted.vertex_identities(particles.children, particles.tops, clade_keys(N), names)
    found, which = np.unique(names[:, N:], return_inverse=True)
    return np.bincount(which.ravel(), weights=np.repeat(weights, N - 2), minlength=len(found))


def test_frequencies_are_kept_and_right_on_average():
    rng = np.random.default_rng(3)
    particles = some_particles(rng, 600)
    weights = rng.dirichlet(np.full(600, 0.5))
    truth, order = frequencies(particles, weights), by_splits(particles, weights)
    assert np.array_equal(np.sort(order), np.arange(600))
    plain, sorted_ = [], []
    for _ in range(400):
        u = rng.random()
        for way, out in ((np.arange(600), plain), (order, sorted_)):
            chosen = way[systematic(weights[way], 60, u)]
            out.append(frequencies(particles, np.bincount(chosen, minlength=600) / 60))
    plain, sorted_ = np.array(plain), np.array(sorted_)
    error = sorted_.std(axis=0) / np.sqrt(400) + 1e-9
    assert (np.abs(sorted_.mean(axis=0) - truth) <= 4.5 * error).all()
    doubtful = (truth > 0.1) & (truth < 0.9)
    assert doubtful.sum() >= 5
    assert np.square(sorted_ - truth)[:, doubtful].mean() < 0.5 * np.square(plain - truth)[:, doubtful].mean()


@pytest.mark.parametrize("n", [1, 2])
def test_few_or_equal_trees(n):
    particles = some_particles(np.random.default_rng(1), 1).take(np.zeros(n, dtype=np.int64))
    assert sorted(by_splits(particles, np.full(n, 1.0 / n)).tolist()) == list(range(n))
