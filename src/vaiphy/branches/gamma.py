"""Branch lengths given an unrooted binary topology: one Gamma per branch, matched to the branch's conditional at the mode.

Such Gammas are a little off the posterior's margins, most of all where a branch is near zero. `learn` measures by how much from
weighted draws, branch by branch (a branch is known by its split, whatever the topology), and `correct` adjusts their means and
variances.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.kernels import binary
from vaiphy.kernels import gamma as kernels
from vaiphy.likelihood import U_HIGH, U_LOW
from vaiphy.parallel import chunks, map_threads, streams

Floats = NDArray[np.float64]
Children = NDArray[np.int32]
TREES_PER_TASK, DRAWS_PER_TASK = 16, 256
#: Branches whose Gamma has a shape below this one are guarded, where a guard is asked for (see `draw`).
GUARDED_BELOW = 8.0
#: Factors by which a correction may change a Gamma's mean and variance.
MEAN_RANGE, VARIANCE_RANGE = (0.3, 4.0), (0.5, 6.0)
#: A branch's own correction counts as much as the average one when it rests on this many effective draws.
SHRINKAGE = 30.0


@dataclass(frozen=True)
class GammaFit:
    """Laws of the branch lengths of T topologies; arrays (T, 2n - 2) by vertex, entry 0 unused.

    `modes`: maximum-posterior lengths; `shapes`, `rates`: the Gammas; `masses` (T,): log p(X, B | topology) - log q(B) at the
    Gammas' means, an estimate of log p(X | topology) without noise.
    """

    modes: Floats
    shapes: Floats
    rates: Floats
    masses: Floats


def fit(
    children: Children,
    lengths: Floats,
    patterns: SitePatterns,
    rate: float,
    threads: int = 1,
    tolerance: float = 0.01,
    max_sweeps: int = 10,
) -> GammaFit:
    """Optimise the lengths of each topology under the Exp(rate) prior, starting from `lengths`, and match the Gammas.

    Sweeps stop when one gains less than `tolerance` log units.
    """
    n_trees, n_vertices = lengths.shape
    modes = lengths.copy()
    shapes, rates = np.ones((n_trees, n_vertices)), np.ones((n_trees, n_vertices))
    masses = np.empty(n_trees)

    def run(part: slice) -> None:
        kernels.fit(
            children[part], modes[part], patterns.tips, patterns.counts, rate, U_LOW, U_HIGH, tolerance, max_sweeps,
            shapes[part], rates[part], masses[part],
        )  # fmt: skip

    map_threads(run, chunks(n_trees, TREES_PER_TASK), threads)
    return GammaFit(modes, shapes, rates, masses)


def draw(
    law: GammaFit,
    children: Children,
    topology: NDArray[np.int32],
    patterns: SitePatterns,
    rate: float,
    rng: np.random.Generator,
    threads: int = 1,
    guard: float = 0.0,
) -> tuple[Floats, Floats]:
    """Lengths for each entry of `topology` (an index into the fits), and log p(X, B | topology) - log q(B | topology).

    `guard` mixes that much of two exponential laws (one with the Gamma's mean, and the prior) into the Gammas of small shape,
    which bounds the weights where a Gamma vanishes and the posterior does not. Guarded draws are mostly bad ones, so that it
    should be small where many branches are guarded; with a handful of sites more is better.
    """
    lengths = np.empty((len(topology), law.shapes.shape[1]))
    log_weights = np.empty(len(topology))
    parts = chunks(len(topology), DRAWS_PER_TASK)
    sources = streams(rng, len(parts))

    def run(task: int) -> None:
        part = parts[task]
        kernels.draw(
            sources[task], children, topology[part], law.shapes, law.rates, guard, GUARDED_BELOW,
            patterns.tips, patterns.counts, rate, lengths[part], log_weights[part],
        )  # fmt: skip

    map_threads(run, range(len(parts)), threads)
    return lengths, log_weights


def splits_of(children: Children) -> NDArray[np.uint64]:
    """A 64-bit key of the split of every branch, (T, 2n - 2): equal for equal splits in any tree on as many taxa."""
    n_taxa = children.shape[1] + 2
    out = np.empty((len(children), 2 * n_taxa - 2), dtype=np.uint64)
    binary.clade_hashes(children, binary.taxon_keys(n_taxa), out)
    return out


@dataclass(frozen=True)
class Correction:
    """Per split (sorted `keys`), the factors for a Gamma's mean and variance; the last entry is for splits not listed."""

    keys: NDArray[np.uint64]
    mean: Floats
    variance: Floats


NO_CORRECTION = Correction(np.zeros(0, dtype=np.uint64), np.ones(1), np.ones(1))


def learn(law: GammaFit, children: Children, topology: NDArray[np.int32], lengths: Floats, weights: Floats) -> Correction:
    """Corrections from draws with normalised weights: weighted moments against the Gammas' own, by split.

    Corrections that rest on few effective draws are shrunk to the average over all branches.
    """
    keys = splits_of(children)[topology][:, 1:].ravel()
    mean = (law.shapes / law.rates)[topology][:, 1:]
    variance = mean / law.rates[topology][:, 1:]
    share = np.repeat(weights, mean.shape[1])
    unique, index = np.unique(keys, return_inverse=True)
    index = index.ravel()

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(index, weights=share * values.ravel(), minlength=len(unique)), dtype=np.float64)

    found = total(np.ones_like(mean))
    kept = found > 1e-12  # splits whose draws have no weight teach nothing
    effective = np.where(kept, found, 0.0) ** 2 / np.maximum(np.bincount(index, weights=share**2, minlength=len(unique)), 1e-30)
    trust = effective / (effective + SHRINKAGE)
    mean_factor = np.where(kept, total(lengths[:, 1:]), 1.0) / np.where(kept, total(mean), 1.0)
    centre = (mean * mean_factor[index].reshape(mean.shape)).ravel()
    variance_factor = np.where(kept, total((lengths[:, 1:].ravel() - centre) ** 2), 1.0) / np.where(kept, total(variance), 1.0)
    importance = found * trust
    average_mean = float(np.exp(np.average(np.log(np.clip(mean_factor, *MEAN_RANGE)), weights=importance)))
    average_variance = float(np.exp(np.average(np.log(np.clip(variance_factor, *VARIANCE_RANGE)), weights=importance)))

    def shrunk(factor: Floats, average: float, limits: tuple[float, float]) -> Floats:
        logs = trust * np.log(np.clip(factor, *limits)) + (1.0 - trust) * np.log(average)
        return np.append(np.exp(logs), average)

    return Correction(
        unique, shrunk(mean_factor, average_mean, MEAN_RANGE), shrunk(variance_factor, average_variance, VARIANCE_RANGE)
    )


def correct(law: GammaFit, children: Children, correction: Correction) -> GammaFit:
    """The Gammas with corrected means and variances (masses stay those of the uncorrected ones)."""
    keys = splits_of(children)
    place = np.searchsorted(correction.keys, keys)
    listed = place < len(correction.keys)
    listed[listed] = correction.keys[place[listed]] == keys[listed]
    place[~listed] = len(correction.keys)
    mean = law.shapes / law.rates * correction.mean[place]
    variance = law.shapes / law.rates**2 * correction.variance[place]
    shapes, rates = mean**2 / variance, mean / variance
    shapes[:, 0] = rates[:, 0] = 1.0
    return GammaFit(law.modes, shapes, rates, law.masses)
