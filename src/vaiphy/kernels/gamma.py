"""Branch lengths given a topology: the posterior mode, one Gamma per branch matched to its conditional, draws and weights.

Batches of unrooted binary trees (`binary`), one after the other; callers run chunks of a batch in threads.
"""

from math import lgamma

import numpy as np

from vaiphy.kernels.binary import fill_schedule
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.edges import fill_below, slopes, sweep
from vaiphy.kernels.pruning import BLOCK, log_likelihood


@inlined
def match_gamma(ratio, v, counts, rate, length, n_steps):
    """Shape and rate of the Gamma whose log-density has the conditional's first and second derivative at its own mean.

    The conditional of a branch is h(b) = sum(counts*log(1 + u(b)*ratio)) - rate*b. A Gamma has h' = (shape-1)/b - rate' and
    h'' = -(shape-1)/b^2, so both numbers follow from one pass; the mean is found by repeating it a few times. Exact if the
    conditional is a Gamma; unlike matching at the mode it does not care whether the mode is zero.
    """
    shape, rate_out = 1.0, 1.0 / length
    b = length
    for _ in range(n_steps):
        u = np.exp(-4.0 / 3.0 * b)
        slope, curvature = slopes(ratio, v, counts, u)
        first = -4.0 / 3.0 * u * slope - rate
        second = 16.0 / 9.0 * (u * slope - u * u * curvature)
        shape = max(1.0, 1.0 - second * b * b)
        rate_out = (shape - 1.0) / b - first
        if rate_out < 0.2 * shape / b:  # the conditional still rises here: look further out
            b *= 3.0
            rate_out = shape / b
            continue
        new = shape / rate_out
        done = abs(new - b) < 0.02 * b
        b = min(max(new, 0.2 * b), 5.0 * b)
        if done:
            break
    return shape, rate_out


@kernel
def fit(children, lengths, tips, counts, rate, u_low, u_high, tolerance, max_sweeps, shapes, rates, masses):
    """Mode of the lengths' posterior (starting from `lengths`, replaced by it), matched Gammas, and each topology's mass.

    `masses[t]` is log p(X, B | topology) - log q(B) at the Gammas' means:
    an estimate of log p(X | topology) without noise.
    """
    n_vertices = lengths.shape[1]
    n = (n_vertices + 2) // 2
    n_patterns = counts.shape[0]
    order = np.empty(n - 1, dtype=np.int32)
    start = np.empty(n_vertices + 1, dtype=np.int32)
    child = np.empty(2 * n - 3, dtype=np.int32)
    stack = np.empty(n_vertices, dtype=np.int32)
    position = np.empty(n_vertices, dtype=np.int32)
    below = np.empty((n_vertices, 4, n_patterns))
    above = np.empty((n_vertices, 4, n_patterns))
    ratio = np.empty((n_vertices, n_patterns))
    work = np.empty((n_vertices, 4, BLOCK))
    log_scale = np.empty(BLOCK)
    pending = np.empty(n_vertices, dtype=np.int64)
    decay = np.empty(n_vertices)
    prior = 0.75 * rate
    for t in range(children.shape[0]):
        fill_schedule(children[t], order, start, child)
        decay[0] = 1.0
        for v in range(1, n_vertices):
            decay[v] = min(max(np.exp(-4.0 / 3.0 * lengths[t, v]), u_low), u_high)
        fill_below(order, start, child, decay, tips, below)
        for _ in range(max_sweeps):
            gained = sweep(0, start, child, decay, tips, counts, prior, u_low, u_high, 2, below, above, ratio, stack, position)
            if gained < tolerance:
                break
        log_norm = 0.0
        log_q = 0.0
        log_prior = 0.0
        for v in range(1, n_vertices):
            mode = -0.75 * np.log(decay[v])
            lengths[t, v] = mode
            shape, gamma_rate = match_gamma(ratio, v, counts, rate, max(mode, 1e-4), 12)
            shapes[t, v] = shape
            rates[t, v] = gamma_rate
            log_norm += shape * np.log(gamma_rate) - lgamma(shape)
            mean = shape / gamma_rate
            log_q += (shape - 1.0) * np.log(mean) - shape
            log_prior += np.log(rate) - rate * mean
            decay[v] = np.exp(-4.0 / 3.0 * mean)
        pending[:] = -1
        masses[t] = (
            log_likelihood(order, start, child, decay, tips, counts, work, log_scale, pending) + log_prior - log_q - log_norm
        )


@kernel
def draw(rng, children, topology, shapes, rates, guard, guarded_below, tips, counts, rate, lengths, log_weights):
    """For draw i, lengths from the laws of topology[i], and log p(X, B | topology) - log q(B).

    A branch whose Gamma has a shape below `guarded_below` is drawn from a mixture: with probability `guard` from an
    exponential law, half the time with the Gamma's mean, else the prior. A Gamma of shape above one vanishes at zero, where
    the posterior does not, and one matched to a mode near zero may have a lighter tail than the prior: this bounds the
    weights at both ends.
    """
    n_vertices = lengths.shape[1]
    n = (n_vertices + 2) // 2
    order = np.empty(n - 1, dtype=np.int32)
    start = np.empty(n_vertices + 1, dtype=np.int32)
    child = np.empty(2 * n - 3, dtype=np.int32)
    work = np.empty((n_vertices, 4, BLOCK))
    log_scale = np.empty(BLOCK)
    pending = np.empty(n_vertices, dtype=np.int64)
    decay = np.empty(n_vertices)
    decay[0] = 1.0
    log_norm = np.empty(n_vertices)
    last = -1
    for i in range(topology.shape[0]):
        t = topology[i]
        if t != last:
            fill_schedule(children[t], order, start, child)
            for v in range(1, n_vertices):
                log_norm[v] = shapes[t, v] * np.log(rates[t, v]) - lgamma(shapes[t, v])
            last = t
        log_q = 0.0
        log_prior = 0.0
        lengths[i, 0] = 0.0
        for v in range(1, n_vertices):
            shape, gamma_rate = shapes[t, v], rates[t, v]
            guarded = shape < guarded_below
            chance = rng.random() if guarded else 1.0
            if chance < 0.5 * guard:
                b = rng.standard_exponential() * shape / gamma_rate
            elif chance < guard:
                b = rng.standard_exponential() / rate
            else:
                b = rng.standard_gamma(shape) / gamma_rate
            b = max(b, 1e-300)
            lengths[i, v] = b
            decay[v] = np.exp(-4.0 / 3.0 * b)
            log_density = log_norm[v] + (shape - 1.0) * np.log(b) - gamma_rate * b
            if guarded and guard > 0.0:
                plain = gamma_rate / shape
                exponential = 0.5 * (plain * np.exp(-plain * b) + rate * np.exp(-rate * b))
                log_density = np.log((1.0 - guard) * np.exp(log_density) + guard * exponential)
            log_q += log_density
            log_prior += np.log(rate) - rate * b
        pending[:] = -1
        log_weights[i] = log_likelihood(order, start, child, decay, tips, counts, work, log_scale, pending) + log_prior - log_q
