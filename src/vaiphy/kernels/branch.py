"""One branch with everything else fixed: its log-likelihood as a function of its length, and draws of a new length.

With the table of `families`, pattern p has the likelihood L(b) = t_0 + sum_j t_j exp(-mu_j b). A branch's conditional density
under pi_beta is exp(h(b)) with

    h(b) = beta * loglik(b) + a log b - rate b + power log(rest + b),

the last three terms collecting prior and proposal (`conditional`). In x = log b the density exp(h) b has its mode inside the
half-line, and a Gamma with the same mode and curvature there is what lengths are proposed from, mixed with a small share of the
Gamma that h is without the likelihood, which bounds the Metropolis weights.
"""

from math import lgamma, log

import numpy as np

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.layout import COUNT_AT, COUNTED, PATTERNS, REPEATED, STATES, TABLE_AT, TERM_AT
from vaiphy.kernels.logsum import log_product, quick_log

#: Branch lengths outside this range are not proposed: what the prior and the Gammas of proposals have there is below 1e-5.
MIN_LENGTH, MAX_LENGTH = 1e-11, 1e5
#: Share of proposals from the conditional without its likelihood.
WIDE = 0.05
LOG_WIDE, LOG_NARROW = log(WIDE), log(1.0 - WIDE)
TINIEST = 1e-300
#: The square of the last Newton step that finds a mode, in standard deviations of the logarithm of the length.
NEAR = 0.3


@inlined
def log_values(values, data, k):
    """sum of counts * log(values) over the patterns of part k; such as have become impossible by rounding count as 1e-300.

    Most patterns occur once: they need no logarithm of their own.
    """
    total = log_product(values, 0, data.layout[COUNTED, k], TINIEST)
    more, weight = data.layout[REPEATED, k], data.counts[data.layout[COUNT_AT, k] :]
    for p in range(more):
        total += (weight[p] - 1.0) * quick_log(max(values[p], TINIEST))
    return total


@inlined
def values_at(rows, n, exponents, length, value):
    """value[p] = t_0[p] + sum_j t_j[p] exp(-mu_j length); `rows` are the table's rows, three of them read at a time."""
    n_terms = exponents.shape[0]
    first = 1 + (n_terms - 1) % 3
    fixed, row = rows[:n], rows[n : 2 * n]
    keep = np.exp(-exponents[0] * length)
    for p in range(n):
        value[p] = fixed[p] + keep * row[p]
    for j in range(1, first):
        keep, row = np.exp(-exponents[j] * length), rows[(j + 1) * n : (j + 2) * n]
        for p in range(n):
            value[p] += keep * row[p]
    for j in range(first, n_terms, 3):
        x, y, z = rows[(j + 1) * n : (j + 2) * n], rows[(j + 2) * n : (j + 3) * n], rows[(j + 3) * n : (j + 4) * n]
        a, b, c = np.exp(-exponents[j] * length), np.exp(-exponents[j + 1] * length), np.exp(-exponents[j + 2] * length)
        for p in range(n):
            value[p] += (a * x[p] + b * y[p]) + c * z[p]


@inlined
def derivatives_at(rows, n, exponents, length, value, one, two):
    """As `values_at`, with the first and second derivative in the length."""
    n_terms = exponents.shape[0]
    first = 1 + (n_terms - 1) % 3
    fixed, row = rows[:n], rows[n : 2 * n]
    mu = exponents[0]
    keep = np.exp(-mu * length)
    for p in range(n):
        moving = keep * row[p]
        value[p] = fixed[p] + moving
        one[p] = -mu * moving
        two[p] = mu * mu * moving
    for j in range(1, first):
        mu, row = exponents[j], rows[(j + 1) * n : (j + 2) * n]
        keep = np.exp(-mu * length)
        for p in range(n):
            moving = keep * row[p]
            value[p] += moving
            one[p] -= mu * moving
            two[p] += mu * mu * moving
    for j in range(first, n_terms, 3):
        x, y, z = rows[(j + 1) * n : (j + 2) * n], rows[(j + 2) * n : (j + 3) * n], rows[(j + 3) * n : (j + 4) * n]
        m0, m1, m2 = exponents[j], exponents[j + 1], exponents[j + 2]
        a, b, c = np.exp(-m0 * length), np.exp(-m1 * length), np.exp(-m2 * length)
        for p in range(n):
            u, v, w = a * x[p], b * y[p], c * z[p]
            value[p] += (u + v) + w
            u, v, w = m0 * u, m1 * v, m2 * w
            one[p] -= (u + v) + w
            two[p] += (m0 * u + m1 * v) + m2 * w


