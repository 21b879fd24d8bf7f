"""The distribution of trees and lengths that is fitted to weighted trees: the tables of `kernels.clades`."""

from dataclasses import dataclass, field
from math import lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clades, rooted
from vaiphy.kernels.binary import taxon_keys
from vaiphy.kernels.clade_draws import Draws
from vaiphy.kernels.clades import Clades
from vaiphy.posterior.length_response import ResponseFitting, fit_response, no_response
from vaiphy.posterior.parameter_law import ParameterFitting
from vaiphy.posterior.split_law import Seen, SplitLaw, SplitSmoothing, placed, split_law
from vaiphy.target import Target
from vaiphy.trees.counts import log_n_rooted

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: No Gamma of a length is wider: below, the part of it that lies under the least length would count.
LEAST_SHAPE = 0.6


@dataclass(frozen=True)
class IslandFitting:
    """When islands have laws of their own (`islands`).

    So many at most; each is fitted to at least `least` effective draws, and must raise the log-density of trees left out by
    `gain` on average; `alike`: the part of the probability that all islands share equally. Splits rarer than `known`, or as
    nearly in all trees, say nothing; of the others `most_splits` are looked at, and a split counts as much as a difference
    `split_size` of the logarithm of a taxon's length. Neighbouring trees are often akin: `block` in a row are left out together.
    The gain is measured on about `most_trees` trees.
    """

    most: int = 6
    least: float = 8.0
    gain: float = 1.0
    alike: float = 0.1
    known: float = 0.02
    most_splits: int = 64
    split_size: float = 3.0
    block: int = 8
    most_trees: int = 1500


@dataclass(frozen=True)
class RareFitting:
    """When rare splits have laws of their own (`rare`).

    So many at most, which have `share` of the probability, all alike. Trees of the split are weighed up to `emphasis`. Splits of
    a share below `smallest`, or seen in fewer than `least` effective trees, say nothing; of the others, `most_splits` at most,
    `most_tried` are tried, those that go with most others, each correlated by less than `alike` with those before, on
    `most_trees` trees. `variance`: what trees of a split must add to the variance of weights, about, if the law of all trees is
    the proposal.
    """

    most: int = 3
    share: float = 0.25
    emphasis: float = 0.25
    smallest: float = 0.002
    least: float = 3.0
    most_splits: int = 600
    most_tried: int = 24
    alike: float = 0.7
    most_trees: int = 768
    variance: float = 2.0


@dataclass(frozen=True)
class Fitting:
    """How a proposal is fitted to weighted trees.

    `splits`: how far splits that were not seen are trusted. `pseudo`: draws' worth of a wide Gamma in each length's shape (in a
    context: of the clade's Gamma). `widening`: factor on the shapes (below one: wider than what was seen). `least_draws`: with
    fewer effective draws a clade or context has no Gamma of its own. `most_shape`: no Gamma is narrower. `guard`: see
    `proposal.Proposal`. `islands`, `rare`: which trees have laws of their own. `parameters`: how their own distribution is
    fitted; `response`: how lengths of draws follow each other.
    """

    splits: SplitSmoothing = field(default_factory=SplitSmoothing)
    pseudo: float = 15.0
    widening: float = 0.9
    least_draws: float = 5.0
    most_shape: float = 300.0
    guard: float = 0.1
    islands: IslandFitting = field(default_factory=IslandFitting)
    rare: RareFitting = field(default_factory=RareFitting)
    parameters: ParameterFitting = field(default_factory=ParameterFitting)
    response: ResponseFitting = field(default_factory=ResponseFitting)


#: No islands and no rare splits: one law of all trees.
ALONE: dict[str, Any] = {"islands": IslandFitting(most=1), "rare": RareFitting(most=0)}


class TreeLaw(NamedTuple):
    """A distribution of trees and lengths: what densities are looked up in, and what drawing needs besides."""

    clades: Clades
    draws: Draws


class Trees(NamedTuple):
    """Trees with lengths: children (n, n_taxa-2, 2), lengths (n, 2 n_taxa-2), tops (n,)."""

    children: Ints
    lengths: Floats
    tops: Ints

    def take(self, which: NDArray) -> "Trees":
        return Trees(*(array[which] for array in self))


class Gammas(NamedTuple):
    """Of the lengths with the same name: distinct names, shapes (0 where too few were seen), rates."""

    names: NDArray[np.uint64]
    shape: Floats
    rate: Floats


