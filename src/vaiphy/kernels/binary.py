"""Unrooted binary trees as arrays: `children` (n - 2, 2), rooted at leaf 0.

Internal vertex n + k has the children children[k]; both are smaller than n + k, so ascending order is a postorder. The last
vertex, 2n - 3, hangs from leaf 0, the root. `lengths[v]` (or `decay[v]`) belongs to the branch above v; entry 0 is unused.
Clades are recognised by 64-bit hashes: each taxon has a random key, a clade is the exclusive-or of its taxa's keys.
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel


def taxon_keys(n_taxa):
    """The random keys from which clade hashes are made: a function of the number of taxa alone."""
    keys = np.random.default_rng(0x5EED).integers(1, 2**64 - 1, size=max(n_taxa, 64) + 64, dtype=np.uint64)
    return keys[: 64 * ((n_taxa + 63) // 64)]


@inlined
def mix(x):
    """A 64-bit finaliser (splitmix64): every bit of the result depends on every bit of x."""
    x = np.uint64(x)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def fill_schedule(children, order, start, child):
    """The tree as `pruning` and `edges` read it."""
    n = children.shape[0] + 2
    start[0] = 0
    child[0] = 2 * n - 3
    for v in range(1, n + 1):
        start[v] = 1
    for k in range(n - 2):
        order[k] = n + k
        child[1 + 2 * k] = children[k, 0]
        child[2 + 2 * k] = children[k, 1]
        start[n + k + 1] = 3 + 2 * k
    order[n - 2] = 0


@inlined
def fill_clades(children, keys, clades):
    """clades[v]: hash of the taxa below v (taxon 0 is never below)."""
    n = children.shape[0] + 2
    for v in range(n):
        clades[v] = keys[v]
    for k in range(n - 2):
        clades[n + k] = clades[children[k, 0]] ^ clades[children[k, 1]]


@kernel
def topology_hashes(children, keys, out):
    """out[t]: a hash of each topology children[t], equal for equal topologies however they are numbered."""
    n = children.shape[1] + 2
    clades = np.empty(2 * n - 2, dtype=np.uint64)
    for t in range(children.shape[0]):
        fill_clades(children[t], keys, clades)
        total = np.uint64(0)
        for k in range(n - 2):
            total += mix(clades[n + k])
        out[t] = total


@inlined
def fill_neighbours(children, lengths, neighbour, span):
    """Adjacency: neighbour[v, :] (leaves use slot 0 only) and the lengths of those branches in `span`."""
    n = children.shape[0] + 2
    top = 2 * n - 3
    neighbour[0, 0] = top
    span[0, 0] = lengths[top]
    neighbour[top, 2] = 0
    span[top, 2] = lengths[top]
    for k in range(n - 2):
        v = n + k
        for side in range(2):
            c = children[k, side]
            neighbour[v, side] = c
            span[v, side] = lengths[c]
            slot = 0 if c < n else 2
            neighbour[c, slot] = v
            span[c, slot] = lengths[c]


@inlined
def slot_of(neighbour, v, w):
    """Which slot of v holds its neighbour w."""
    return 0 if neighbour[v, 0] == w else 1 if neighbour[v, 1] == w else 2


@inlined
def fill_tree(neighbour, span, children, lengths, stack, new_name):
    """children and lengths of the tree with the given adjacency, internal vertices numbered in a postorder."""
    n = children.shape[0] + 2
    # Preorder from leaf 0; walking it backwards numbers children before parents.
    top = neighbour[0, 0]
    stack[0] = top
    new_name[top] = 0  # parent, while descending
    n_found = 1
    reading = 0
    while reading < n_found:
        v = stack[reading]
        reading += 1
        if v >= n:
            for side in range(3):
                c = neighbour[v, side]
                if c != new_name[v]:
                    new_name[c] = v
                    stack[n_found] = c
                    n_found += 1
    next_name = n
    for i in range(n_found - 1, -1, -1):
        v = stack[i]
        above = new_name[v]
        slot = slot_of(neighbour, v, above) if v >= n else 0
        length = span[v, slot]
        if v < n:
            lengths[v] = length
            continue
        k = next_name - n
        filled = 0
        for side in range(3):
            c = neighbour[v, side]
            if side != slot:
                # Children come later in `stack`, so they have their new names already.
                children[k, filled] = c if c < n else new_name[c]
                filled += 1
        if children[k, 0] > children[k, 1]:
            children[k, 0], children[k, 1] = children[k, 1], children[k, 0]
        lengths[next_name] = length
        new_name[v] = next_name
        next_name += 1


@inlined
def replace_neighbour(neighbour, span, v, old, new, length):
    slot = slot_of(neighbour, v, old)
    neighbour[v, slot] = new
    span[v, slot] = length


@inlined
def other_two(neighbour, span, w, a):
    """The neighbours of w besides a, each with the length of its branch."""
    x = -1
    y = -1
    bx = 0.0
    by = 0.0
    for side in range(3):
        c = neighbour[w, side]
        if c != a:
            if x < 0:
                x, bx = c, span[w, side]
            else:
                y, by = c, span[w, side]
    return x, bx, y, by


@inlined
def move_subtree(neighbour, span, a, w, p, q, new):
    """Cut the part behind a off at w, close the gap, and hang it into the branch p-q; new: lengths of a-w, w-p and w-q."""
    x, bx, y, by = other_two(neighbour, span, w, a)
    replace_neighbour(neighbour, span, x, w, y, bx + by)
    replace_neighbour(neighbour, span, y, w, x, bx + by)
    replace_neighbour(neighbour, span, p, q, w, new[1])
    replace_neighbour(neighbour, span, q, p, w, new[2])
    replace_neighbour(neighbour, span, a, w, w, new[0])
    neighbour[w, 0], neighbour[w, 1], neighbour[w, 2] = a, p, q
    span[w, 0], span[w, 1], span[w, 2] = new[0], new[1], new[2]


@kernel
def apply_moves(children, lengths, moves, spans, out_children, out_lengths):
    """Trees after each of the moves (a, w, p, q): the part behind a, cut off at w, is hung into the branch p-q.

    `spans` holds the new lengths of a-w, w-p and w-q.
    """
    n = children.shape[0] + 2
    neighbour = np.empty((2 * n - 2, 3), dtype=np.int32)
    span = np.empty((2 * n - 2, 3))
    stack = np.empty(2 * n - 2, dtype=np.int32)
    new_name = np.empty(2 * n - 2, dtype=np.int32)
    for m in range(moves.shape[0]):
        fill_neighbours(children, lengths, neighbour, span)
        move_subtree(neighbour, span, moves[m, 0], moves[m, 1], moves[m, 2], moves[m, 3], spans[m])
        fill_tree(neighbour, span, out_children[m], out_lengths[m], stack, new_name)


@inlined
def behind(neighbour, a, w, p, n_taxa, stack, come_from):
    """Whether vertex p lies in the part behind a, seen from w."""
    stack[0] = a
    come_from[a] = w
    depth = 1
    while depth > 0:
        depth -= 1
        v = stack[depth]
        if v == p:
            return True
        if v >= n_taxa:
            for side in range(3):
                c = neighbour[v, side]
                if c != come_from[v]:
                    come_from[c] = v
                    stack[depth] = c
                    depth += 1
    return False


@kernel
def apply_together(children, lengths, moves, spans, out_children, out_lengths):
    """One tree after as many of the moves (best first) as do not touch each other; returns how many were made."""
    n = children.shape[0] + 2
    neighbour = np.empty((2 * n - 2, 3), dtype=np.int32)
    span = np.empty((2 * n - 2, 3))
    stack = np.empty(2 * n - 2, dtype=np.int32)
    new_name = np.empty(2 * n - 2, dtype=np.int32)
    touched = np.zeros(2 * n - 2, dtype=np.bool_)
    fill_neighbours(children, lengths, neighbour, span)
    n_made = 0
    for m in range(moves.shape[0]):
        a, w, p, q = moves[m, 0], moves[m, 1], moves[m, 2], moves[m, 3]
        free = not (touched[a] or touched[w] or touched[p] or touched[q])
        for side in range(3):
            free = free and not touched[neighbour[w, side]]
        if not free or behind(neighbour, a, w, p, n, stack, new_name):
            continue
        for side in range(3):
            touched[neighbour[w, side]] = True
        touched[w] = touched[p] = touched[q] = True
        move_subtree(neighbour, span, a, w, p, q, spans[m])
        n_made += 1
    fill_tree(neighbour, span, out_children, out_lengths, stack, new_name)
    return n_made
