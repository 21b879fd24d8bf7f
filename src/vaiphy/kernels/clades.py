"""A distribution over unrooted binary trees with branch lengths that is cheap after a local change.

Trees are rooted at taxon 0. Each clade is split in two given its context, the clade that it is part of (so by subsplits); where
the context was seldom seen, given the clade alone; and with a small probability, or if the clade was never seen, as in a tree
drawn uniformly. So every tree has positive density, and an empty table is the uniform prior on topologies. Each branch's length
has a Gamma of its context, or of its clade, or of branches in general. Where splits are required (`constraints`), all of this is
about the trees that have them; `size` is then each clade's standing.

Clades are known by 64-bit identities: the exclusive-or of their taxa's random keys (`binary.taxon_keys`, key 0 for taxon 0).
"""

from typing import Any, NamedTuple

import numpy as np

from vaiphy.kernels.binary import mix
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.constraints import Rules, log_uniform, name_standings, united
from vaiphy.kernels.rooted import NONE, fill_parents, fill_postorder, name_clades

ODD = np.uint64(0x9E3779B97F4A7C15)


class Clades(NamedTuple):
    """Open-addressing tables, looked up by identity.

    Splits: the log-probability of a split of a clade, and of a split in a context (a clade and the clade it is part of).
    Places, for clades and contexts alike: shape and rate of the Gamma of the branch (shape 0: unknown), the log-probability
    that the split is none of those seen there (1: never split), and the logarithm of the Gamma's constant factor. `numbers`:
    shape, rate and that logarithm for inner branches of unknown clades, the same for outer ones. `rules`: splits that are
    required, or forbidden (which the distribution knows nothing of).
    """

    split_key: Any  # (size,) uint64
    split_value: Any  # (size,)
    place_key: Any  # (size,) uint64
    place_value: Any  # (size, 4)
    log_trees: Any  # log number of rooted trees with k leaves
    numbers: Any  # (6,)
    rules: Rules


@inlined
def find(keys, key):
    """Where a key is, or -1. The number of places is a power of two; 0 marks a free place."""
    mask = np.uint64(keys.shape[0] - 1)
    at = mix(key) & mask
    while keys[at] != NONE:
        if keys[at] == key:
            return np.int64(at)
        at = (at + np.uint64(1)) & mask
    return np.int64(-1)


@kernel
def place_all(keys, table, place):
    """Put distinct keys into a table that is large enough; place[i] is where key i went."""
    mask = np.uint64(table.shape[0] - 1)
    for i in range(keys.shape[0]):
        at = mix(keys[i]) & mask
        while table[at] != NONE:
            at = (at + np.uint64(1)) & mask
        table[at] = keys[i]
        place[i] = np.int64(at)


@inlined
def split_identity(a, b):
    """Identity of the split of the clade a|b into a and b, whichever is named first."""
    return (mix(a ^ ODD) + mix(b ^ ODD)) | np.uint64(1)


@inlined
def context_identity(clade, parent):
    """Identity of a clade as part of the clade `parent` (0: of the whole tree)."""
    return (mix(clade ^ ODD) + np.uint64(3) * mix(parent + ODD)) | np.uint64(1)


@inlined
def joint_identity(context, split):
    return mix(context + np.uint64(5) * split) | np.uint64(1)


@inlined
def log_split(law, parent, a, b, size_a, size_b):
    """Log-probability that the clade made of a and b, itself a part of `parent`, is split into these two."""
    if law.rules.blocks.shape[0] == 0:
        if size_a + size_b == 2:
            return 0.0
    elif united(law.rules, size_a, size_b) < 0:
        return -np.inf
    split, context = split_identity(a, b), context_identity(a ^ b, parent)
    at = find(law.split_key, joint_identity(context, split))
    if at >= 0:
        return law.split_value[at]
    total = 0.0
    place = find(law.place_key, context)
    if place >= 0 and law.place_value[place, 2] <= 0.0:
        total = law.place_value[place, 2]
    at = find(law.split_key, split)
    if at >= 0:
        return total + law.split_value[at]
    total += log_uniform(law.rules, law.log_trees, size_a, size_b)
    place = find(law.place_key, a ^ b)
    if place >= 0 and law.place_value[place, 2] <= 0.0:
        total += law.place_value[place, 2]
    return total


@inlined
def length_place(law, clade, parent):
    """The place whose Gamma a clade's branch has: its context or the clade itself; -1 if neither has one."""
    at = find(law.place_key, context_identity(clade, parent))
    if at < 0 or law.place_value[at, 0] == 0.0:
        at = find(law.place_key, clade)
    if at >= 0 and law.place_value[at, 0] == 0.0:
        at = np.int64(-1)
    return at


