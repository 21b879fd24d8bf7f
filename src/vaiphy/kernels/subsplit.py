"""Walking and growing trees by a table of subsplits (see `topology.subsplit` for the law).

A table is sorted by key: the entries of key k are rows start[k]:start[k + 1], each a child clade (the one of the two with the
smaller hash) with its probability. Clades are hashes (`kernels.binary`) and, where their members matter, bit sets of `words`
uint64.
"""

import numpy as np

from vaiphy.kernels.binary import fill_clades, mix
from vaiphy.kernels.compile import inlined, kernel

LOG2 = 0.6931471805599453


@inlined
def pair_key(clade, sister):
    """One key for an ordered pair of clades."""
    return mix(clade ^ mix(sister + np.uint64(0x9E3779B97F4A7C15)))


@inlined
def find(sorted_keys, key):
    """Index of `key`, or -1."""
    low = 0
    high = sorted_keys.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if sorted_keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < sorted_keys.shape[0] and sorted_keys[low] == key else -1


@inlined
def find_child(rows, begin, end, clade):
    """Row of a child clade among rows begin:end (sorted by clade), or -1."""
    while begin < end:
        middle = (begin + end) >> 1
        if rows[middle] < clade:
            begin = middle + 1
        elif rows[middle] > clade:
            end = middle
        else:
            return middle
    return -1


@inlined
def split_density(
    clade,
    sister,
    size,
    small,
    pair_keys,
    pair_start,
    pair_share,
    pair_child,
    pair_probability,
    clade_keys,
    clade_start,
    clade_child,
    clade_probability,
    floor,
):
    """Probability of splitting `clade` (beside `sister`) so that one side is `small`; and how much of it is the floor's."""
    uniform = np.exp(-LOG2 * (size - 1)) / (1.0 - np.exp(-LOG2 * (size - 1)))
    k = find(clade_keys, clade)
    if k < 0:
        return uniform, uniform
    row = find_child(clade_child, clade_start[k], clade_start[k + 1], small)
    by_clade = clade_probability[row] if row >= 0 else 0.0
    learned = by_clade
    j = find(pair_keys, pair_key(clade, sister))
    if j >= 0:
        row = find_child(pair_child, pair_start[j], pair_start[j + 1], small)
        by_pair = pair_probability[row] if row >= 0 else 0.0
        learned = pair_share[j] * by_pair + (1.0 - pair_share[j]) * by_clade
    return (1.0 - floor) * learned + floor * uniform, floor * uniform


@kernel
def log_density(
    children,
    keys,
    sizes_work,
    pair_keys,
    pair_start,
    pair_share,
    pair_child,
    pair_probability,
    clade_keys,
    clade_start,
    clade_child,
    clade_probability,
    floor,
    out,
):
    """out[t]: log-probability of each topology under the law."""
    n = children.shape[1] + 2
    clades = np.empty(2 * n - 2, dtype=np.uint64)
    sister = np.zeros(2 * n - 2, dtype=np.uint64)
    for t in range(children.shape[0]):
        fill_clades(children[t], keys, clades)
        sizes_work[:n] = 1
        for k in range(n - 2):
            a, b = children[t, k, 0], children[t, k, 1]
            sizes_work[n + k] = sizes_work[a] + sizes_work[b]
            sister[a] = clades[b]
            sister[b] = clades[a]
        sister[2 * n - 3] = np.uint64(0)
        total = 0.0
        for k in range(n - 2):
            v = n + k
            if sizes_work[v] > 2:
                small = min(clades[children[t, k, 0]], clades[children[t, k, 1]])
                density, _ = split_density(
                    clades[v], sister[v], sizes_work[v], small, pair_keys, pair_start, pair_share, pair_child, pair_probability,
                    clade_keys, clade_start, clade_child, clade_probability, floor,
                )  # fmt: skip
                total += np.log(density)
        out[t] = total


@inlined
def draw_row(rng, probability, begin, end):
    """A row among begin:end, drawn with its probability."""
    u = rng.random()
    total = 0.0
    for row in range(begin, end):
        total += probability[row]
        if u < total:
            return row
    return end - 1