def fit_law(target: Target, trees: Trees, weights: Floats, fitting: Fitting, scales: Floats | None = None) -> TreeLaw:
    """The law fitted to weighted trees; `scales`: factor on the lengths that each tree's parameters explain.

    Without `scales` lengths do not respond to each other, which only draws would need.
    """
    children, lengths, tops = trees
    weights = weights / weights.sum()
    effective = 1.0 / float(np.square(weights).sum())
    n, words, t = target.n_taxa, n_words(target.n_taxa), len(children)
    split, uniform = np.empty((t, n - 2), dtype=np.uint64), np.empty((t, n - 2))
    parts, sets = np.empty((t, n - 2, words), dtype=np.uint64), np.empty((t, n - 2, words), dtype=np.uint64)
    clade, context = np.empty((t, 2 * n - 2), dtype=np.uint64), np.empty((t, 2 * n - 2), dtype=np.uint64)
    seen = Seen(split, uniform, parts, sets, np.empty((t, 2 * n - 2), dtype=np.int64), clade, context)
    clades.describe(children, tops, clade_keys(n), target.rules, log_trees(n), *seen)
    law = split_law(target.rules, clade_keys(n), log_trees(n), seen, np.repeat(weights, n - 2) * effective, fitting.splits)
    # Lengths: a Gamma for every clade and context that was seen often enough.
    w, b = np.repeat(weights, 2 * n - 3) * effective, lengths[:, 1:].ravel()
    is_outer = _outer(n, tops).ravel()
    inner_rate, outer_rate = 1.2 / _mean(b, w, ~is_outer), 0.8 / _mean(b, w, is_outer)
    numbers = np.array([0.8, inner_rate, log_constant(0.8, inner_rate), 0.8, outer_rate, log_constant(0.8, outer_rate)])
    alone = _gammas(clade[:, 1:].ravel(), b, w, None, fitting)
    within = _gammas(context[:, 1:].ravel(), b, w, (clade[:, 1:].ravel(), alone), fitting)
    place_key, place_value, first, last = _places(alone, within, law)
    tables = Clades(law.key, law.value, place_key, place_value, log_trees(n), numbers, target.rules)
    response = no_response(place_value[:, 0])
    if scales is not None and fitting.guard > 0.0:
        response = fit_response(tables, clade_keys(n), trees, scales, weights * effective, fitting.response)
    return TreeLaw(tables, Draws(first, last, law.part, law.cumulative, response))


def _places(alone: Gammas, within: Gammas, law: SplitLaw) -> tuple[NDArray, Floats, Ints, Ints]:
    """Clades and contexts, each with its Gamma, the probability of falling back, and the range of its splits for drawing."""
    names = np.concatenate([alone.names, within.names])
    key, place = placed(names)
    value, first, last = np.zeros((len(key), 4)), np.zeros(len(key), dtype=np.int64), np.zeros(len(key), dtype=np.int64)
    gammas = np.concatenate([np.stack(alone[1:], axis=1), np.stack(within[1:], axis=1)])
    value[:, 2] = 1.0
    value[place, :2] = gammas
    value[place, 3] = [log_constant(shape, rate) if shape > 0.0 else 0.0 for shape, rate in gammas.tolist()]
    order = np.argsort(names)
    at = place[order[np.searchsorted(names, law.head, sorter=order)]]
    first[at], last[at], value[at, 2] = law.first, law.last, law.log_other
    return key, value, first, last


def _gammas(names: NDArray, lengths: Floats, weights: Floats, within: tuple[NDArray, Gammas] | None, fitting: Fitting) -> Gammas:
    """Shapes are shrunk towards 1 or, in contexts, towards the clade's own Gamma (`within`: clade of each length, its Gammas)."""
    found, first, which = np.unique(names, return_index=True, return_inverse=True)
    which = which.ravel()
    seen = np.bincount(which, weights=weights)
    mean = np.bincount(which, weights=weights * lengths) / seen
    variance = np.bincount(which, weights=weights * (lengths - mean[which]) ** 2) / seen
    shape = np.clip(fitting.widening * mean**2 / np.maximum(variance, 1e-12 * mean**2), LEAST_SHAPE, fitting.most_shape)
    trust = seen / (seen + fitting.pseudo)
    base, base_mean = np.ones(len(found)), mean
    if within is not None:
        clade, by_clade = within
        at = np.searchsorted(by_clade.names, clade[first])
        known = by_clade.shape[at] > 0.0
        base = np.where(known, by_clade.shape[at], 1.0)
        base_mean = np.where(known, base / np.where(known, by_clade.rate[at], 1.0), mean)
    shape = np.exp(trust * np.log(shape) + (1.0 - trust) * np.log(base))
    mean = np.exp(trust * np.log(mean) + (1.0 - trust) * np.log(base_mean))
    return Gammas(found, np.where(seen >= fitting.least_draws, shape, 0.0), shape / mean)


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


def clade_keys(n_taxa: int) -> NDArray[np.uint64]:
    """Random keys of the taxa; taxon 0, never below anything, has none."""
    keys = taxon_keys(n_taxa).copy()
    keys[0] = 0
    return keys


def splits_in(children: Ints, tops: Ints) -> tuple[NDArray[np.uint64], Ints]:
    """Identities of all splits that trees have, ascending, and which of them each tree has (trees, n_taxa - 2)."""
    n = children.shape[1] + 2
    names = np.empty((len(tops), 2 * n - 2), dtype=np.uint64)
    rooted.vertex_identities(children, tops, clade_keys(n), names)
    found, which = np.unique(names[:, n:], return_inverse=True)
    return found, which.reshape(len(tops), n - 2)


def log_constant(shape: float, rate: float) -> float:
    """Log of the constant factor of a Gamma density."""
    return shape * log(rate) - lgamma(shape)


def log_trees(n_taxa: int) -> Floats:
    """Log number of rooted trees with 0 (none), 1, 2, ... taxa."""
    return np.array([0.0, *(log_n_rooted(k) for k in range(1, n_taxa + 1))])


def n_words(n_taxa: int) -> int:
    return (n_taxa + 63) // 64
