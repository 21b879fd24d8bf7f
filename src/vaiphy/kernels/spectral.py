"""Leaf operations of any reversible model: P(b) = backward diag(exp(-decay rate b)) forward (see `families`).

Loops run over slices of rows: only so does the compiler see that nothing can wrap around, and uses vector instructions.
"""

import numpy as np

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.layout import CATEGORIES, CATEGORY_AT, PATTERNS, ROW_AT, STATE_AT, STATES, TABLE_AT, TERM_AT, TIP_AT


@inlined
def carry(family, point, data, length, source, is_tip, out, multiply):
    matrix_at = 0
    for k in range(data.ascertained.shape[0]):
        n_states, n_patterns = data.layout[STATES, k], data.layout[PATTERNS, k]
        size = n_states * n_patterns
        matrix = np.empty((n_states, n_states))
        for c in range(data.layout[CATEGORIES, k]):
            rate = family.rates[point, data.layout[CATEGORY_AT, k] + c]
            at = data.layout[ROW_AT, k] + c * size
            x_at = data.layout[TIP_AT, k] if is_tip else at
            fill_matrix(family, point, matrix_at, data.layout[STATE_AT, k], n_states, rate * length, matrix)
            if n_states == 4:
                carry_four(matrix, source[x_at : x_at + size], out[at : at + size], n_patterns, multiply)
            else:
                carry_any(matrix, source[x_at : x_at + size], out[at : at + size], n_states, n_patterns, multiply)
        matrix_at += n_states * n_states


@inlined
def carry_two(family, point, data, length, source, is_tip, other_length, other, other_is_tip, out):
    carry(family, point, data, length, source, is_tip, out, False)
    carry(family, point, data, other_length, other, other_is_tip, out, True)


@inlined
def fill_matrix(family, point, matrix_at, state_at, n_states, time, matrix):
    """Probabilities of change in a given time (rate times length); in no time exactly none."""
    matrix[:] = 0.0
    if time == 0.0:
        for a in range(n_states):
            matrix[a, a] = 1.0
        return
    for j in range(n_states):
        keep = np.exp(-family.decay[point, state_at + j] * time)
        for a in range(n_states):
            left = keep * family.backward[point, matrix_at + a * n_states + j]
            for b in range(n_states):
                matrix[a, b] += left * family.forward[point, matrix_at + j * n_states + b]
    for a in range(n_states):
        for b in range(n_states):
            matrix[a, b] = max(matrix[a, b], 0.0)  # rounding may leave -1e-18


@inlined
def carry_four(m, x, out, n, multiply):
    m00, m01, m02, m03 = m[0, 0], m[0, 1], m[0, 2], m[0, 3]
    m10, m11, m12, m13 = m[1, 0], m[1, 1], m[1, 2], m[1, 3]
    m20, m21, m22, m23 = m[2, 0], m[2, 1], m[2, 2], m[2, 3]
    m30, m31, m32, m33 = m[3, 0], m[3, 1], m[3, 2], m[3, 3]
    x0, x1, x2, x3 = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    y0, y1, y2, y3 = out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n : 4 * n]
    if multiply:
        for p in range(n):
            y0[p] *= (m00 * x0[p] + m01 * x1[p]) + (m02 * x2[p] + m03 * x3[p])
            y1[p] *= (m10 * x0[p] + m11 * x1[p]) + (m12 * x2[p] + m13 * x3[p])
            y2[p] *= (m20 * x0[p] + m21 * x1[p]) + (m22 * x2[p] + m23 * x3[p])
            y3[p] *= (m30 * x0[p] + m31 * x1[p]) + (m32 * x2[p] + m33 * x3[p])
    else:
        for p in range(n):
            y0[p] = (m00 * x0[p] + m01 * x1[p]) + (m02 * x2[p] + m03 * x3[p])
            y1[p] = (m10 * x0[p] + m11 * x1[p]) + (m12 * x2[p] + m13 * x3[p])
            y2[p] = (m20 * x0[p] + m21 * x1[p]) + (m22 * x2[p] + m23 * x3[p])
            y3[p] = (m30 * x0[p] + m31 * x1[p]) + (m32 * x2[p] + m33 * x3[p])


@inlined
def carry_any(matrix, x, out, n_states, n, multiply):
    total = np.empty(n)
    for a in range(n_states):
        weighted_sum(matrix[a], x, n_states, n, total)
        result = out[a * n : (a + 1) * n]
        if multiply:
            for p in range(n):
                result[p] *= total[p]
        else:
            for p in range(n):
                result[p] = total[p]


@inlined
def weighted_sum(weights, x, count, n, total):
    """total = sum over rows of x, four at a time: each sum is then read and written a quarter as often."""
    total[:] = 0.0
    whole = count - count % 4
    for b in range(0, whole, 4):
        w0, w1, w2, w3 = weights[b], weights[b + 1], weights[b + 2], weights[b + 3]
        x0, x1 = x[b * n : (b + 1) * n], x[(b + 1) * n : (b + 2) * n]
        x2, x3 = x[(b + 2) * n : (b + 3) * n], x[(b + 3) * n : (b + 4) * n]
        for p in range(n):
            total[p] += (w0 * x0[p] + w1 * x1[p]) + (w2 * x2[p] + w3 * x3[p])
    for b in range(whole, count):
        w, row = weights[b], x[b * n : (b + 1) * n]
        for p in range(n):
            total[p] += w * row[p]


