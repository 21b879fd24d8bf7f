"""Trees of particles as arrays: from the shared list of vertices to rooted arrays to binary arrays rooted at taxon 0."""

import numpy as np

from vaiphy.kernels.compile import kernel


@kernel
def flatten(roots, children, lengths, n_taxa, out_children, out_lengths):
    """out_children[k, i] are the children of vertex n+i of tree k, out_lengths[k, v] the branch above v.

    Vertices are numbered by walking down from the root with the larger numbers first, so children come before parents.
    """
    stack = np.empty(2 * n_taxa, dtype=np.int64)
    label = np.empty(2 * n_taxa, dtype=np.int64)
    for k in range(roots.shape[0]):
        following = 2 * n_taxa - 3
        stack[0], label[0] = roots[k], 2 * n_taxa - 2
        depth = 1
        while depth > 0:
            depth -= 1
            vertex, name = stack[depth], label[depth]
            for side in range(2):
                child = children[vertex, side]
                below = child
                if child >= n_taxa:
                    below = following
                    following -= 1
                    stack[depth], label[depth] = child, below
                    depth += 1
                out_children[k, name - n_taxa, side] = below
                out_lengths[k, below] = lengths[vertex, side]


@kernel
def unroot(children, lengths, out_children, out_lengths):
    """Rooted arrays -> binary arrays rooted at taxon 0."""
    n_taxa = children.shape[1] + 1
    root = 2 * n_taxa - 2
    neighbour = np.empty((2 * n_taxa - 1, 3), dtype=np.int64)
    branch = np.empty((2 * n_taxa - 1, 3))
    degree = np.empty(2 * n_taxa - 1, dtype=np.int64)
    stack = np.empty(2 * n_taxa, dtype=np.int64)
    above = np.empty(2 * n_taxa, dtype=np.int64)
    name = np.empty(2 * n_taxa, dtype=np.int64)
    for k in range(children.shape[0]):
        degree[:] = 0
        for i in range(n_taxa - 1):
            vertex = n_taxa + i
            if vertex == root:
                x, y = children[k, i, 0], children[k, i, 1]
                length = lengths[k, x] + lengths[k, y]
                link(neighbour, branch, degree, x, y, length)
            else:
                for side in range(2):
                    child = children[k, i, side]
                    link(neighbour, branch, degree, vertex, child, lengths[k, child])
        following = 2 * n_taxa - 4
        start = neighbour[0, 0]
        out_lengths[k, 0] = 0.0
        out_lengths[k, 2 * n_taxa - 3] = branch[0, 0]
        stack[0], above[0], name[0] = start, 0, 2 * n_taxa - 3
        depth = 1
        while depth > 0:
            depth -= 1
            vertex, parent, label = stack[depth], above[depth], name[depth]
            side = 0
            for e in range(3):
                child = neighbour[vertex, e]
                if child == parent:
                    continue
                below = child
                if child >= n_taxa:
                    below = following
                    following -= 1
                    stack[depth], above[depth], name[depth] = child, vertex, below
                    depth += 1
                out_children[k, label - n_taxa, side] = below
                out_lengths[k, below] = branch[vertex, e]
                side += 1


@kernel
def link(neighbour, branch, degree, x, y, length):
    neighbour[x, degree[x]], branch[x, degree[x]] = y, length
    neighbour[y, degree[y]], branch[y, degree[y]] = x, length
    degree[x] += 1
    degree[y] += 1
