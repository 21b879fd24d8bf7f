"""Merging subtrees under an equal-input model: one pruning step, and what it says about the two new branches.

Partials are float32 with mean one over the four states of every pattern, by the frequencies `pi`, so that the message through a
branch is q + u*x with u = exp(-beta b) and q = 1 - u (see `models.replacement`); what was divided out is kept as one
log-likelihood per subtree. The same holds for `outer`: the message that arrives at the upper end of a subtree from the rest of
a guide tree.

As in `edges`, the likelihood of a pattern as a function of one branch alone is proportional to 1 + u*ratio. A Gamma density
is fitted to a branch by matching the first two derivatives of the logarithm at the Gamma's own mean: no logarithms, and it
serves branches near zero as well as branches with a mode inside.
"""

import math

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.frequencies import scale, total
from vaiphy.kernels.gamma import LEAST_FACTOR, MOST_FACTOR, SETTLED
from vaiphy.kernels.logsum import weighted_log_sum

SHORTEST, LONGEST = 1e-7, 20.0
LOWEST_SHAPE = 0.5
FIT_STEPS = 8


@inlined
def join(model, pool, out, a, length_a, b, length_b, norm):
    """pool[out] = messages of pool[a] and pool[b] multiplied and normalised; what was divided out goes to `norm`."""
    ua = np.float32(math.exp(-model.beta * length_a))
    qa = np.float32(-math.expm1(-model.beta * length_a))
    ub = np.float32(math.exp(-model.beta * length_b))
    qb = np.float32(-math.expm1(-model.beta * length_b))
    quarter = np.float32(scale(model.weights))
    for p in range(pool.shape[2]):
        z0 = (qa + ua * pool[a, 0, p]) * (qb + ub * pool[b, 0, p])
        z1 = (qa + ua * pool[a, 1, p]) * (qb + ub * pool[b, 1, p])
        z2 = (qa + ua * pool[a, 2, p]) * (qb + ub * pool[b, 2, p])
        z3 = (qa + ua * pool[a, 3, p]) * (qb + ub * pool[b, 3, p])
        mean = quarter * total(model.weights, z0, z1, z2, z3)
        inverse = np.float32(1.0) / mean if mean > np.float32(0.0) else np.float32(0.0)
        pool[out, 0, p] = z0 * inverse
        pool[out, 1, p] = z1 * inverse
        pool[out, 2, p] = z2 * inverse
        pool[out, 3, p] = z3 * inverse
        norm[p] = mean


@kernel
def merge_many(model, pool, counts, out, a, b, lengths, gain, norm):
    """Merge pool[a[k]] and pool[b[k]] into pool[out[k]]; gain[k] = log-likelihood of the new subtree minus its parts'."""
    for k in range(out.shape[0]):
        join(model, pool, out[k], a[k], lengths[k, 0], b[k], lengths[k, 1], norm)
        gain[k] = weighted_log_sum(norm, counts, 0, counts.shape[0])


@kernel
def agreement_many(model, pool, slots, outer, which, counts, gain, norm):
    """gain[k] = sum_p counts * log(mean over states, by pi, of pool[slots[k]] * outer[which[k]])."""
    quarter = np.float32(scale(model.weights))
    for k in range(slots.shape[0]):
        a, o = slots[k], which[k]
        for p in range(pool.shape[2]):
            norm[p] = quarter * total(
                model.weights,
                pool[a, 0, p] * outer[o, 0, p],
                pool[a, 1, p] * outer[o, 1, p],
                pool[a, 2, p] * outer[o, 2, p],
                pool[a, 3, p] * outer[o, 3, p],
            )
        gain[k] = weighted_log_sum(norm, counts, 0, counts.shape[0])


@inlined
def ratio_of_pair(model, ratio, pool, a, b):
    """The ratio of the branch that joins subtrees a and b, nothing else attached to it."""
    quarter, one = np.float32(scale(model.weights)), np.float32(1.0)
    for p in range(ratio.shape[0]):
        joint = total(
            model.weights,
            pool[a, 0, p] * pool[b, 0, p],
            pool[a, 1, p] * pool[b, 1, p],
            pool[a, 2, p] * pool[b, 2, p],
            pool[a, 3, p] * pool[b, 3, p],
        )
        ratio[p] = quarter * joint - one