@inlined
def fill_table(family, point, data, x, x_is_tip, y, y_is_tip, table):
    matrix_at = 0
    for k in range(data.ascertained.shape[0]):
        n_states, n = data.layout[STATES, k], data.layout[PATTERNS, k]
        size = n_states * n
        t_at = data.layout[TABLE_AT, k]
        forward = family.forward[point, matrix_at : matrix_at + n_states * n_states]
        table[t_at : t_at + n] = 0.0
        for c in range(data.layout[CATEGORIES, k]):
            weight = family.weights[point, data.layout[CATEGORY_AT, k] + c]
            row = data.layout[ROW_AT, k] + c * size
            x_at = data.layout[TIP_AT, k] if x_is_tip else row
            y_at = data.layout[TIP_AT, k] if y_is_tip else row
            xs, ys = x[x_at : x_at + size], y[y_at : y_at + size]
            if family.rates[point, data.layout[CATEGORY_AT, k] + c] == 0.0:
                # Sites that cannot change: summed over states, not over terms that cancel where the states differ.
                for s in range(n_states):
                    pi = weight * family.pi[point, data.layout[STATE_AT, k] + s]
                    row_x, row_y, constant = xs[s * n : (s + 1) * n], ys[s * n : (s + 1) * n], table[t_at : t_at + n]
                    for p in range(n):
                        constant[p] += pi * row_x[p] * row_y[p]
                first = t_at + (c * (n_states - 1) + 1) * n
                table[first : first + (n_states - 1) * n] = 0.0
                continue
            first = t_at + (c * (n_states - 1) + 1) * n
            moving = table[first : first + (n_states - 1) * n]
            if n_states == 4:
                terms_four(forward, weight, xs, ys, n, table[t_at : t_at + n], moving)
            else:
                for j in range(n_states):
                    out = table[t_at : t_at + n] if j == 0 else moving[(j - 1) * n : j * n]
                    term_any(forward[j * n_states : (j + 1) * n_states], weight, xs, ys, n_states, n, out, j == 0)
        matrix_at += n_states * n_states


@inlined
def fill_pairing_table(family, point, data, one, two, three, four, below, above, table):
    for q in range(below.shape[0]):
        below[q] = one[q] * two[q]
        above[q] = three[q] * four[q]
    fill_table(family, point, data, below, False, above, False, table)


@inlined
def terms_four(f, weight, x, y, n, constant, moving):
    """All four terms of one category: the first is added to `constant`, the others are rows of `moving`."""
    x0, x1, x2, x3 = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    y0, y1, y2, y3 = y[:n], y[n : 2 * n], y[2 * n : 3 * n], y[3 * n : 4 * n]
    t1, t2, t3 = moving[:n], moving[n : 2 * n], moving[2 * n : 3 * n]
    t2[:] = 0.0
    pair_of_terms(f[:8], weight, x0, x1, x2, x3, y0, y1, y2, y3, constant, t1)
    pair_of_terms(f[8:], weight, x0, x1, x2, x3, y0, y1, y2, y3, t2, t3)


@inlined
def pair_of_terms(f, weight, x0, x1, x2, x3, y0, y1, y2, y3, one, two):
    """Two terms in one loop, the first added to what is there: four would need more registers than there are."""
    f0, f1, f2, f3 = f[0], f[1], f[2], f[3]
    g0, g1, g2, g3 = f[4], f[5], f[6], f[7]
    for p in range(one.shape[0]):
        a, b, c, d = x0[p], x1[p], x2[p], x3[p]
        q, r, s, t = y0[p], y1[p], y2[p], y3[p]
        one[p] += weight * (((f0 * a + f1 * b) + (f2 * c + f3 * d)) * ((f0 * q + f1 * r) + (f2 * s + f3 * t)))
        two[p] = weight * (((g0 * a + g1 * b) + (g2 * c + g3 * d)) * ((g0 * q + g1 * r) + (g2 * s + g3 * t)))


@inlined
def term_any(f, weight, x, y, n_states, n, out, add):
    a, b = np.empty(n), np.empty(n)
    weighted_sum(f, x, n_states, n, a)
    weighted_sum(f, y, n_states, n, b)
    keep = 1.0 if add else 0.0
    if not add:
        out[:] = 0.0
    for p in range(n):
        out[p] = keep * out[p] + weight * (a[p] * b[p])


@inlined
def fill_exponents(family, point, data, exponents):
    for k in range(data.ascertained.shape[0]):
        n_states = data.layout[STATES, k]
        for c in range(data.layout[CATEGORIES, k]):
            rate = family.rates[point, data.layout[CATEGORY_AT, k] + c]
            for j in range(1, n_states):
                exponents[data.layout[TERM_AT, k] + c * (n_states - 1) + j - 1] = (
                    rate * family.decay[point, data.layout[STATE_AT, k] + j]
                )
