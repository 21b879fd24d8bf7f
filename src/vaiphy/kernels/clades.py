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
from vaiphy.kernels.branch import MAX_LENGTH, MIN_LENGTH, log_gamma
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.constraints import Rules, log_uniform, name_standings, united
from vaiphy.kernels.uniform import uniform_blocks, uniform_part

ODD = np.uint64(0x9E3779B97F4A7C15)
NONE = np.uint64(0)


class Clades(NamedTuple):
    """Open-addressing tables, looked up by identity.

    Splits: the log-probability of a split of a clade, and of a split in a context (a clade and the clade it is part of).
    Places, for clades and contexts alike: shape and rate of the Gamma of the branch (shape 0: unknown), and the log-probability
    that the split is none of those seen there (1: never split). `numbers`: shape and rate of inner branches of unknown clades,
    the same for outer ones. `rules`: splits that are required, or forbidden (which the distribution knows nothing of).
    """

    split_key: Any  # (size,) uint64
    split_value: Any  # (size,)
    place_key: Any  # (size,) uint64
    place_value: Any  # (size, 3)
    log_trees: Any  # log number of rooted trees with k leaves
    numbers: Any  # (4,)
    rules: Rules


class Draws(NamedTuple):
    """What drawing needs besides: the splits seen at each place, as ranges of `child` (taxa of one part) and `cumulative`."""

    first: Any  # (places,) int64
    last: Any
    child: Any  # (n_splits, words) uint64
    cumulative: Any  # (n_splits,)


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
def length_gamma(law, clade, parent, outer):
    """Shape and rate of the Gamma of a clade's branch."""
    at = find(law.place_key, context_identity(clade, parent))
    if at < 0 or law.place_value[at, 0] == 0.0:
        at = find(law.place_key, clade)
    if at >= 0 and law.place_value[at, 0] > 0.0:
        return law.place_value[at, 0], law.place_value[at, 1]
    if outer:
        return law.numbers[2], law.numbers[3]
    return law.numbers[0], law.numbers[1]


@inlined
def length_term(law, clade, parent, outer, length):
    """Log-density of a branch's length."""
    shape, rate = length_gamma(law, clade, parent, outer)
    return log_gamma(length, shape, rate)


@inlined
def split_term(v, whole, children, clade, size, law):
    """Log-probability of how vertex v is split, if it is part of the clade `whole`; 0 for a taxon."""
    n = children.shape[0] + 2
    if v < n:
        return 0.0
    a, b = children[v - n, 0], children[v - n, 1]
    return log_split(law, whole, clade[a], clade[b], size[a], size[b])


