"""Islands among weighted trees: groups that are better described by a law each than by one law together.

An island may be one of topologies or of lengths (the same changes put on other branches): tables of splits and independent
lengths would blend both. Groups are cut in two, by what trees have in common, as long as that raises the density of trees left
out.
"""

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clades
from vaiphy.posterior.tree_law import Fitting, IslandFitting, Trees, clade_keys, fit_law, splits_in
from vaiphy.target import Target

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Steps of finding the direction in which trees differ most, and of moving trees between the halves.
POWERS, REFINEMENTS = 30, 10


def islands(target: Target, trees: Trees, weights: Floats, fitting: Fitting) -> list[Ints]:
    """Indices of the trees of each island; all together if there are no islands."""
    waiting, settled = [np.arange(len(weights))], list[Ints]()
    features = _features(trees, weights, fitting.islands) if fitting.islands.most > 1 else None
    while waiting and features is not None and len(waiting) + len(settled) < fitting.islands.most:
        group = waiting.pop(0)
        far = _far_half(features[group], weights[group])
        halves = group[far], group[~far]
        if min(_effective(weights[half]) for half in halves) >= fitting.islands.least and (
            _gain(target, trees, weights, _fewer(halves, fitting.islands.most_trees), fitting) >= fitting.islands.gain
        ):
            waiting += halves
        else:
            settled.append(group)
    return settled + waiting


def _fewer(halves: tuple[Ints, Ints], most: int) -> tuple[Ints, Ints]:
    """Every so many trees of each half, if both together are more than `most`."""
    every = -(-sum(len(half) for half in halves) // most)
    return halves[0][::every], halves[1][::every]


def _effective(weights: Floats) -> float:
    return float(weights.sum() ** 2 / np.square(weights).sum()) if len(weights) else 0.0


def _features(trees: Trees, weights: Floats, fitting: IslandFitting) -> Floats:
    """What trees are compared by: which doubtful splits each has, and the logarithms of its taxa's lengths."""
    n = trees.children.shape[1] + 2
    found, which = splits_in(trees.children, trees.tops)
    frequency = np.bincount(which.ravel(), weights=np.repeat(weights, n - 2))
    doubt = frequency * (1.0 - frequency)
    doubt[(frequency < fitting.known) | (frequency > 1.0 - fitting.known)] = 0.0
    chosen = np.argsort(-doubt, kind="stable")[: min(fitting.most_splits, int((doubt > 0.0).sum()))]
    column = np.full(len(found), -1)
    column[chosen] = np.arange(len(chosen))
    has = np.zeros((len(weights), len(chosen) + 1))
    rows = np.broadcast_to(np.arange(len(weights))[:, None], which.shape)
    has[rows, column[which]] = fitting.split_size  # the last column is of all other splits
    first = trees.lengths[np.arange(len(weights)), trees.tops, None]
    return np.concatenate([has[:, :-1], np.log(np.concatenate([first, trees.lengths[:, 1:n]], axis=1))], axis=1)


def _far_half(features: Floats, weights: Floats) -> NDArray[np.bool_]:
    """The trees cut in two: along the direction in which they differ most, then each to the half it is nearer to."""
    weights = weights / weights.sum()
    apart = features - (weights[:, None] * features).sum(axis=0)
    spread = (weights[:, None] * apart**2).sum(axis=0)
    direction = np.where(np.arange(len(spread)) == spread.argmax(), 1.0, 0.0)
    for _ in range(POWERS):
        direction = ((weights * (apart @ direction))[:, None] * apart).sum(axis=0)
        size = np.sqrt(np.square(direction).sum())
        if size == 0.0:
            return np.zeros(len(weights), dtype=bool)
        direction /= size
    far = apart @ direction > 0.0
    for _ in range(REFINEMENTS):
        if not (weights[far].any() and weights[~far].any()):
            break
        one, other = (np.average(apart[half], axis=0, weights=weights[half]) for half in (far, ~far))
        far = np.square(apart - one).sum(axis=1) < np.square(apart - other).sum(axis=1)
    return far


def _gain(target: Target, trees: Trees, weights: Floats, halves: tuple[Ints, Ints], fitting: Fitting) -> float:
    """Mean gain in log-density of trees left out, if the halves have laws of their own; both halves count alike."""
    total = np.zeros(2)
    group = np.sort(np.concatenate(halves))
    fold = np.zeros(len(weights), dtype=np.int64)
    fold[group] = np.arange(len(group)) // fitting.islands.block % 2
    for left_out in range(2):
        parts = [half[fold[half] != left_out] for half in halves]
        test = group[fold[group] == left_out]
        if min(len(part) for part in parts) == 0 or not len(test):
            return -np.inf
        both = np.concatenate(parts)
        alone, *apart = (_log_density(target, trees, weights, part, test, fitting) for part in (both, *parts))
        shares = np.log([weights[part].sum() / weights[both].sum() for part in parts])
        gain = weights[test] * (np.logaddexp(apart[0] + shares[0], apart[1] + shares[1]) - alone)
        total += [gain[np.isin(test, half)].sum() for half in halves]
    return float(np.mean(total / [weights[half].sum() for half in halves]))


def _log_density(target: Target, trees: Trees, weights: Floats, part: Ints, test: Ints, fitting: Fitting) -> Floats:
    """Of some trees under the law fitted to others."""
    law, out = fit_law(target, trees.take(part), weights[part], fitting), np.empty(len(test))
    clades.log_densities(law.clades, clade_keys(target.n_taxa), *trees.take(test), out)
    return out
