"""What a bridge starts from: a distribution of trees, lengths and parameters that can be drawn from and evaluated exactly.

Trees and lengths: `kernels.clades` (each clade split given the clade it is part of, a Gamma for each branch). Parameters:
`parameter_law`. All are fitted to weighted trees; nothing learned at all is the prior.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clade_draws, clades, rooted
from vaiphy.kernels.binary import taxon_keys
from vaiphy.parallel import chunks
from vaiphy.posterior import parameter_law
from vaiphy.posterior.parameter_law import ParameterFitting, ParameterLaw
from vaiphy.posterior.split_counts import placed, splits_of, values_of
from vaiphy.target import Target
from vaiphy.trees.counts import log_n_rooted
from vaiphy.workers.spread import Shared, Workers, spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: No Gamma of a length is wider: below, the part of it that lies under the least length would count.
LEAST_SHAPE = 0.6
#: Trees drawn or evaluated in one piece of work.
PIECE = 64


@dataclass(frozen=True)
class Fitting:
    """How a proposal is fitted to weighted trees.

    `floor`: share of each clade's probability kept for splits not seen. `pseudo`: draws' worth of a wide Gamma in each length's
    shape (in a context: of the clade's Gamma); `context_pseudo`: draws' worth of the clade's splits in a context's. `widening`:
    factor on the shapes (below one: wider than what was seen). `least_draws`: with fewer effective draws a clade or context has
    no Gamma of its own. `most_shape`: no Gamma is narrower. `guard`: see `Proposal`. `parameters`: how their own distribution is
    fitted.
    """

    floor: float = 0.005
    pseudo: float = 10.0
    context_pseudo: float = 3.0
    widening: float = 0.9
    least_draws: float = 3.0
    most_shape: float = 300.0
    guard: float = 0.1
    parameters: ParameterFitting = field(default_factory=ParameterFitting)


DEFAULT = Fitting()


@dataclass(frozen=True, eq=False)
class Proposal:
    """A distribution of (tree, lengths, parameters).

    `guard`: expected number of lengths in a guarded draw that come from wider distributions than they are fitted to.
    """

    target: Target
    trees: clades.Clades
    draws: clade_draws.Draws
    parameters: ParameterLaw
    guard: float = 0.0

    @cached_property
    def shared(self) -> Shared:
        """What drawing, moving and evaluating trees need of this, for workers."""
        return Shared((self.trees, self.draws, self.keys))

    @property
    def keys(self) -> NDArray[np.uint64]:
        return clade_keys(self.target.n_taxa)

    def sample(self, n: int, seed: list[int], threads: Workers = 1) -> tuple[Ints, Floats, Ints, Floats]:
        """n draws: children (n, n_taxa-2, 2), lengths (n, 2 n_taxa-2), tops (n,), z (n, d)."""
        return self._draws(n, seed, 0.0, threads)[:4]

    def guarded_sample(self, n: int, seed: list[int], threads: Workers = 1) -> "GuardedDraws":
        """As `sample`, some lengths drawn more widely."""
        return self._draws(n, seed, self.guard, threads)

    def _draws(self, n: int, seed: list[int], guard: float, threads: Workers) -> "GuardedDraws":
        terms = self.target.length_prior.terms(self.target.n_taxa)
        share = min(guard / (2 * self.target.n_taxa - 3), 0.5)
        wide = np.array([share, terms.alpha_outer, terms.rate, terms.alpha_inner, terms.rate], dtype=np.float64)
        pieces = [(self.target.n_taxa, wide, part.stop - part.start, (*seed, part.start)) for part in chunks(n, PIECE)]
        drawn = spread(draw_piece, (self.shared,), pieces, threads)
        children, lengths, tops, ratios, wide = (np.concatenate(column) for column in zip(*drawn))
        z = self.parameters.sample(n, np.random.default_rng([*seed, n, 1]))
        return GuardedDraws(children, lengths, tops, z, ratios, wide.astype(np.int64))

    def is_forbidden(self, children: Ints, tops: Ints) -> NDArray[np.bool_]:
        """Which trees have a split that they must not have: those are drawn, but the prior does not know them."""
        if not len(self.trees.rules.forbidden):
            return np.zeros(len(children), dtype=bool)
        names = np.empty((len(children), 2 * self.target.n_taxa - 2), dtype=np.uint64)
        rooted.vertex_identities(children, tops, self.keys, names)
        return np.asarray(np.isin(names, self.trees.rules.forbidden).any(axis=1))

    def log_density_of_trees(self, children: Ints, lengths: Floats, tops: Ints, threads: Workers = 1) -> Floats:
        pieces = [(children[part], lengths[part], tops[part]) for part in chunks(len(children), PIECE)]
        return np.concatenate(spread(density_piece, (self.shared,), pieces, threads))


class GuardedDraws(NamedTuple):
    """Draws as `Proposal.sample` gives them; the log of the density they were so drawn from over the proposal's, and how many
    lengths were drawn more widely (where none was, the draw is one from the proposal).
    """

    children: Ints
    lengths: Floats
    tops: Ints
    z: Floats
    log_ratio: Floats
    n_wide: Ints


def draw_piece(
    trees: clades.Clades, draws: clade_draws.Draws, keys: NDArray[np.uint64], n_taxa: int, guard: Floats, n: int,
    seed: tuple[int, ...],
) -> tuple[Ints, Floats, Ints, Floats, Ints]:  # fmt: skip
    """A few trees from the proposal, guarded as `clade_draws.sample` has it."""
    children, tops = np.empty((n, n_taxa - 2, 2), dtype=np.int64), np.empty(n, dtype=np.int64)
    lengths, ratios, wide = np.zeros((n, 2 * n_taxa - 2)), np.empty(n), np.empty(n, dtype=np.int64)
    rng = np.random.default_rng(seed)
    clade_draws.sample(trees, draws, keys, guard, rng, children, lengths, tops, ratios, wide)
    return children, lengths, tops, ratios, wide


def density_piece(
    trees: clades.Clades, draws: clade_draws.Draws, keys: NDArray[np.uint64], children: Ints, lengths: Floats, tops: Ints
) -> Floats:
    """Log-densities of a few trees under the proposal."""
    out = np.empty(len(children))
    clades.log_densities(trees, keys, children, lengths, tops, out)
    return out


def clade_keys(n_taxa: int) -> NDArray[np.uint64]:
    """Random keys of the taxa; taxon 0, never below anything, has none."""
    keys = taxon_keys(n_taxa).copy()
    keys[0] = 0
    return keys


def prior_proposal(target: Target) -> Proposal:
    """Topologies and parameters from the prior, lengths from a Gamma as near to the prior as independent Gammas are."""
    terms = target.length_prior.terms(target.n_taxa)
    n_branches = 2 * target.n_taxa - 3
    if terms.power:
        # gammadir: a branch has the mean E[T] / n_branches; shape below one keeps short and long ones.
        mean_length = terms.rate and (terms.power + n_branches * terms.alpha_inner) / terms.rate / n_branches
        shape, rate = LEAST_SHAPE, LEAST_SHAPE / min(max(mean_length, 1e-3), 0.1)
    else:
        shape, rate = terms.alpha_outer, terms.rate
    empty, none = np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=np.int64)
    numbers = np.tile([shape, rate, _log_constant(shape, rate)], 2)
    trees = clades.Clades(empty, np.zeros(2), empty, np.zeros((2, 4)), _log_trees(target.n_taxa), numbers, target.rules)
    draws = clade_draws.Draws(none, none, np.zeros((1, _words(target.n_taxa)), dtype=np.uint64), np.zeros(1))
    return Proposal(target, trees, draws, ParameterLaw(target))


def fit(
    target: Target, children: Ints, lengths: Floats, tops: Ints, z: Floats, weights: Floats, fitting: Fitting = DEFAULT
) -> Proposal:
    """The proposal fitted to weighted trees (weights sum to one)."""
    kept = weights > 0
    children, lengths, tops, z, weights = children[kept], lengths[kept], tops[kept], z[kept], weights[kept]
    effective = 1.0 / np.square(weights).sum()
    trees, draws = _fit_trees(target, children, lengths, tops, weights, effective, fitting)
    return Proposal(target, trees, draws, parameter_law.fit(target, z, weights, fitting.parameters), fitting.guard)


def _fit_trees(
    target: Target, children: Ints, lengths: Floats, tops: Ints, weights: Floats, effective: float, fitting: Fitting
) -> tuple[clades.Clades, clade_draws.Draws]:
    n, words = target.n_taxa, _words(target.n_taxa)
    t = len(children)
    split, sets = np.empty((t, n - 2), dtype=np.uint64), np.empty((t, n - 2, words), dtype=np.uint64)
    clade, context = np.empty((t, 2 * n - 2), dtype=np.uint64), np.empty((t, 2 * n - 2), dtype=np.uint64)
    log_trees, log_uniform = _log_trees(n), np.empty((t, n - 2))
    clades.describe(children, tops, clade_keys(n), target.rules, log_trees, split, sets, log_uniform, clade, context)
    inner = np.repeat(weights, n - 2) * effective
    alone = splits_of(split.ravel(), clade[:, n:].ravel(), sets.reshape(-1, words), inner)
    within = splits_of(split.ravel(), context[:, n:].ravel(), sets.reshape(-1, words), inner)
    # Probabilities of splits: of a clade alone, with a floor; in a context, shrunk towards those.
    uniform = np.exp(values_of(split.ravel(), log_uniform.ravel(), alone.split))
    by_clade = (1.0 - fitting.floor) * alone.seen / alone.total + fitting.floor * uniform
    at = np.searchsorted(np.sort(alone.split), within.split)
    base = by_clade[np.argsort(alone.split)][at]
    by_context = (within.seen + fitting.context_pseudo * base) / (within.total + fitting.context_pseudo)
    joint = np.empty(len(within.split), dtype=np.uint64)
    clades.joint_identities(within.head, within.split, joint)
    split_key, split_place = placed(np.concatenate([alone.split, joint]))
    split_value = np.zeros(len(split_key))
    split_value[split_place] = np.log(np.concatenate([by_clade, by_context]))
    # Lengths: a Gamma for every clade and context that was seen often enough.
    w, b = np.repeat(weights, 2 * n - 3) * effective, lengths[:, 1:].ravel()
    is_outer = _outer(n, tops).ravel()
    inner_rate, outer_rate = 1.2 / _mean(b, w, ~is_outer), 0.8 / _mean(b, w, is_outer)
    numbers = np.array([0.8, inner_rate, _log_constant(0.8, inner_rate), 0.8, outer_rate, _log_constant(0.8, outer_rate)])
    alone_gamma = _gammas(clade[:, 1:].ravel(), b, w, None, fitting)
    context_gamma = _gammas(context[:, 1:].ravel(), b, w, (clade[:, 1:].ravel(), alone_gamma), fitting)
    # Places: clades and contexts, each with its Gamma, the probability of falling back, and the splits seen there.
    names = np.concatenate([alone_gamma[0], context_gamma[0]])
    place_key, place = placed(names)
    where = dict(zip(names.tolist(), place.tolist()))
    place_value = np.zeros((len(place_key), 4))
    place_value[:, 2] = 1.0
    gammas = np.concatenate([np.stack(alone_gamma[1:], axis=1), np.stack(context_gamma[1:], axis=1)])
    place_value[place, :2] = gammas
    place_value[place, 3] = [_log_constant(shape, rate) if shape > 0.0 else 0.0 for shape, rate in gammas.tolist()]
    first, last = np.zeros(len(place_key), dtype=np.int64), np.zeros(len(place_key), dtype=np.int64)
    for group, offset in ((alone, 0), (within, len(alone.split))):
        heads, begins = np.unique(group.head, return_index=True)
        ends = np.append(begins[1:], len(group.head))
        places = np.array([where[head] for head in heads.tolist()], dtype=np.int64)
        first[places], last[places] = begins + offset, ends + offset
        total = group.total[begins]
        pseudo = fitting.context_pseudo
        place_value[places, 2] = log(fitting.floor) if group is alone else np.log(pseudo / (total + pseudo))
    law = clades.Clades(split_key, split_value, place_key, place_value, log_trees, numbers, target.rules)
    child = np.ascontiguousarray(np.concatenate([alone.sets, within.sets]))
    return law, clade_draws.Draws(first, last, child, np.concatenate([alone.cumulative, within.cumulative]))


def _gammas(
    names: NDArray, lengths: Floats, weights: Floats, within: tuple[NDArray, tuple] | None, fitting: Fitting
) -> tuple[NDArray, Floats, Floats]:
    """(distinct names, shapes, rates) of the Gammas of lengths with the same name; shape 0 where too few were seen.

    Shapes are shrunk towards 1 or, in contexts, towards the clade's own Gamma (`within`: clade of each length, its Gammas).
    """
    found, first, which = np.unique(names, return_index=True, return_inverse=True)
    which = which.ravel()
    seen = np.bincount(which, weights=weights)
    mean = np.bincount(which, weights=weights * lengths) / seen
    variance = np.bincount(which, weights=weights * (lengths - mean[which]) ** 2) / seen
    shape = np.clip(fitting.widening * mean**2 / np.maximum(variance, 1e-12 * mean**2), LEAST_SHAPE, fitting.most_shape)
    trust = seen / (seen + fitting.pseudo)
    base, base_mean = np.ones(len(found)), mean
    if within is not None:
        clade, (clade_names, clade_shape, clade_rate) = within
        at = np.searchsorted(clade_names, clade[first])
        known = clade_shape[at] > 0.0
        base = np.where(known, clade_shape[at], 1.0)
        base_mean = np.where(known, base / np.where(known, clade_rate[at], 1.0), mean)
    shape = np.exp(trust * np.log(shape) + (1.0 - trust) * np.log(base))
    mean = np.exp(trust * np.log(mean) + (1.0 - trust) * np.log(base_mean))
    return found, np.where(seen >= fitting.least_draws, shape, 0.0), shape / mean


def _outer(n: int, tops: Ints) -> NDArray[np.bool_]:
    """Which branches 1 .. 2n-3 of each tree end in a taxon."""
    outer = np.zeros((len(tops), 2 * n - 3), dtype=bool)
    outer[:, : n - 1] = True
    outer[np.arange(len(tops)), tops - 1] = True
    return outer


def _mean(values: Floats, weights: Floats, chosen: NDArray[np.bool_]) -> float:
    if not chosen.any():
        return float(np.average(values, weights=weights))
    return max(float(np.average(values[chosen], weights=weights[chosen])), 1e-6)


def _log_constant(shape: float, rate: float) -> float:
    """Log of the constant factor of a Gamma density."""
    return shape * log(rate) - lgamma(shape)


def _log_trees(n_taxa: int) -> Floats:
    return np.array([0.0, *(log_n_rooted(k) for k in range(1, n_taxa + 1))])


def _words(n_taxa: int) -> int:
    return (n_taxa + 63) // 64
