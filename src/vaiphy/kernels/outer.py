"""Messages in all directions of a guide tree, in the normalised form of `merge`."""

import math

import numpy as np

from vaiphy.kernels.compile import kernel
from vaiphy.kernels.logsum import weighted_log_sum
from vaiphy.kernels.merge import join


@kernel
def fill_messages(model, children, lengths, counts, pool, logs, norm):
    """Fill pool[v] (data at and below v) and pool[n_vertices + v] (everything else, at v's parent) with their log-likelihoods.

    Binary arrays rooted at taxon 0; pool[:n_taxa] and logs[:n_taxa] hold the taxa.
    """
    n_taxa = children.shape[0] + 2
    n_vertices = 2 * n_taxa - 2
    for k in range(n_taxa - 2):
        a, b = children[k, 0], children[k, 1]
        join(model, pool, n_taxa + k, a, lengths[a], b, lengths[b], norm)
        logs[n_taxa + k] = logs[a] + logs[b] + weighted_log_sum(norm, counts, 0, counts.shape[0])
    top = n_vertices - 1
    for a in range(4):
        for p in range(counts.shape[0]):
            pool[n_vertices + top, a, p] = pool[0, a, p]
    logs[n_vertices + top] = logs[0]
    for k in range(n_taxa - 3, -1, -1):
        v = n_taxa + k
        for side in range(2):
            c, sister = children[k, side], children[k, 1 - side]
            join(model, pool, n_vertices + c, n_vertices + v, lengths[v], sister, lengths[sister], norm)
            logs[n_vertices + c] = logs[n_vertices + v] + logs[sister] + weighted_log_sum(norm, counts, 0, counts.shape[0])


@kernel
def send(model, pool, source, length, outer, out):
    """outer[out] = the message of pool[source] through a branch."""
    u, q = np.float32(math.exp(-model.beta * length)), np.float32(-math.expm1(-model.beta * length))
    for a in range(4):
        for p in range(pool.shape[2]):
            outer[out, a, p] = q + u * pool[source, a, p]
