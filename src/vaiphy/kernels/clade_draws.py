"""Trees with branch lengths drawn from the distribution of `clades`, or from a better one that has its tables.

In the better one lengths know each other: a branch is expected to be longer or shorter than its Gamma has it, by how long its
parent's branch and that of its sister (the one that is drawn first) turned out. Its density, too, follows from a tree alone, but
changes in many places with a single length: so it is what particles are drawn from, not what they are moved under.
"""

from typing import Any, NamedTuple

import numpy as np

from vaiphy.kernels.branch import MAX_LENGTH, MIN_LENGTH
from vaiphy.kernels.clades import context_identity, find, gamma_at, length_gamma, length_place
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.rooted import NONE, fill_postorder, name_clades
from vaiphy.kernels.uniform import uniform_blocks, uniform_part

#: The logarithm of a mean is changed by no more than this.
MOST_CHANGE = 1.5


class Draws(NamedTuple):
    """What drawing needs besides: the splits seen at each place, as ranges of `child` (taxa of one part) and `cumulative`.

    `response`, for each place: factor on the shape of its Gamma, what the logarithm of its mean is raised by, anyway and with
    the relative lengths of the parent's and the sister's branch, and the logarithm of the Gamma function at the resulting shape.
    """

    first: Any  # (places,) int64
    last: Any
    child: Any  # (n_splits, words) uint64
    cumulative: Any  # (n_splits,)
    response: Any  # (places, 5)


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


@inlined
def relative(length, gamma, scale):
    """How long a branch turned out: nearly normal around 0, whatever the shape (Wilson and Hilferty)."""
    shape, rate, _ = gamma
    return np.cbrt(length * rate / (shape * scale)) - 1.0


@inlined
def drawn_first(a, b, clade, n):
    """Which of two sisters has its length drawn first: a taxon, or that of the lower identity."""
    if (a < n) != (b < n):
        return a if a < n else b
    return a if clade[a] < clade[b] else b


@inlined
def responding(draws, place, gamma, scale, above, sister):
    """Shape and rate of the Gamma that a branch's length is drawn from, given branches drawn before, and log Gamma(shape)."""
    shape, rate, constant = gamma
    if place < 0:
        return shape, rate / scale, shape * np.log(rate) - constant
    response = draws.response[place]
    change = response[1] + response[2] * above + response[3] * sister
    change = min(max(change, -MOST_CHANGE), MOST_CHANGE)
    return shape * response[0], rate * response[0] / (scale * np.exp(change)), response[4]


@kernel
def sample(law, draws, keys, guard, scales, rng, children, lengths, tops, n_wide):
    """Draw trees; internal vertices are numbered parents first, the top being vertex n.

    `guard`: (share of lengths that come from wider distributions, see `draw_length`, shape and rate of the prior of outer
    branches, of inner ones); with a share of 0, lengths are drawn from the distribution of `clades` itself. `n_wide`: how many
    were drawn more widely. `scales`: factor on the expected lengths of each tree.
    """
    n = children.shape[1] + 2
    # Vertices waiting to be split: their taxa as ranges of `members`, their own clade and the one that it is part of.
    begin = np.empty(2 * n, dtype=np.int64)
    end = np.empty(2 * n, dtype=np.int64)
    clade = np.empty(2 * n, dtype=np.uint64)
    whole = np.empty(2 * n, dtype=np.uint64)
    turned_out = np.empty(2 * n)
    members = np.empty(n, dtype=np.int64)
    other = np.empty(n, dtype=np.int64)
    for i in range(children.shape[0]):
        clade[n] = NONE
        for t in range(1, n):
            members[t - 1] = t
            clade[n] ^= keys[t]
        begin[n], end[n], whole[n] = 0, n - 1, NONE
        tops[i] = n
        lengths[i, 0] = 0.0
        n_wide[i] = 0
        place = length_place(law, clade[n], NONE)
        gamma = gamma_at(law, place, True)
        length, wide = one_length(draws, place, gamma, guard, True, scales[i], 0.0, 0.0, rng)
        lengths[i, n], n_wide[i] = length, wide
        turned_out[n] = relative(length, gamma, scales[i])
        next_vertex = n + 1
        v = n
        while v < next_vertex:
            low, high = begin[v], end[v]
            part = 1
            if high - low > 2:
                part = draw_split(law, draws, clade[v], whole[v], members[low:high], other, rng)
            for side in range(2):
                first = low if side == 0 else low + part
                last = low + part if side == 0 else high
                if last - first == 1:
                    child = members[first]
                    clade[child] = keys[child]
                else:
                    child = next_vertex
                    next_vertex += 1
                    begin[child], end[child] = first, last
                    clade[child] = NONE
                    for j in range(first, last):
                        clade[child] ^= keys[members[j]]
                whole[child] = clade[v]
                children[i, v - n, side] = child
            one = drawn_first(children[i, v - n, 0], children[i, v - n, 1], clade, n)
            sister = 0.0
            for k in range(2):
                child = one if k == 0 else children[i, v - n, 0] + children[i, v - n, 1] - one
                place = length_place(law, clade[child], clade[v])
                gamma = gamma_at(law, place, child < n)
                length, wide = one_length(draws, place, gamma, guard, child < n, scales[i], turned_out[v], sister, rng)
                lengths[i, child] = length
                n_wide[i] += wide
                sister = relative(length, gamma, scales[i])
                turned_out[child] = sister
            v += 1