@inlined
def gamma_at(law, place, outer):
    """Shape, rate and log constant factor of the Gamma at a place, or of branches in general (place -1)."""
    if place >= 0:
        return law.place_value[place, 0], law.place_value[place, 1], law.place_value[place, 3]
    if outer:
        return law.numbers[3], law.numbers[4], law.numbers[5]
    return law.numbers[0], law.numbers[1], law.numbers[2]


@inlined
def length_gamma(law, clade, parent, outer):
    """Shape, rate and log constant factor of the Gamma of a clade's branch."""
    return gamma_at(law, length_place(law, clade, parent), outer)


@inlined
def length_term(law, clade, parent, outer, length):
    """Log-density of a branch's length."""
    shape, rate, constant = length_gamma(law, clade, parent, outer)
    return constant + (shape - 1.0) * np.log(length) - rate * length


@inlined
def split_term(v, whole, children, clade, size, law):
    """Log-probability of how vertex v is split, if it is part of the clade `whole`; 0 for a taxon."""
    n = children.shape[0] + 2
    if v < n:
        return 0.0
    a, b = children[v - n, 0], children[v - n, 1]
    return log_split(law, whole, clade[a], clade[b], size[a], size[b])


@inlined
def log_density_of(law, children, parent, lengths, top, clade, size):
    """Log-density of a tree whose clades are named."""
    n = children.shape[0] + 2
    total = 0.0
    for v in range(1, 2 * n - 2):
        whole = clade[parent[v]]  # that of taxon 0 is 0
        total += length_term(law, clade[v], whole, v < n or v == top, lengths[v])
        total += split_term(v, whole, children, clade, size, law)
    return total


@kernel
def log_densities(law, keys, children, lengths, tops, out):
    """out[i]: log-density of each tree."""
    n = children.shape[1] + 2
    order = np.empty(n - 2, dtype=np.int64)
    parent = np.zeros(2 * n - 2, dtype=np.int64)
    clade = np.empty(2 * n - 2, dtype=np.uint64)
    size = np.empty(2 * n - 2, dtype=np.int64)
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        fill_parents(children[i], tops[i], parent)
        name_clades(children[i], order, keys, clade)
        name_standings(children[i], order, law.rules, size)
        out[i] = log_density_of(law, children[i], parent, lengths[i], tops[i], clade, size)


@kernel
def describe(children, tops, keys, rules, log_trees, split_key, uniform, child_set, clade_set, standing, clade_key, context_key):
    """Splits, clades and contexts of each tree.

    split_key, uniform (t, n-2): identity of the split of each internal vertex, and its log-probability in a tree drawn uniformly;
    child_set, clade_set (t, n-2, words): taxa of the child that has its first taxon, and of the vertex itself; standing,
    clade_key, context_key (t, 2n-2): standing of each vertex (see `constraints`), identities of the clade below it, alone and as
    part of its parent's.
    """
    n = children.shape[1] + 2
    words = child_set.shape[2]
    order = np.empty(n - 2, dtype=np.int64)
    bits = np.zeros((2 * n - 2, words), dtype=np.uint64)
    least = np.empty(2 * n - 2, dtype=np.int64)
    for v in range(n):
        bits[v, v >> 6] = np.uint64(1) << np.uint64(v & 63)
        least[v] = v
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        name_clades(children[i], order, keys, clade_key[i])
        name_standings(children[i], order, rules, standing[i])
        for j in range(n - 2):
            v = order[j]
            a, b = children[i, v - n, 0], children[i, v - n, 1]
            if least[a] > least[b]:
                a, b = b, a
            least[v] = least[a]
            for w in range(words):
                bits[v, w] = bits[a, w] | bits[b, w]
                child_set[i, v - n, w] = bits[a, w]
                clade_set[i, v - n, w] = bits[v, w]
            split_key[i, v - n] = split_identity(clade_key[i, a], clade_key[i, b])
            uniform[i, v - n] = log_uniform(rules, log_trees, standing[i, a], standing[i, b])
            context_key[i, a] = context_identity(clade_key[i, a], clade_key[i, v])
            context_key[i, b] = context_identity(clade_key[i, b], clade_key[i, v])
        context_key[i, 0] = NONE
        context_key[i, tops[i]] = context_identity(clade_key[i, tops[i]], NONE)


@kernel
def joint_identities(context, split, out):
    """out[i]: identity of a split in a context."""
    for i in range(out.shape[0]):
        out[i] = joint_identity(context[i], split[i])
