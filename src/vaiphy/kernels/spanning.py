"""The weighted spanning-tree distribution on a complete graph: star-mesh elimination in log space.

Vertices leave in the order 0, 1, ...; when k leaves, s_k = sum_i w_ik over the remaining i and w'_ij = w_ij + w_ik
w_jk / s_k. The normaliser (the sum over all spanning trees of the product of their weights) is the product of the
s_k. Only sums, products and quotients of positive numbers occur, so any dynamic range is exact to rounding.

What the adjoint and the sampler need is kept: `log_sum[k]` = log s_k, `column[k, i]` = log w_ik when k left, and for
each pair i < j of the remaining vertices the log odds, new against old, of w'_ij (`odds`, pairs in order, starting at
`first_pair(k)`).
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel

# Beyond this difference of logarithms the smaller term does not change a float64 sum.
FAR = 38.0


@inlined
def first_pair(k, n):
    """Number of pairs stored before those of step k, among n vertices: C(n, 3) - C(n - k, 3)."""
    m = n - k
    return n * (n - 1) * (n - 2) // 6 - m * (m - 1) * (m - 2) // 6


@inlined
def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x)) if x > -700.0 else 0.0


@kernel
def eliminate(log_weights, log_sum, column, odds):
    """Forward elimination; `log_weights` (n, n) symmetric is overwritten. Returns the log normaliser."""
    n = log_weights.shape[0]
    log_normaliser = 0.0
    at = 0
    for k in range(n - 1):
        top = -np.inf
        for i in range(k + 1, n):
            column[k, i] = log_weights[k, i]
            top = max(top, log_weights[k, i])
        total = 0.0
        for i in range(k + 1, n):
            total += np.exp(log_weights[k, i] - top)
        log_sum[k] = top + np.log(total)
        log_normaliser += log_sum[k]
        for i in range(k + 1, n):
            reduced = column[k, i] - log_sum[k]
            for j in range(i + 1, n):
                new = reduced + column[k, j]
                old = log_weights[i, j]
                difference = new - old
                odds[at] = difference
                at += 1
                if difference > FAR:
                    log_weights[i, j] = new
                elif difference > 0.0:
                    log_weights[i, j] = new + np.log1p(np.exp(-difference))
                elif difference > -FAR:
                    log_weights[i, j] = old + np.log1p(np.exp(difference))
        for i in range(k + 1, n):
            for j in range(i + 1, n):
                log_weights[j, i] = log_weights[i, j]
    return log_normaliser


@kernel
def marginals(log_sum, column, odds, out):
    """Edge probabilities d log Z / d log w_ij by the adjoint of the elimination; `out` (n, n) symmetric."""
    n = out.shape[0]
    out[:] = 0.0
    for k in range(n - 2, -1, -1):
        at = first_pair(k, n)
        dropped = 0.0
        for i in range(k + 1, n):
            for j in range(i + 1, n):
                difference = odds[at]
                at += 1
                if out[i, j] == 0.0 or difference < -700.0:
                    continue
                share = out[i, j] * sigmoid(difference)
                dropped += share
                out[k, i] += share
                out[k, j] += share
                out[i, j] *= sigmoid(-difference)
        for i in range(k + 1, n):
            value = out[k, i] + (1.0 - dropped) * np.exp(column[k, i] - log_sum[k])
            out[k, i] = min(1.0, max(0.0, value))
    for i in range(n):
        for j in range(i + 1, n):
            out[j, i] = out[i, j]


@kernel
def sample(log_sum, column, odds, rng, parents):
    """Exact draws: `parents` (T, n), rooted at vertex 0 (parent -1).

    Vertices return in reverse order. When k returns, an edge (i, j) of the tree so far was made by k's star with the
    probability of its odds, and is then dropped; k is joined to each component by a vertex drawn in proportion to w_ik.
    """
    n = column.shape[0]
    component = np.empty(n, dtype=np.int64)
    best = np.empty(n)
    total = np.empty(n)
    chosen = np.empty(n, dtype=np.int64)
    for t in range(parents.shape[0]):
        parent = parents[t]
        parent[n - 1] = -1
        for k in range(n - 2, -1, -1):
            start = first_pair(k, n)
            size = n - k - 1
            for v in range(k + 1, n):
                above = parent[v]
                if above < 0:
                    continue
                i = min(v, above) - k - 1
                j = max(v, above) - k - 1
                difference = odds[start + i * size - i * (i + 1) // 2 + (j - i - 1)]
                if difference > -FAR and (difference > FAR or rng.random() < sigmoid(difference)):
                    parent[v] = -1
            # Name each component by its root; chains are short after each vertex is resolved once.
            for v in range(k + 1, n):
                component[v] = -1
            for v in range(k + 1, n):
                root = v
                while component[root] < 0 and parent[root] >= 0:
                    root = parent[root]
                name = component[root] if component[root] >= 0 else root
                w = v
                while component[w] < 0:
                    component[w] = name
                    if parent[w] < 0:
                        break
                    w = parent[w]
            for v in range(k + 1, n):
                best[v] = -np.inf
                total[v] = 0.0
            for v in range(k + 1, n):
                name = component[v]
                best[name] = max(best[name], column[k, v])
            for v in range(k + 1, n):
                # One pass of weighted reservoir sampling for each component.
                name = component[v]
                weight = np.exp(column[k, v] - best[name])
                total[name] += weight
                if weight > 0.0 and rng.random() * total[name] < weight:
                    chosen[name] = v
            for name in range(k + 1, n):
                if component[name] == name:
                    v = chosen[name]
                    above = k
                    while v >= 0:  # turn the path from the chosen vertex to the component's root
                        following = parent[v]
                        parent[v] = above
                        above = v
                        v = following
            parent[k] = -1
