"""Rooted subtrees of a forest: derivatives of their log-likelihoods in all branches, and every merger tried out.

Partials have mean one over the four states of every pattern, by their frequencies, as in `merge`. The model is these (`weights`,
see `frequencies`) and its rate beta.
"""

import math

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.frequencies import scale, total
from vaiphy.kernels.logsum import weighted_log_sum


@inlined
def gather(vertex, children, order, first_child):
    """Vertices at or below `vertex`, parents first; first_child[i] is the place of i's first child in `order` (-1: a taxon)."""
    order[0] = vertex
    size = 1
    i = 0
    while i < size:
        v = order[i]
        first_child[i] = -1
        if children[v, 0] >= 0:
            first_child[i] = size
            order[size] = children[v, 0]
            order[size + 1] = children[v, 1]
            size += 2
        i += 1
    return size


@inlined
def product(weights, out, i, xs, x, u, ys, y, v, with_y):
    """out[i] = message of xs[x], times that of ys[y], with mean one."""
    for p in range(out.shape[2]):
        for a in range(4):
            value = 1.0 - v + v * ys[y, a, p]
            if with_y:
                value *= 1.0 - u + u * xs[x, a, p]
            out[i, a, p] = value
        mean = scale(weights) * total(weights, out[i, 0, p], out[i, 1, p], out[i, 2, p], out[i, 3, p])
        factor = 1.0 / mean if mean > 0.0 else 0.0
        for a in range(4):
            out[i, a, p] *= factor


@inlined
def slope(weights, beta, above, below, i, counts, u):
    """Derivative of the log-likelihood in the length of the branch above i."""
    result = 0.0
    for p in range(counts.shape[0]):
        o0, o1, o2, o3 = above[i, 0, p], above[i, 1, p], above[i, 2, p], above[i, 3, p]
        alone = scale(weights) * total(weights, o0, o1, o2, o3)
        joint = scale(weights) * total(
            weights, o0 * below[i, 0, p], o1 * below[i, 1, p], o2 * below[i, 2, p], o3 * below[i, 3, p]
        )
        likelihood = alone + u * (joint - alone)
        if likelihood > 0.0:
            result += counts[p] * (joint - alone) / likelihood
    return -beta * u * result


@kernel
def rate_slopes(weights, beta, vertices, children, lengths, born, n_taxa, leaves, counts, out):
    """out[i, r, side]: derivative of the log-likelihood of the subtree at vertices[i] in the log-rate of rank r + 1 and a side.

    A branch drawn at that rate is b = e / rate with e fixed, so that db / d log(rate) = -b. `leaves` (n, 4, P) are the taxa's
    partials; `out` is added to.
    """
    size = 2 * n_taxa - 1
    order = np.empty(size, dtype=np.int64)
    first_child = np.empty(size, dtype=np.int64)
    below = np.empty((size, 4, counts.shape[0]))
    above = np.empty((size, 4, counts.shape[0]))
    for k in range(vertices.shape[0]):
        n_found = gather(vertices[k], children, order, first_child)
        for i in range(n_found - 1, -1, -1):
            v, c = order[i], first_child[i]
            if c < 0:
                for a in range(4):
                    for p in range(counts.shape[0]):
                        below[i, a, p] = leaves[v, a, p]
                continue
            u = math.exp(-beta * lengths[v, 0])
            w = math.exp(-beta * lengths[v, 1])
            product(weights, below, i, below, c, u, below, c + 1, w, True)
        up = np.ones(n_found)  # u of the branch above; the root has none
        for i in range(n_found):
            v, c = order[i], first_child[i]
            if c < 0:
                continue
            for side in range(2):
                up[c + side] = math.exp(-beta * lengths[v, side])
            for side in range(2):
                other = c + 1 - side
                product(weights, above, c + side, above, i, up[i], below, other, up[other], i > 0)
                value = slope(weights, beta, above, below, c + side, counts, up[c + side])
                out[k, born[v] - 1, side] -= lengths[v, side] * value


@inlined
def gain_of(weights, beta, pool, a, b, length_a, length_b, counts, norm):
    """Log-likelihood of two subtrees merged, minus theirs."""
    ua, ub = np.float32(math.exp(-beta * length_a)), np.float32(math.exp(-beta * length_b))
    qa, qb = np.float32(-math.expm1(-beta * length_a)), np.float32(-math.expm1(-beta * length_b))
    share = np.float32(scale(weights))
    for p in range(pool.shape[2]):
        z0 = (qa + ua * pool[a, 0, p]) * (qb + ub * pool[b, 0, p])
        z1 = (qa + ua * pool[a, 1, p]) * (qb + ub * pool[b, 1, p])
        z2 = (qa + ua * pool[a, 2, p]) * (qb + ub * pool[b, 2, p])
        z3 = (qa + ua * pool[a, 3, p]) * (qb + ub * pool[b, 3, p])
        norm[p] = share * total(weights, z0, z1, z2, z3)
    return weighted_log_sum(norm, counts, 0, counts.shape[0])


@kernel
def try_all(
    weights, beta, rng, roots, slot, sizes, pool, counts, rates, prior_rate, single, log_final, n_tries, first, second, lengths,
    log_q,
):  # fmt: skip
    """Every pair of roots with `n_tries` draws of its branches; one is chosen by its weight (nested SMC).

    log_q[k] = log of (target of what was chosen / mean weight): divided by it, the target gives the mean weight of all tries.
    `rates` (2,): of the exponential proposals; `single`: one branch only; `log_final` replaces the backward kernel's
    log-probability at the last merger (NaN: there is more to merge).
    """
    n_roots = roots.shape[1]
    norm = np.empty(counts.shape[0])
    for k in range(roots.shape[0]):
        n_large = 0
        for c in range(n_roots):
            n_large += sizes[roots[k, c]] >= 2
        top, mass, chosen = -np.inf, 0.0, -np.inf
        first[k], second[k] = 0, 1
        for c in range(n_roots):
            for d in range(c + 1, n_roots):
                a, b = roots[k, c], roots[k, d]
                large = n_large - (sizes[a] >= 2) - (sizes[b] >= 2) + 1
                back = -math.log(large) if math.isnan(log_final) else log_final
                for _ in range(n_tries):
                    x = rng.exponential(1.0 / rates[0])
                    y = 0.0 if single else rng.exponential(1.0 / rates[1])
                    value = gain_of(weights, beta, pool, slot[a], slot[b], x, y, counts, norm) + back
                    value += math.log(prior_rate) - prior_rate * x
                    own = math.log(rates[0]) - rates[0] * x
                    if not single:
                        value += math.log(prior_rate) - prior_rate * y
                        own += math.log(rates[1]) - rates[1] * y
                    weight = value - own
                    if weight > top:
                        mass = mass * math.exp(top - weight) + 1.0 if mass > 0.0 else 1.0
                        top = weight
                        share = 1.0 / mass
                    else:
                        here = math.exp(weight - top)
                        mass += here
                        share = here / mass
                    if rng.random() < share:
                        first[k], second[k], chosen = c, d, value
                        lengths[k, 0], lengths[k, 1] = x, y
        log_q[k] = chosen - (top + math.log(mass / n_tries)) if mass > 0.0 else np.inf
