"""Where learning starts: the prior, the BIONJ trees of resampled sites, or trees that are given (another model's posterior)."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels.joining_neighbours import bionj
from vaiphy.posterior.constrained_starts import joined_under
from vaiphy.posterior.proposal import Proposal, fit, prior_proposal
from vaiphy.posterior.split_law import SplitSmoothing
from vaiphy.posterior.tree_law import ALONE, Fitting
from vaiphy.target import Target

Floats = NDArray[np.float64]

KINDS = ("prior", "bootstrap", "given")
#: Trees of resampled sites, the shortest length they may have, and how widely a proposal is fitted to them.
N_TREES, SHORTEST = 64, 2e-4
WIDELY = Fitting(SplitSmoothing(floor=0.05), pseudo=20.0, widening=0.5, **ALONE)
#: Pairs that look saturated (or share no site) get this distance times the largest one that is not.
SATURATED_FACTOR = 1.5


@dataclass(frozen=True, eq=False)
class GivenTrees:
    """Weighted trees to start from, numbered as in a `TreeSample`: children (N, n-2, 2), lengths (N, 2n-2), weights (N,)."""

    children: NDArray[np.int32]
    lengths: Floats
    weights: Floats


def start(target: Target, kind: str, rng: np.random.Generator, given: GivenTrees | None = None) -> Proposal:
    """The proposal that a replicate begins with; the kind "given" needs trees, parameters come from the prior."""
    if kind == "prior":
        return prior_proposal(target)
    if kind == "given":
        if given is None:
            raise ValueError("no trees are given to start from")
        return _fitted(target, given.children, given.lengths, given.weights, rng)
    n = target.n_taxa
    children, lengths = np.empty((N_TREES, n - 2, 2), dtype=np.int32), np.zeros((N_TREES, 2 * n - 2))
    for i in range(N_TREES):
        counts = [rng.multinomial(round(float(part.counts.sum())), part.counts / part.counts.sum()) for part in target.parts]
        apart = distances(target, [c.astype(np.float64) for c in counts])
        if target.constraint is None:
            bionj(apart, children[i], lengths[i])
        else:
            joined_under(target.constraint, apart, children[i], lengths[i], rng)
    return _fitted(target, children, lengths, np.full(N_TREES, 1.0 / N_TREES), rng)


def _fitted(target: Target, children: NDArray[np.int32], lengths: Floats, weights: Floats, rng: np.random.Generator) -> Proposal:
    """A wide proposal around weighted trees, those of them that obey the constraint; parameters from the prior."""
    prior, lengths = prior_proposal(target), np.maximum(lengths, SHORTEST)
    trees, tops = children.astype(np.int64), np.full(len(children), 2 * target.n_taxa - 3, dtype=np.int64)
    if target.constraint is not None:
        obey = np.isfinite(prior.log_laws(trees, lengths, tops)[:, 0]) & ~prior.is_forbidden(trees, tops)
        weights = weights * obey
        if not weights.any():
            return prior
        weights /= weights.sum()
    z = target.draw_parameters(len(children), rng)
    learned = fit(target, trees, lengths, tops, z, weights, WIDELY)
    return replace(learned, parameters=prior.parameters, guard=0.0)


def distances(target: Target, counts: list[Floats] | None = None) -> Floats:
    """Distances between all pairs of taxa as if all changes were equally likely, from sites where both have a single state.

    `counts` replace the patterns' own (bootstrap). Saturated pairs, or those without a common site, get 1.5 times the largest
    other distance, and at least 1.
    """
    n = target.n_taxa
    comparable, expected = np.zeros((n, n)), np.zeros((n, n))
    differ = np.zeros((n, n))
    for k, part in enumerate(target.parts):
        weights = part.counts if counts is None else counts[k]
        single = part.tips * (part.tips.sum(axis=1, keepdims=True) == 1.0)
        known = single.sum(axis=1)
        both = (known * weights) @ known.T
        same = np.zeros((n, n))
        for state in range(part.model.n_states):
            same += (single[:, state] * weights) @ single[:, state].T
        comparable += both
        differ += both - same
        expected += both * (1.0 - 1.0 / part.model.n_states)
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = expected / comparable
        distance = -limit * np.log(1.0 - differ / expected)
    usable = np.isfinite(distance) & (comparable > 0)
    largest = distance[usable].max() if usable.any() else 0.0
    distance[~usable] = max(1.0, SATURATED_FACTOR * largest)
    distance = np.maximum(distance, 0.0)
    np.fill_diagonal(distance, 0.0)
    return distance
