"""Mergers by split support (paper, appendix D.2) and branch lengths from mixtures of JC distributions (appendix D.1)."""

import math

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.lengths import draw_length, log_length_density


@kernel
def clades_of_parents(parents, taxa, out):
    """out[t, v]: exclusive or of the hashes of the taxa at or below v, for trees given as parent arrays."""
    for t in range(parents.shape[0]):
        for v in range(parents.shape[1]):
            out[t, v] = np.uint64(0)
        for taxon in range(taxa.shape[0]):
            v = taxon
            while v >= 0:
                out[t, v] ^= taxa[taxon]
                v = parents[t, v]


@inlined
def support_of(clade_hash, hashes, support):
    """The support of a clade, 0 if it is not listed; `hashes` ascending."""
    low, high = 0, hashes.shape[0]
    while low < high:
        middle = (low + high) // 2
        if hashes[middle] < clade_hash:
            low = middle + 1
        else:
            high = middle
    return support[low] if low < hashes.shape[0] and hashes[low] == clade_hash else 0.0


@kernel
def choose_supported(rng, roots, vertex_hashes, hashes, support, floor, first, second, log_q):
    """Merge c and d with probability proportional to the support of their union plus `floor`."""
    n_particles, n_roots = roots.shape
    weight = np.empty(n_roots * (n_roots - 1) // 2)
    for k in range(n_particles):
        total = 0.0
        i = 0
        for c in range(n_roots):
            for d in range(c + 1, n_roots):
                union = vertex_hashes[roots[k, c]] ^ vertex_hashes[roots[k, d]]
                weight[i] = floor + support_of(union, hashes, support)
                total += weight[i]
                i += 1
        left = rng.random() * total
        i = 0
        drawn = False
        for c in range(n_roots):
            for d in range(c + 1, n_roots):
                if not drawn:
                    first[k], second[k], log_q[k] = c, d, math.log(weight[i] / total)
                    left -= weight[i]
                    drawn = left < 0.0
                i += 1


@inlined
def pick(rng, start, weight, row):
    """An entry of a CSR row, in proportion to its weight."""
    total = 0.0
    for e in range(start[row], start[row + 1]):
        total += weight[e]
    left = rng.random() * total
    chosen = start[row]
    for e in range(start[row], start[row + 1]):
        if weight[e] > 0.0:
            chosen = e
            left -= weight[e]
            if left < 0.0:
                break
    return chosen


@inlined
def mixture(x, start, edge, weight, row, laws, log_norms, prior_share, prior_rate):
    """Density at x of the mixture of the distributions of a CSR row's edges, and the sum of the row's weights."""
    total = 0.0
    density = 0.0
    for e in range(start[row], start[row + 1]):
        total += weight[e]
        density += weight[e] * math.exp(log_length_density(laws[edge[e]], log_norms[edge[e]], x, prior_share, prior_rate))
    return density, total


@inlined
def draw_mixed(rng, law, log_norm, prior_share, prior_rate):
    if prior_share > 0.0 and rng.random() < prior_share:
        return rng.exponential(1.0 / prior_rate)
    return draw_length(law, log_norm, rng)


@kernel
def propose_mixture(
    rng, a, b, n_taxa, parent_start, parent_weight, start, edge, weight, laws, log_norms, prior_share, prior_rate, single,
    lengths, log_q,
):  # fmt: skip
    """Branch lengths from JC distributions of labelled edges whose labels are drawn with them; density of the whole mixture.

    A subtree a[k] is a kind: its taxon, or n_taxa for any larger one. For kind x, `parent_weight[parent_start[x]:...]` are the
    weights of the n_parents labels of the vertex above; row x * n_parents + j of (start, edge, weight) holds the edges below
    label j that fit kind x. The label above is drawn for the first subtree and shared by the second. `single`: one branch only.
    """
    n_parents = parent_start[1] - parent_start[0]
    for k in range(a.shape[0]):
        x, y = min(a[k], n_taxa), min(b[k], n_taxa)
        j = pick(rng, parent_start, parent_weight, x) - parent_start[x]
        e = pick(rng, start, weight, x * n_parents + j)
        lengths[k, 0] = draw_mixed(rng, laws[edge[e]], log_norms[edge[e]], prior_share, prior_rate)
        lengths[k, 1] = 0.0
        if not single:
            e = pick(rng, start, weight, y * n_parents + j)
            lengths[k, 1] = draw_mixed(rng, laws[edge[e]], log_norms[edge[e]], prior_share, prior_rate)
        total = 0.0
        density = 0.0
        for i in range(n_parents):
            share = parent_weight[parent_start[x] + i]
            total += share
            if share == 0.0:
                continue
            one, one_total = mixture(
                lengths[k, 0], start, edge, weight, x * n_parents + i, laws, log_norms, prior_share, prior_rate
            )
            term = share * one / one_total
            if not single:
                two, two_total = mixture(
                    lengths[k, 1], start, edge, weight, y * n_parents + i, laws, log_norms, prior_share, prior_rate
                )
                term *= two / two_total
            density += term
        log_q[k] = math.log(density / total) if density > 0.0 else -np.inf
