"""Trees rooted at taxon 0, in any numbering of their internal vertices: orders, parents, names of clades, one numbering for all.

`children` (n - 2, 2) holds the children of internal vertex n + i; the top is the only child of taxon 0. Clades are known by
64-bit identities: the exclusive-or of their taxa's random keys (`binary.taxon_keys`, key 0 for taxon 0).
"""

import numpy as np

from vaiphy.kernels.binary import mix
from vaiphy.kernels.compile import inlined, kernel

NONE = np.uint64(0)


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