@inlined
def score(data, table, exponents, length, work):
    """Log-likelihood at a length of the branch, up to the scale of the partials that the table was made from."""
    total = 0.0
    for k in range(data.ascertained.shape[0]):
        n_patterns = data.layout[PATTERNS, k]
        at, term = data.layout[TABLE_AT, k], data.layout[TERM_AT, k]
        n_terms = data.layout[TERM_AT, k + 1] - term
        value = work[0, :n_patterns]
        values_at(table[at : at + (n_terms + 1) * n_patterns], n_patterns, exponents[term : term + n_terms], length, value)
        total += log_values(value, data, k)
        if data.ascertained[k] > 0.0:
            constant = 0.0
            for p in range(n_patterns - data.layout[STATES, k], n_patterns):
                constant += work[0, p]
            total -= data.ascertained[k] * np.log(max(1.0 - constant, TINIEST))
    return total


@inlined
def slopes(data, table, exponents, length, work):
    """First and second derivative of the log-likelihood in the length."""
    first = 0.0
    second = 0.0
    for k in range(data.ascertained.shape[0]):
        n_patterns = data.layout[PATTERNS, k]
        at, term, begin = data.layout[TABLE_AT, k], data.layout[TERM_AT, k], data.layout[COUNT_AT, k]
        n_terms = data.layout[TERM_AT, k + 1] - term
        count = data.counts[begin : begin + n_patterns]
        if n_terms == 1 and data.ascertained[k] == 0.0:
            fixed, row = table[at : at + n_patterns], table[at + n_patterns : at + 2 * n_patterns]
            mu = exponents[term]
            keep = np.exp(-mu * length)
            one = 0.0
            two = 0.0
            for p in range(n_patterns):
                moving = keep * row[p]
                r = moving / max(fixed[p] + moving, TINIEST)
                one += count[p] * r
                two += count[p] * (r - r * r)
            first -= mu * one
            second += mu * mu * two
            continue
        value, one_row, two_row = work[0, :n_patterns], work[1, :n_patterns], work[2, :n_patterns]
        derivatives_at(
            table[at : at + (n_terms + 1) * n_patterns], n_patterns, exponents[term : term + n_terms], length,
            value, one_row, two_row,
        )  # fmt: skip
        for p in range(n_patterns):
            inverse = 1.0 / max(value[p], TINIEST)
            r = one_row[p] * inverse
            first += count[p] * r
            second += count[p] * (two_row[p] * inverse - r * r)
        if data.ascertained[k] > 0.0:
            c0 = 0.0
            c1 = 0.0
            c2 = 0.0
            for p in range(n_patterns - data.layout[STATES, k], n_patterns):
                c0 += work[0, p]
                c1 += work[1, p]
                c2 += work[2, p]
            rest = max(1.0 - c0, TINIEST)
            first += data.ascertained[k] * c1 / rest
            second += data.ascertained[k] * (c2 / rest + (c1 / rest) ** 2)
    return first, second


@inlined
def conditional(length, a, rate, power, rest):
    """What prior and proposal add to beta times the log-likelihood: a log b - rate b + power log(rest + b)."""
    value = a * np.log(length) - rate * length
    if power != 0.0:
        value += power * np.log(rest + length)
    return value


@inlined
def fit_gamma(data, table, exponents, beta, a, rate, power, rest, start, work):
    """Mode in log b and the Gamma that matches the conditional there: (mode, shape). Depends on nothing but its arguments.

    Newton steps in log b, whose error is about the square of the last one: enough where that is small beside the width.
    """
    b = min(max(start, 1e-7), 1e3)
    shape = 1.0
    for _ in range(10):
        first, second = 0.0, 0.0
        if beta > 0.0:
            first, second = slopes(data, table, exponents, b, work)
        first = beta * first + a / b - rate
        second = beta * second - a / (b * b)
        if power != 0.0:
            first += power / (rest + b)
            second -= power / ((rest + b) * (rest + b))
        slope = b * first + 1.0
        curvature = b * first + b * b * second
        step = -slope / curvature if curvature < 0.0 else (1.0 if slope > 0.0 else -1.0)
        step = min(max(step, -2.0), 2.0)
        shape = max(-curvature, 0.2)
        b = min(max(b * np.exp(step), 1e-8), 1e4)
        if step * step * np.sqrt(shape) < NEAR and abs(step) < 0.6:
            break
    return b, shape


@inlined
def log_gamma(b, shape, rate):
    """Log-density of a Gamma."""
    return shape * np.log(rate) + (shape - 1.0) * np.log(b) - rate * b - lgamma(shape)


@inlined
def wide_rate(rate, power, rest, mode):
    return max(rate - power / (rest + mode) if power != 0.0 else rate, 1e-3)


@inlined
def draw_length(mode, shape, a, wide, rng):
    """A length from the mixture of the matched Gamma and the wide one."""
    if rng.random() < WIDE:
        return rng.standard_gamma(1.0 + a) / wide
    return rng.standard_gamma(shape) * mode / shape


@inlined
def log_draw(b, mode, shape, a, wide):
    """Log-density of `draw_length`."""
    narrow = LOG_NARROW + log_gamma(b, shape, shape / mode)
    broad = LOG_WIDE + log_gamma(b, 1.0 + a, wide)
    top = max(narrow, broad)
    return top + np.log(np.exp(narrow - top) + np.exp(broad - top))