@inlined
def ratio_in_star(model, ratio, pool, a, b, length_b, outer, o):
    """The ratio of the branch of a where a, b (at a known length) and the outer message o meet."""
    u = np.float32(math.exp(-model.beta * length_b))
    q = np.float32(-math.expm1(-model.beta * length_b))
    one, zero = np.float32(1.0), np.float32(0.0)
    for p in range(ratio.shape[0]):
        m0 = (q + u * pool[b, 0, p]) * outer[o, 0, p]
        m1 = (q + u * pool[b, 1, p]) * outer[o, 1, p]
        m2 = (q + u * pool[b, 2, p]) * outer[o, 2, p]
        m3 = (q + u * pool[b, 3, p]) * outer[o, 3, p]
        both = total(model.weights, m0, m1, m2, m3)
        joint = total(model.weights, m0 * pool[a, 0, p], m1 * pool[a, 1, p], m2 * pool[a, 2, p], m3 * pool[a, 3, p])
        ratio[p] = joint / both - one if both > zero else zero


@inlined
def slopes(beta, ratio, counts32, length, prior_rate):
    """First and second derivative, in the length, of sum_p counts * log(1 + u*ratio) - prior_rate * length."""
    u = math.exp(-beta * length)
    u32, one = np.float32(u), np.float32(1.0)
    first = np.float32(0.0)
    second = np.float32(0.0)
    for p in range(ratio.shape[0]):
        r = ratio[p] / (one + u32 * ratio[p])
        first += counts32[p] * r
        second += counts32[p] * r * r
    s1, s2 = np.float64(first), np.float64(second)
    return -beta * u * s1 - prior_rate, beta * beta * u * (s1 - u * s2)


@inlined
def fit_gamma(beta, ratio, counts32, start, prior_rate):
    """Shape and rate of the Gamma whose log-density has the slopes of the branch's conditional at the Gamma's mean."""
    length = min(max(start, SHORTEST), LONGEST)
    shape, rate = 1.0, prior_rate
    for _ in range(FIT_STEPS):
        first, second = slopes(beta, ratio, counts32, length, prior_rate)
        shape = max(1.0 - second * length * length, LOWEST_SHAPE)
        rate = (shape - 1.0) / length - first
        mean = shape / rate if rate > 0.0 else LONGEST
        new = min(max(mean, LEAST_FACTOR * length), MOST_FACTOR * length)
        new = min(max(new, SHORTEST), LONGEST)
        moved = abs(new - length)
        length = new
        if moved < SETTLED * length and rate > 0.0:
            break
    if rate <= 0.0 or not shape / rate < LONGEST:  # saturated: nothing but the prior
        return 1.0, prior_rate
    return shape, rate


@inlined
def log_gamma_density(x, shape, rate):
    return shape * math.log(rate) - math.lgamma(shape) + (shape - 1.0) * math.log(x) - rate * x


@inlined
def draw_length(rng, shape, rate, prior_rate, prior_share):
    """A length from the Gamma mixed with the prior, and the log-density of the mixture there."""
    x = rng.exponential(1.0 / prior_rate) if rng.random() < prior_share else rng.gamma(shape, 1.0 / rate)
    x = max(x, 1e-300)
    return x, log_mixture_density(x, shape, rate, prior_rate, prior_share)


@inlined
def log_mixture_density(x, shape, rate, prior_rate, prior_share):
    gamma = log_gamma_density(x, shape, rate)
    if prior_share <= 0.0:
        return gamma
    prior = math.log(prior_rate) - prior_rate * x
    top = max(gamma, prior)
    return top + math.log((1.0 - prior_share) * math.exp(gamma - top) + prior_share * math.exp(prior - top))