@inlined
def one_length(draws, place, gamma, guard, outer, scale, above, sister, rng):
    """A length, and whether (1 or 0) it came from a wider distribution.

    Drawn from the Gamma or, half of the guard's share each, from an Exponential of the same mean (which, unlike Gammas of shape
    above one, does not vanish at zero) and from the prior (no tail is longer): weights of draws are then bounded in both.
    """
    if guard[0] == 0.0:
        return draw_gamma(rng, gamma[0], gamma[1]), 0
    shape, rate, _ = responding(draws, place, gamma, scale, above, sister)
    at = 1 if outer else 3
    u = rng.random()
    if u < 0.5 * guard[0]:
        return draw_gamma(rng, 1.0, rate / shape), 1
    if u < guard[0]:
        return draw_gamma(rng, guard[at], guard[at + 1]), 1
    return draw_gamma(rng, shape, rate), 0


@kernel
def describe_lengths(law, keys, scales, children, lengths, tops, place, ratio, above, sister):
    """What lengths respond to, for each vertex of each tree (arrays (t, 2n-2)).

    `place`: whose Gamma its branch has (-1: none); `ratio` of its length to what is expected there; `above`, `sister`: how long
    the parent's branch and the sister's (0 if drawn later) turned out.
    """
    n = children.shape[1] + 2
    order = np.empty(n - 2, dtype=np.int64)
    clade = np.empty(2 * n - 2, dtype=np.uint64)
    turned_out = np.empty(2 * n - 2)
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        name_clades(children[i], order, keys, clade)
        top = tops[i]
        gamma = length_gamma(law, clade[top], NONE, True)
        place[i, 0] = -1
        place[i, top] = length_place(law, clade[top], NONE)
        ratio[i, top] = lengths[i, top] * gamma[1] / (gamma[0] * scales[i])
        turned_out[top] = relative(lengths[i, top], gamma, scales[i])
        above[i, top], sister[i, top] = 0.0, 0.0
        for j in range(n - 3, -1, -1):
            v = order[j]
            one = drawn_first(children[i, v - n, 0], children[i, v - n, 1], clade, n)
            earlier = 0.0
            for k in range(2):
                child = one if k == 0 else children[i, v - n, 0] + children[i, v - n, 1] - one
                gamma = length_gamma(law, clade[child], clade[v], child < n)
                place[i, child] = length_place(law, clade[child], clade[v])
                ratio[i, child] = lengths[i, child] * gamma[1] / (gamma[0] * scales[i])
                above[i, child], sister[i, child] = turned_out[v], earlier
                earlier = relative(lengths[i, child], gamma, scales[i])
                turned_out[child] = earlier


@inlined
def draw_gamma(rng, shape, rate):
    while True:
        value = rng.standard_gamma(shape) / rate
        if MIN_LENGTH <= value <= MAX_LENGTH:
            return value
