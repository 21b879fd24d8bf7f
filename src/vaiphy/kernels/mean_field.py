"""Ancestral sequences in mean field: one sweep of coordinate updates over the internal vertices (paper, Eq. 6).

log q(Z_i = a) = const + sum_j core_pull[i, j] * q(Z_j = a) + sum_l leaf_pull[l, i, k - 1] * [a in the k-set of leaf l]

where a pull is an edge's probability times E[log p_same - log p_diff] (for a set of k bases, E[log P(set | inside) -
log P(set | outside)]). Patterns are independent; a block of them is carried through the whole sweep while it sits in
the cache.
"""

import numpy as np

from vaiphy.kernels.compile import kernel

BLOCK = 128
# A pull below this changes no log-probability that a float64 near 1 could show.
WEAK = 1e-18
TINY = 1e-300


@kernel
def sweep(tips, sizes, counts, core_pull, leaf_pull, step, mix_probabilities, z):
    """Update q(Z), `z` (n_internal, 4, P), in place, vertex after vertex; returns its entropy summed over sites.

    `tips` (n_taxa, 4, P) uint8, `sizes` (n_taxa, P) uint8: how many bases a leaf's set has (4: missing, no pull).
    With `step` < 1 the update is damped: natural parameters are mixed, or probabilities if `mix_probabilities`.
    """
    n_taxa = tips.shape[0]
    n_internal = z.shape[0]
    n_patterns = z.shape[2]
    field = np.empty((4, BLOCK))
    table = np.zeros(5)
    entropy = 0.0
    for begin in range(0, n_patterns, BLOCK):
        width = min(BLOCK, n_patterns - begin)
        for i in range(n_internal):
            field[:] = 0.0
            for leaf in range(n_taxa):
                if leaf_pull[leaf, i, 0] < WEAK and leaf_pull[leaf, i, 1] < WEAK and leaf_pull[leaf, i, 2] < WEAK:
                    continue
                table[1], table[2], table[3] = leaf_pull[leaf, i, 0], leaf_pull[leaf, i, 1], leaf_pull[leaf, i, 2]
                for p in range(width):
                    pull = table[sizes[leaf, begin + p]]
                    field[0, p] += pull * tips[leaf, 0, begin + p]
                    field[1, p] += pull * tips[leaf, 1, begin + p]
                    field[2, p] += pull * tips[leaf, 2, begin + p]
                    field[3, p] += pull * tips[leaf, 3, begin + p]
            for j in range(n_internal):
                pull = core_pull[i, j]
                if j == i or pull < WEAK:
                    continue
                for a in range(4):
                    for p in range(width):
                        field[a, p] += pull * z[j, a, begin + p]
            for p in range(width):
                if step < 1.0 and not mix_probabilities:
                    for a in range(4):
                        field[a, p] = (1.0 - step) * np.log(max(z[i, a, begin + p], TINY)) + step * field[a, p]
                top = max(max(field[0, p], field[1, p]), max(field[2, p], field[3, p]))
                total = 0.0
                mean = 0.0
                for a in range(4):
                    excess = field[a, p] - top
                    # Most states are hopeless: exp is the cost of the sweep, so it is not asked for what underflows.
                    e = np.exp(excess) if excess > -700.0 else 0.0
                    total += e
                    mean += e * excess
                    field[a, p] = e
                h = np.log(total) - mean / total
                if step < 1.0 and mix_probabilities:
                    h = 0.0
                    for a in range(4):
                        q = (1.0 - step) * z[i, a, begin + p] + step * field[a, p] / total
                        z[i, a, begin + p] = q
                        h -= q * np.log(max(q, TINY))
                else:
                    for a in range(4):
                        z[i, a, begin + p] = field[a, p] / total
                entropy += counts[begin + p] * h
    return entropy


@kernel
def agreements(tips, sizes, weights, z, core, within):
    """Expected agreements, weighted over patterns and added to the outputs.

    `core` (n_internal, n_internal), upper triangle with diagonal: sum_p w_p sum_a q_i(a) q_j(a). `within` (3, n_taxa,
    n_internal): sum_p w_p [leaf's set has k bases] q_i(set), at index k - 1.
    """
    n_taxa = tips.shape[0]
    n_internal = z.shape[0]
    n_patterns = z.shape[2]
    wide = 4 * BLOCK
    block = np.zeros((n_internal, wide))
    row = np.zeros(wide)
    weight = np.empty(BLOCK)
    for begin in range(0, n_patterns, BLOCK):
        width = min(BLOCK, n_patterns - begin)
        for i in range(n_internal):
            for a in range(4):
                for p in range(width):
                    block[i, a * width + p] = z[i, a, begin + p]
        length = 4 * width
        for i in range(n_internal):
            for a in range(4):
                for p in range(width):
                    row[a * width + p] = weights[begin + p] * z[i, a, begin + p]
            for j in range(i, n_internal):
                total = 0.0
                for p in range(length):
                    total += row[p] * block[j, p]
                core[i, j] += total
        for leaf in range(n_taxa):
            for k in range(3):
                any_site = False
                for p in range(width):
                    weight[p] = weights[begin + p] if sizes[leaf, begin + p] == k + 1 else 0.0
                    any_site |= sizes[leaf, begin + p] == k + 1
                if not any_site:
                    continue
                for a in range(4):
                    for p in range(width):
                        row[a * width + p] = weight[p] * tips[leaf, a, begin + p]
                for i in range(n_internal):
                    total = 0.0
                    for p in range(length):
                        total += row[p] * block[i, p]
                    within[k, leaf, i] += total