@kernel
def propose_star(
    model, rng, pool, counts32, a, b, outer, which, start, prior_rate, prior_share, widen, n_sweeps, lengths, log_q, volume, ratio
):
    """Lengths of the branches of a[k] and b[k] where they meet the outer message which[k]: two Gammas, one after the other.

    The first is the conditional with the other branch at its mean, its variance widened by `widen` for that; the second is
    the conditional given the first length drawn. `volume` is log(prior / q) at the Gammas' means: what the two branches are
    expected to add to the weight.
    """
    for k in range(a.shape[0]):
        x, y = start[k, 0], start[k, 1]
        shape, rate = 1.0, prior_rate
        for sweep in range(n_sweeps):
            if sweep > 0:
                ratio_in_star(model, ratio, pool, b[k], a[k], x, outer, which[k])
                shape, rate = fit_gamma(model.beta, ratio, counts32, y, prior_rate)
                y = shape / rate
            ratio_in_star(model, ratio, pool, a[k], b[k], y, outer, which[k])
            shape, rate = fit_gamma(model.beta, ratio, counts32, x, prior_rate)
            x = shape / rate
        shape, rate = widened(shape, rate, widen)
        log_volume = -log_gamma_density(shape / rate, shape, rate) - prior_rate * shape / rate
        lengths[k, 0], first = draw_length(rng, shape, rate, prior_rate, prior_share)
        ratio_in_star(model, ratio, pool, b[k], a[k], lengths[k, 0], outer, which[k])
        shape, rate = fit_gamma(model.beta, ratio, counts32, y, prior_rate)
        log_volume += -log_gamma_density(shape / rate, shape, rate) - prior_rate * shape / rate
        lengths[k, 1], second = draw_length(rng, shape, rate, prior_rate, prior_share)
        log_q[k] = first + second
        volume[k] = log_volume + 2.0 * math.log(prior_rate)


@inlined
def widened(shape, rate, factor):
    """A Gamma of the same mean with its variance multiplied by `factor`, but no shape below one on that account."""
    new = max(shape / factor, min(shape, 1.0))
    return new, rate * new / shape


@kernel
def propose_last(model, rng, pool, counts32, a, b, start, rooted, prior_rate, prior_share, lengths, log_q, volume, ratio):
    """The branch, or the two branches whose sum alone matters, between the last two subtrees.

    Rooted: the sum has the prior rate^2 * s * exp(-rate*s), and is divided uniformly. Unrooted: one branch, lengths[k, 0].
    """
    for k in range(a.shape[0]):
        ratio_of_pair(model, ratio, pool, a[k], b[k])
        shape, rate = fit_gamma(model.beta, ratio, counts32, start[k], prior_rate)
        if rooted:
            shape += 1.0
        mean = shape / rate
        total, density = draw_length(rng, shape, rate, prior_rate, prior_share)
        log_volume = math.log(prior_rate) - prior_rate * mean - log_gamma_density(mean, shape, rate)
        if rooted:
            part = rng.random()
            lengths[k, 0], lengths[k, 1] = total * part, total * (1.0 - part)
            density -= math.log(total)
            log_volume += math.log(prior_rate) + math.log(mean)
        else:
            lengths[k, 0], lengths[k, 1] = total, 0.0
        log_q[k] = density
        volume[k] = log_volume


@kernel
def propose_pair(model, rng, pool, counts32, a, b, start, share, weight, prior_rate, prior_share, lengths, log_q, ratio):
    """Lengths from the pairwise conditional of their sum, divided by a Beta distribution around the expected share of a's branch.

    By the pulley principle the two subtrees' likelihood depends on the two branches through their sum alone. `weight` is
    the number of pseudo-observations behind `share`; the sum's prior density is rate^2 * s * exp(-rate*s).
    """
    for k in range(a.shape[0]):
        ratio_of_pair(model, ratio, pool, a[k], b[k])
        shape, rate = fit_gamma(model.beta, ratio, counts32, start[k], prior_rate)
        shape += 1.0
        alpha = 1.0 + weight[k] * share[k]
        beta = 1.0 + weight[k] * (1.0 - share[k])
        if rng.random() < prior_share:
            x, y = rng.exponential(1.0 / prior_rate), rng.exponential(1.0 / prior_rate)
        else:
            total, part = rng.gamma(shape, 1.0 / rate), rng.beta(alpha, beta)
            x, y = total * part, total * (1.0 - part)
        x, y = max(x, 1e-300), max(y, 1e-300)
        lengths[k, 0], lengths[k, 1] = x, y
        total, part = x + y, x / (x + y)
        fitted = log_gamma_density(total, shape, rate) - math.log(total)
        fitted += math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta)
        fitted += (alpha - 1.0) * math.log(part) + (beta - 1.0) * math.log(y / total)
        prior = 2.0 * math.log(prior_rate) - prior_rate * total
        top = max(fitted, prior)
        log_q[k] = top + math.log((1.0 - prior_share) * math.exp(fitted - top) + prior_share * math.exp(prior - top))