@kernel
def sample(
    rng,
    keys,
    pair_keys,
    pair_start,
    pair_share,
    pair_child,
    pair_probability,
    pair_bits,
    clade_keys,
    clade_start,
    clade_child,
    clade_probability,
    clade_bits,
    floor,
    children,
    log_q,
    n_floor,
):
    """Draw one topology per row of `children`, with its log-probability; n_floor counts splits drawn from the floor."""
    n = children.shape[1] + 2
    words = pair_bits.shape[1]
    top = 2 * n - 3
    clades = np.empty(2 * n - 2, dtype=np.uint64)
    sisters = np.empty(2 * n - 2, dtype=np.uint64)
    bits = np.zeros((2 * n - 2, words), dtype=np.uint64)
    side = np.zeros(words, dtype=np.uint64)
    one = np.uint64(1)
    for t in range(children.shape[0]):
        total = 0.0
        n_floor[t] = 0
        clades[top] = np.uint64(0)
        bits[top, :] = np.uint64(0)
        for v in range(1, n):
            clades[top] ^= keys[v]
            bits[top, v >> 6] |= one << np.uint64(v & 63)
        sisters[top] = np.uint64(0)
        next_vertex = top - 1
        for v in range(top, n - 1, -1):
            clade = clades[v]
            size = 0
            for w in range(words):
                x = bits[v, w]
                while x:
                    x &= x - one
                    size += 1
            k = find(clade_keys, clade) if size > 2 else -1
            small = np.uint64(0)
            if k < 0 or rng.random() < floor:
                # Each member but the first goes to either side; start again if all went to the first one's.
                if size > 2:
                    n_floor[t] += 1
                while True:
                    first = True
                    n_other = 0
                    small = np.uint64(0)
                    for w in range(words):
                        side[w] = np.uint64(0)
                        for b in range(64):
                            if bits[v, w] >> np.uint64(b) & one:
                                if first or rng.random() < 0.5:
                                    side[w] |= one << np.uint64(b)
                                    small ^= keys[64 * w + b]
                                else:
                                    n_other += 1
                                first = False
                    if n_other > 0:
                        break
            else:
                j = find(pair_keys, pair_key(clade, sisters[v]))
                if j >= 0 and rng.random() < pair_share[j]:
                    row = draw_row(rng, pair_probability, pair_start[j], pair_start[j + 1])
                    small = pair_child[row]
                    side[:] = pair_bits[row]
                else:
                    row = draw_row(rng, clade_probability, clade_start[k], clade_start[k + 1])
                    small = clade_child[row]
                    side[:] = clade_bits[row]
            other = clade ^ small
            if size > 2:
                density, _ = split_density(
                    clade, sisters[v], size, min(small, other), pair_keys, pair_start, pair_share, pair_child, pair_probability,
                    clade_keys, clade_start, clade_child, clade_probability, floor,
                )  # fmt: skip
                total += np.log(density)
            for s in range(2):
                mine = small if s == 0 else other
                # A single taxon is its own vertex; a larger clade takes the next internal one, below its parent.
                count = 0
                member = 0
                for w in range(words):
                    x = side[w] if s == 0 else bits[v, w] & ~side[w]
                    if x and count == 0:
                        lowest = 0
                        while not x >> np.uint64(lowest) & one:
                            lowest += 1
                        member = 64 * w + lowest
                    while x:
                        x &= x - one
                        count += 1
                if count == 1:
                    children[t, v - n, s] = member
                else:
                    children[t, v - n, s] = next_vertex
                    clades[next_vertex] = mine
                    sisters[next_vertex] = clade ^ mine
                    for w in range(words):
                        bits[next_vertex, w] = side[w] if s == 0 else bits[v, w] & ~side[w]
                    next_vertex -= 1
        log_q[t] = total


@kernel
def extract(children, keys, weights, pair, clade, child, bits, weight):
    """All subsplits of clades with three or more taxa: keys of pair and clade, child clade with its bits, and the tree's weight.

    Returns their number; output arrays must hold n_trees * (n - 2) entries.
    """
    n = children.shape[1] + 2
    words = bits.shape[1]
    clades = np.empty(2 * n - 2, dtype=np.uint64)
    sister = np.zeros(2 * n - 2, dtype=np.uint64)
    sizes = np.ones(2 * n - 2, dtype=np.int32)
    members = np.zeros((2 * n - 2, words), dtype=np.uint64)
    for v in range(n):
        members[v, v >> 6] = np.uint64(1) << np.uint64(v & 63)
    row = 0
    for t in range(children.shape[0]):
        fill_clades(children[t], keys, clades)
        for k in range(n - 2):
            a, b = children[t, k, 0], children[t, k, 1]
            sizes[n + k] = sizes[a] + sizes[b]
            for w in range(words):
                members[n + k, w] = members[a, w] | members[b, w]
            sister[a] = clades[b]
            sister[b] = clades[a]
        sister[2 * n - 3] = np.uint64(0)
        for k in range(n - 2):
            v = n + k
            if sizes[v] > 2:
                a, b = children[t, k, 0], children[t, k, 1]
                small = a if clades[a] < clades[b] else b
                pair[row] = pair_key(clades[v], sister[v])
                clade[row] = clades[v]
                child[row] = clades[small]
                for w in range(words):
                    bits[row, w] = members[small, w]
                weight[row] = weights[t]
                row += 1
    return row


@kernel
def recombine(hashes, bits, sizes, weights, parents, out_parent, out_child, out_weight):
    """Splits of known clades into two other known clades, whether or not they were ever seen together.

    Clades are sorted by hash; `parents` lists those (by index, three or more taxa) whose splits are wanted. Each split is
    written once, as (parent index, index of the side with the parent's lowest taxon, product of the two sides' weights).
    Returns how many there are; stops when the output is full.
    """
    words = bits.shape[1]
    n_found = 0
    for i in range(parents.shape[0]):
        c = parents[i]
        word = 0
        while bits[c, word] == np.uint64(0):
            word += 1
        lowest = bits[c, word] & (~bits[c, word] + np.uint64(1))
        for a in range(hashes.shape[0]):
            if sizes[a] >= sizes[c] or not bits[a, word] & lowest:
                continue
            inside = True
            for w in range(words):
                if bits[a, w] & ~bits[c, w]:
                    inside = False
                    break
            if not inside:
                continue
            b = find(hashes, hashes[c] ^ hashes[a])
            if b >= 0:
                if n_found == out_parent.shape[0]:
                    return n_found
                out_parent[n_found] = c
                out_child[n_found] = a
                out_weight[n_found] = weights[a] * weights[b]
                n_found += 1
    return n_found