@inlined
def fill_postorder(children, top, order):
    """Internal vertices below and at `top`, children before parents; returns how many."""
    n = children.shape[0] + 2
    order[0] = top
    found = 1
    reading = 0
    while reading < found:
        v = order[reading]
        reading += 1
        for side in range(2):
            c = children[v - n, side]
            if c >= n:
                order[found] = c
                found += 1
    for i in range(found // 2):
        order[i], order[found - 1 - i] = order[found - 1 - i], order[i]
    return found


@inlined
def name_clades(children, order, keys, clade):
    """clade[v] of every vertex; `order` is a postorder of the internal ones."""
    n = children.shape[0] + 2
    for v in range(n):
        clade[v] = keys[v]
    for i in range(n - 2):
        v = order[i]
        clade[v] = clade[children[v - n, 0]] ^ clade[children[v - n, 1]]


@inlined
def fill_parents(children, top, parent):
    """parent[v] of every vertex; taxon 0 for the top."""
    n = children.shape[0] + 2
    for k in range(n - 2):
        parent[children[k, 0]] = n + k
        parent[children[k, 1]] = n + k
    parent[top] = 0


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
def sample(law, draws, keys, rng, children, lengths, tops):
    """Draw trees; internal vertices are numbered parents first, the top being vertex n."""
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
        next_vertex = n + 1
        v = n
        while v < next_vertex:
            low, high = begin[v], end[v]
            clade = NONE
            for j in range(low, high):
                clade ^= keys[members[j]]
            shape, rate = length_gamma(law, clade, whole[v], v == n)
            lengths[i, v] = draw_gamma(rng, shape, rate)
            part = 1
            if high - low > 2:
                part = draw_split(law, draws, clade, whole[v], members[low:high], other, rng)
            for side in range(2):
                first = low if side == 0 else low + part
                last = low + part if side == 0 else high
                if last - first == 1:
                    taxon = members[first]
                    children[i, v - n, side] = taxon
                    shape, rate = length_gamma(law, keys[taxon], clade, True)
                    lengths[i, taxon] = draw_gamma(rng, shape, rate)
                else:
                    children[i, v - n, side] = next_vertex
                    begin[next_vertex], end[next_vertex], whole[next_vertex] = first, last, clade
                    next_vertex += 1
            v += 1


@inlined
def draw_gamma(rng, shape, rate):
    while True:
        value = rng.standard_gamma(shape) / rate
        if MIN_LENGTH <= value <= MAX_LENGTH:
            return value


@kernel
def describe(children, tops, keys, rules, log_trees, split_key, child_set, uniform, clade_key, context_key):
    """Splits, clades and contexts of each tree.

    split_key (t, n-2): identity of the split of each internal vertex; child_set (t, n-2, words): taxa of the child that has its
    first taxon; uniform (t, n-2): log-probability of the split in a tree drawn uniformly; clade_key, context_key (t, 2n-2):
    identities of the clade below each vertex, alone and as part of its parent's.
    """
    n = children.shape[1] + 2
    words = child_set.shape[2]
    order = np.empty(n - 2, dtype=np.int64)
    size = np.empty(2 * n - 2, dtype=np.int64)
    bits = np.zeros((2 * n - 2, words), dtype=np.uint64)
    least = np.empty(2 * n - 2, dtype=np.int64)
    for v in range(n):
        bits[v, v >> 6] = np.uint64(1) << np.uint64(v & 63)
        least[v] = v
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        name_clades(children[i], order, keys, clade_key[i])
        name_standings(children[i], order, rules, size)
        for j in range(n - 2):
            v = order[j]
            a, b = children[i, v - n, 0], children[i, v - n, 1]
            if least[a] > least[b]:
                a, b = b, a
            least[v] = least[a]
            for w in range(words):
                bits[v, w] = bits[a, w] | bits[b, w]
                child_set[i, v - n, w] = bits[a, w]
            split_key[i, v - n] = split_identity(clade_key[i, a], clade_key[i, b])
            uniform[i, v - n] = log_uniform(rules, log_trees, size[a], size[b])
            context_key[i, a] = context_identity(clade_key[i, a], clade_key[i, v])
            context_key[i, b] = context_identity(clade_key[i, b], clade_key[i, v])
        context_key[i, 0] = NONE
        context_key[i, tops[i]] = context_identity(clade_key[i, tops[i]], NONE)


@kernel
def joint_identities(context, split, out):
    """out[i]: identity of a split in a context."""
    for i in range(out.shape[0]):
        out[i] = joint_identity(context[i], split[i])


@kernel
def renumber(children, lengths, tops, out_children, out_lengths):
    """Trees in "binary arrays" (`binary`): vertices in a postorder that the topology alone decides, the top being the last.

    Children are ordered by their least taxon, so that trees of one topology come out numbered alike.
    """
    n = children.shape[1] + 2
    order = np.empty(n - 2, dtype=np.int64)
    least = np.empty(2 * n - 2, dtype=np.int64)
    name = np.empty(2 * n - 2, dtype=np.int64)
    stack = np.empty(2 * n, dtype=np.int64)
    for v in range(n):
        least[v] = v
        name[v] = v
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        for j in range(n - 2):
            v = order[j]
            least[v] = min(least[children[i, v - n, 0]], least[children[i, v - n, 1]])
        # Depth first, the child with the least taxon first; vertices are named as they are found, the last name first.
        stack[0] = tops[i]
        depth = 1
        next_name = 2 * n - 3
        while depth > 0:
            depth -= 1
            v = stack[depth]
            name[v] = next_name
            next_name -= 1
            a, b = children[i, v - n, 0], children[i, v - n, 1]
            if least[a] > least[b]:
                a, b = b, a
            if a >= n:
                stack[depth] = a
                depth += 1
            if b >= n:
                stack[depth] = b
                depth += 1
        out_lengths[i, 0] = 0.0
        for v in range(1, n):
            out_lengths[i, v] = lengths[i, v]
        for v in range(n, 2 * n - 2):
            a, b = children[i, v - n, 0], children[i, v - n, 1]
            if least[a] > least[b]:
                a, b = b, a
            out_children[i, name[v] - n, 0] = name[a]
            out_children[i, name[v] - n, 1] = name[b]
            out_lengths[i, name[v]] = lengths[i, v]


@kernel
def vertex_identities(children, tops, keys, out):
    """out[t, v]: identity of the clade below each vertex of trees in any numbering."""
    n = children.shape[1] + 2
    order = np.empty(n - 2, dtype=np.int64)
    for i in range(children.shape[0]):
        fill_postorder(children[i], tops[i], order)
        name_clades(children[i], order, keys, out[i])


@kernel
def topology_identities(children, keys, out):
    """out[t]: identity of each topology in binary arrays."""
    n = children.shape[1] + 2
    clade = np.empty(2 * n - 2, dtype=np.uint64)
    for t in range(children.shape[0]):
        total = NONE
        for v in range(n):
            clade[v] = keys[v]
        for k in range(n - 2):
            clade[n + k] = clade[children[t, k, 0]] ^ clade[children[t, k, 1]]
            total += mix(clade[n + k])
        out[t] = total
