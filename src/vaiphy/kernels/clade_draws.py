"""Trees with branch lengths drawn from the distribution of `clades`."""

from typing import Any, NamedTuple

import numpy as np

from vaiphy.kernels.branch import MAX_LENGTH, MIN_LENGTH, log_gamma
from vaiphy.kernels.clades import context_identity, find, length_gamma
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.rooted import NONE, fill_parents, fill_postorder, name_clades
from vaiphy.kernels.uniform import uniform_blocks, uniform_part


class Draws(NamedTuple):
    """What drawing needs besides: the splits seen at each place, as ranges of `child` (taxa of one part) and `cumulative`."""

    first: Any  # (places,) int64
    last: Any
    child: Any  # (n_splits, words) uint64
    cumulative: Any  # (n_splits,)


@inlined
def chosen_split(draws, place, rng):
    """One of the splits seen at a place, by its probability there."""
    u = rng.random()
    s, t = draws.first[place], draws.last[place] - 1
    while s < t:
        middle = (s + t) // 2
        if draws.cumulative[middle] > u:
            t = middle
        else:
            s = middle + 1
    return s


@inlined
def cut_by(child, s, members, other):
    """Put the members of split s first; returns how many they are."""
    part = 0
    rest = 0
    for j in range(members.shape[0]):
        taxon = members[j]
        if (child[s, taxon >> 6] >> np.uint64(taxon & 63)) & np.uint64(1):
            members[part] = taxon
            part += 1
        else:
            other[rest] = taxon
            rest += 1
    for j in range(rest):
        members[part + j] = other[j]
    return part


@inlined
def draw_split(law, draws, clade, parent, members, other, rng):
    """Cut a clade in two: by its context, else by the clade alone, else as in a uniform tree."""
    place = find(law.place_key, context_identity(clade, parent))
    if place >= 0 and law.place_value[place, 2] <= 0.0 and rng.random() >= np.exp(law.place_value[place, 2]):
        return cut_by(draws.child, chosen_split(draws, place, rng), members, other)
    place = find(law.place_key, clade)
    if place >= 0 and law.place_value[place, 2] <= 0.0 and rng.random() >= np.exp(law.place_value[place, 2]):
        return cut_by(draws.child, chosen_split(draws, place, rng), members, other)
    if law.rules.blocks.shape[0] > 0:
        return uniform_blocks(members, other, law.log_trees, law.rules, rng)
    return uniform_part(members, members.shape[0], law.log_trees, rng)


@kernel
def sample(law, draws, keys, guard, rng, children, lengths, tops, n_wide):
    """Draw trees; internal vertices are numbered parents first, the top being vertex n.

    `guard`: (share of lengths that come from wider distributions, see `draw_length`, shape and rate of the prior of outer
    branches, of inner ones). `n_wide`: how many did.
    """
    n = children.shape[1] + 2
    # Vertices waiting to be split: their taxa as ranges of `members`, and the clade they are part of.
    begin = np.empty(2 * n, dtype=np.int64)
    end = np.empty(2 * n, dtype=np.int64)
    whole = np.empty(2 * n, dtype=np.uint64)
    members = np.empty(n, dtype=np.int64)
    other = np.empty(n, dtype=np.int64)
    for i in range(children.shape[0]):
        for t in range(1, n):
            members[t - 1] = t
        begin[n], end[n], whole[n] = 0, n - 1, NONE
        tops[i] = n
        lengths[i, 0] = 0.0
        n_wide[i] = 0
        next_vertex = n + 1
        v = n
        while v < next_vertex:
            low, high = begin[v], end[v]
            clade = NONE
            for j in range(low, high):
                clade ^= keys[members[j]]
            lengths[i, v], wide = draw_length(length_gamma(law, clade, whole[v], v == n), guard, v == n, rng)
            n_wide[i] += wide
            part = 1
            if high - low > 2:
                part = draw_split(law, draws, clade, whole[v], members[low:high], other, rng)
            for side in range(2):
                first = low if side == 0 else low + part
                last = low + part if side == 0 else high
                if last - first == 1:
                    taxon = members[first]
                    children[i, v - n, side] = taxon
                    gamma = length_gamma(law, keys[taxon], clade, True)
                    lengths[i, taxon], wide = draw_length(gamma, guard, True, rng)
                    n_wide[i] += wide
                else:
                    children[i, v - n, side] = next_vertex
                    begin[next_vertex], end[next_vertex], whole[next_vertex] = first, last, clade
                    next_vertex += 1
            v += 1


@inlined
def draw_length(gamma, guard, outer, rng):
    """A length, and whether (1 or 0) it came from a wider distribution.

    Drawn from the Gamma or, half of the guard's share each, from an Exponential of the same mean (which, unlike Gammas of shape
    above one, does not vanish at zero) and from the prior (no tail is longer): weights of draws are then bounded in both.
    """
    shape, rate, _ = gamma
    if guard[0] == 0.0:
        return draw_gamma(rng, shape, rate), 0
    at = 1 if outer else 3
    u = rng.random()
    if u < 0.5 * guard[0]:
        return draw_gamma(rng, 1.0, rate / shape), 1
    if u < guard[0]:
        return draw_gamma(rng, guard[at], guard[at + 1]), 1
    return draw_gamma(rng, shape, rate), 0


@kernel
def log_guards(law, keys, guard, children, lengths, tops, out):
    """out[i]: log of the density that a tree's lengths are drawn from with this guard, over that of `clades`."""
    n = children.shape[1] + 2
    order = np.empty(n - 2, dtype=np.int64)
    parent = np.zeros(2 * n - 2, dtype=np.int64)
    clade = np.empty(2 * n - 2, dtype=np.uint64)
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        fill_parents(children[i], tops[i], parent)
        name_clades(children[i], order, keys, clade)
        out[i] = 0.0
        for v in range(1, 2 * n - 2):
            outer = v < n or v == tops[i]
            gamma = length_gamma(law, clade[v], clade[parent[v]], outer)
            out[i] += log_guard(lengths[i, v], gamma, guard, outer)


@inlined
def log_guard(length, gamma, guard, outer):
    """Log of the density that `draw_length` has, over the Gamma's."""
    if guard[0] == 0.0:
        return 0.0
    shape, rate, constant = gamma
    at = 1 if outer else 3
    narrow = constant + (shape - 1.0) * np.log(length) - rate * length
    exponential = np.log(rate / shape) - rate / shape * length
    prior = log_gamma(length, guard[at], guard[at + 1])
    top = max(narrow, max(exponential, prior))
    total = (1.0 - guard[0]) * np.exp(narrow - top) + 0.5 * guard[0] * (np.exp(exponential - top) + np.exp(prior - top))
    return top + np.log(total) - narrow


@inlined
def draw_gamma(rng, shape, rate):
    while True:
        value = rng.standard_gamma(shape) / rate
        if MIN_LENGTH <= value <= MAX_LENGTH:
            return value
