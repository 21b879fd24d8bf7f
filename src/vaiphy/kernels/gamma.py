"""Branch lengths given a topology: the posterior mode, one Gamma per branch matched to its conditional, and masses.

Batches of unrooted binary trees (`binary`), one after the other; callers run chunks of a batch in threads.
"""

from math import lgamma

import numpy as np

from vaiphy.kernels.binary import fill_schedule
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.edges import fill_below, slopes, sweep
from vaiphy.kernels.pruning import BLOCK, log_likelihood

# A fit is over when the mean moves by less than this share of itself; in one step it changes by no more than these factors.
SETTLED, LEAST_FACTOR, MOST_FACTOR = 0.02, 0.2, 5.0
# Where the mean would be more than 1 / RISING times as far out, the conditional still rises: look FURTHER times as far out.
RISING, FURTHER = 0.2, 3.0
# Steps of a fit, and the least length to begin with: at the mode, but not at zero.
FIT_STEPS, SHORTEST = 12, 1e-4


@inlined
def match_gamma(beta, ratio, v, counts, rate, length, n_steps):
    """Shape and rate of the Gamma whose log-density has the conditional's first and second derivative at its own mean.

    The conditional of a branch is h(b) = sum(counts*log(1 + u(b)*ratio)) - rate*b. A Gamma has h' = (shape-1)/b - rate' and
    h'' = -(shape-1)/b^2, so both numbers follow from one pass; the mean is found by repeating it a few times. Exact if the
    conditional is a Gamma; unlike matching at the mode it does not care whether the mode is zero.
    """
    shape, rate_out = 1.0, 1.0 / length
    b = length
    for _ in range(n_steps):
        u = np.exp(-beta * b)
        slope, curvature = slopes(ratio, v, counts, u)
        first = -beta * u * slope - rate
        second = beta * beta * (u * slope - u * u * curvature)
        shape = max(1.0, 1.0 - second * b * b)
        rate_out = (shape - 1.0) / b - first
        if rate_out < RISING * shape / b:  # the conditional still rises here: look further out
            b *= FURTHER
            rate_out = shape / b
            continue
        new = shape / rate_out
        done = abs(new - b) < SETTLED * b
        b = min(max(new, LEAST_FACTOR * b), MOST_FACTOR * b)
        if done:
            break
    return shape, rate_out


@kernel
def fit(model, children, lengths, tips, counts, rate, tolerance, max_sweeps, shapes, rates, masses):
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
    beta = model.beta
    prior = rate * model.spacing
    for t in range(children.shape[0]):
        fill_schedule(children[t], order, start, child)
        decay[0] = 1.0
        for v in range(1, n_vertices):
            decay[v] = min(max(np.exp(-beta * lengths[t, v]), model.u_low), model.u_high)
        fill_below(model, order, start, child, decay, tips, below)
        for _ in range(max_sweeps):
            gained = sweep(model, 0, start, child, decay, tips, counts, prior, 2, below, above, ratio, stack, position)
            if gained < tolerance:
                break
        log_norm = 0.0
        log_q = 0.0
        log_prior = 0.0
        for v in range(1, n_vertices):
            mode = -model.spacing * np.log(decay[v])
            lengths[t, v] = mode
            shape, gamma_rate = match_gamma(beta, ratio, v, counts, rate, max(mode, SHORTEST), FIT_STEPS)
            shapes[t, v] = shape
            rates[t, v] = gamma_rate
            log_norm += shape * np.log(gamma_rate) - lgamma(shape)
            mean = shape / gamma_rate
            log_q += (shape - 1.0) * np.log(mean) - shape
            log_prior += np.log(rate) - rate * mean
            decay[v] = np.exp(-beta * mean)
        pending[:] = -1
        whole = log_likelihood(model.weights, order, start, child, decay, tips, counts, work, log_scale, pending)
        masses[t] = whole + log_prior - log_q - log_norm
