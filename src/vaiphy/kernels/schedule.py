"""From a parent array to the order in which pruning visits vertices."""

import numpy as np

from vaiphy.kernels.compile import kernel


@kernel
def from_parent(parent, n_taxa, order, start, child):
    """Fill the schedule of a rooted tree; returns how many vertices have something below them, and how many are dangling.

    `order` receives the vertices with children, children first and the root last; the children of v are
    `child[start[v]:start[v + 1]]`, ascending. Dangling internal vertices (no taxon at or below them) are left out:
    summed over its states, such a part of the tree contributes a factor of one.
    """
    n_vertices = parent.shape[0]
    below = np.zeros(n_vertices, dtype=np.int32)
    dead = np.zeros(n_vertices, dtype=np.bool_)
    root = 0
    for v in range(n_vertices):
        if parent[v] >= 0:
            below[parent[v]] += 1
        else:
            root = v
    n_dead = 0
    for v in range(n_taxa, n_vertices):
        w = v
        while w >= n_taxa and below[w] == 0 and not dead[w] and parent[w] >= 0:
            dead[w] = True
            n_dead += 1
            w = parent[w]
            below[w] -= 1
    start[0] = 0
    for v in range(n_vertices):
        start[v + 1] = start[v] + below[v]
        below[v] = 0
    for v in range(n_vertices):
        above = parent[v]
        if above >= 0 and not dead[v]:
            child[start[above] + below[above]] = v
            below[above] += 1
    # Depth first from the root, written from the back: parents come after their children.
    stack = np.empty(n_vertices, dtype=np.int32)
    stack[0] = root
    size = 1
    n_order = 0
    while size > 0:
        size -= 1
        v = stack[size]
        if below[v] > 0:
            order[n_order] = v
            n_order += 1
            for i in range(start[v], start[v + 1]):
                stack[size] = child[i]
                size += 1
    for i in range(n_order // 2):
        order[i], order[n_order - 1 - i] = order[n_order - 1 - i], order[i]
    return n_order, n_dead
