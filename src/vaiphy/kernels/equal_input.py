"""Leaf operations of the equal-input family: P(b) = u I + (1 - u) 1 pi', u = exp(-beta rate b) (see `families`).

Loops run over slices of rows: only so does the compiler see that nothing can wrap around, and uses vector instructions.
"""

import numpy as np

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.layout import CATEGORIES, CATEGORY_AT, PATTERNS, ROW_AT, STATE_AT, STATES, TABLE_AT, TERM_AT, TIP_AT


@inlined
def carry(family, point, data, length, source, is_tip, out, multiply):
    for k in range(data.ascertained.shape[0]):
        n_states, n_patterns = data.layout[STATES, k], data.layout[PATTERNS, k]
        pi = family.pi[point, data.layout[STATE_AT, k] : data.layout[STATE_AT, k + 1]]
        for c in range(data.layout[CATEGORIES, k]):
            u = np.exp(-family.beta[point, k] * family.rates[point, data.layout[CATEGORY_AT, k] + c] * length)
            size = n_states * n_patterns
            at = data.layout[ROW_AT, k] + c * size
            x_at = data.layout[TIP_AT, k] if is_tip else at
            if n_states == 4:
                carry_four(source[x_at : x_at + size], out[at : at + size], n_patterns, u, pi, multiply)
            else:
                carry_any(source[x_at : x_at + size], out[at : at + size], n_states, n_patterns, u, pi, multiply)


@inlined
def carry_four(x, out, n, u, pi, multiply):
    q0, q1, q2, q3 = (1.0 - u) * pi[0], (1.0 - u) * pi[1], (1.0 - u) * pi[2], (1.0 - u) * pi[3]
    x0, x1, x2, x3 = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    y0, y1, y2, y3 = out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n : 4 * n]
    if multiply:
        for p in range(n):
            s = (q0 * x0[p] + q1 * x1[p]) + (q2 * x2[p] + q3 * x3[p])
            y0[p] *= s + u * x0[p]
            y1[p] *= s + u * x1[p]
            y2[p] *= s + u * x2[p]
            y3[p] *= s + u * x3[p]
    else:
        for p in range(n):
            s = (q0 * x0[p] + q1 * x1[p]) + (q2 * x2[p] + q3 * x3[p])
            y0[p] = s + u * x0[p]
            y1[p] = s + u * x1[p]
            y2[p] = s + u * x2[p]
            y3[p] = s + u * x3[p]


@inlined
def carry_two(family, point, data, length, source, is_tip, other_length, other, other_is_tip, out):
    for k in range(data.ascertained.shape[0]):
        n_states, n_patterns = data.layout[STATES, k], data.layout[PATTERNS, k]
        pi = family.pi[point, data.layout[STATE_AT, k] : data.layout[STATE_AT, k + 1]]
        for c in range(data.layout[CATEGORIES, k]):
            pace = family.beta[point, k] * family.rates[point, data.layout[CATEGORY_AT, k] + c]
            u, w = np.exp(-pace * length), np.exp(-pace * other_length)
            size = n_states * n_patterns
            at = data.layout[ROW_AT, k] + c * size
            x_at = data.layout[TIP_AT, k] if is_tip else at
            y_at = data.layout[TIP_AT, k] if other_is_tip else at
            x, y, result = source[x_at : x_at + size], other[y_at : y_at + size], out[at : at + size]
            if n_states == 4:
                carry_two_fours(x, y, result, n_patterns, u, w, pi)
            else:
                carry_any(x, result, n_states, n_patterns, u, pi, False)
                carry_any(y, result, n_states, n_patterns, w, pi, True)


@inlined
def carry_two_fours(x, y, out, n, u, w, pi):
    q0, q1, q2, q3 = (1.0 - u) * pi[0], (1.0 - u) * pi[1], (1.0 - u) * pi[2], (1.0 - u) * pi[3]
    r0, r1, r2, r3 = (1.0 - w) * pi[0], (1.0 - w) * pi[1], (1.0 - w) * pi[2], (1.0 - w) * pi[3]
    x0, x1, x2, x3 = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    y0, y1, y2, y3 = y[:n], y[n : 2 * n], y[2 * n : 3 * n], y[3 * n : 4 * n]
    z0, z1, z2, z3 = out[:n], out[n : 2 * n], out[2 * n : 3 * n], out[3 * n : 4 * n]
    for p in range(n):
        a0, a1, a2, a3 = x0[p], x1[p], x2[p], x3[p]
        b0, b1, b2, b3 = y0[p], y1[p], y2[p], y3[p]
        s = (q0 * a0 + q1 * a1) + (q2 * a2 + q3 * a3)
        t = (r0 * b0 + r1 * b1) + (r2 * b2 + r3 * b3)
        z0[p] = (s + u * a0) * (t + w * b0)
        z1[p] = (s + u * a1) * (t + w * b1)
        z2[p] = (s + u * a2) * (t + w * b2)
        z3[p] = (s + u * a3) * (t + w * b3)


@inlined
def carry_any(x, out, n_states, n, u, pi, multiply):
    total = np.zeros(n)
    for a in range(n_states):
        q = (1.0 - u) * pi[a]
        row = x[a * n : (a + 1) * n]
        for p in range(n):
            total[p] += q * row[p]
    for a in range(n_states):
        row, result = x[a * n : (a + 1) * n], out[a * n : (a + 1) * n]
        if multiply:
            for p in range(n):
                result[p] *= total[p] + u * row[p]
        else:
            for p in range(n):
                result[p] = total[p] + u * row[p]


@inlined
def fill_table(family, point, data, x, x_is_tip, y, y_is_tip, table):
    for k in range(data.ascertained.shape[0]):
        n_states, n = data.layout[STATES, k], data.layout[PATTERNS, k]
        pi = family.pi[point, data.layout[STATE_AT, k] : data.layout[STATE_AT, k + 1]]
        t_at = data.layout[TABLE_AT, k]
        constant = table[t_at : t_at + n]
        for c in range(data.layout[CATEGORIES, k]):
            weight = family.weights[point, data.layout[CATEGORY_AT, k] + c]
            size = n_states * n
            row = data.layout[ROW_AT, k] + c * size
            x_at = data.layout[TIP_AT, k] if x_is_tip else row
            y_at = data.layout[TIP_AT, k] if y_is_tip else row
            moving = table[t_at + (c + 1) * n : t_at + (c + 2) * n]
            still = family.rates[point, data.layout[CATEGORY_AT, k] + c] == 0.0
            if n_states == 4:
                table_four(x[x_at : x_at + size], y[y_at : y_at + size], n, pi, weight, moving, constant, c > 0, still)
            else:
                table_any(x[x_at : x_at + size], y[y_at : y_at + size], n_states, n, pi, weight, moving, constant, c > 0, still)


@inlined
def fill_pairing_table(family, point, data, one, two, three, four, below, above, table):
    for k in range(data.ascertained.shape[0]):
        n_states, n = data.layout[STATES, k], data.layout[PATTERNS, k]
        pi = family.pi[point, data.layout[STATE_AT, k] : data.layout[STATE_AT, k + 1]]
        t_at = data.layout[TABLE_AT, k]
        constant = table[t_at : t_at + n]
        for c in range(data.layout[CATEGORIES, k]):
            weight = family.weights[point, data.layout[CATEGORY_AT, k] + c]
            begin = data.layout[ROW_AT, k] + c * n_states * n
            end = begin + n_states * n
            x, y, z, w = one[begin:end], two[begin:end], three[begin:end], four[begin:end]
            moving = table[t_at + (c + 1) * n : t_at + (c + 2) * n]
            still = family.rates[point, data.layout[CATEGORY_AT, k] + c] == 0.0
            if n_states == 4:
                pairing_table_four(x, y, z, w, n, pi, weight, moving, constant, c > 0, still)
            else:
                lower, upper = below[begin:end], above[begin:end]
                for p in range(end - begin):
                    lower[p] = x[p] * y[p]
                    upper[p] = z[p] * w[p]
                table_any(lower, upper, n_states, n, pi, weight, moving, constant, c > 0, still)


@inlined
def pairing_table_four(x, y, z, w, n, pi, weight, moving, constant, add, still):
    p0, p1, p2, p3 = pi[0], pi[1], pi[2], pi[3]
    x0, x1, x2, x3 = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    y0, y1, y2, y3 = y[:n], y[n : 2 * n], y[2 * n : 3 * n], y[3 * n : 4 * n]
    z0, z1, z2, z3 = z[:n], z[n : 2 * n], z[2 * n : 3 * n], z[3 * n : 4 * n]
    w0, w1, w2, w3 = w[:n], w[n : 2 * n], w[2 * n : 3 * n], w[3 * n : 4 * n]
    keep = 1.0 if add else 0.0
    if not add:
        constant[:] = 0.0
    for p in range(n):
        a0, a1, a2, a3 = p0 * (x0[p] * y0[p]), p1 * (x1[p] * y1[p]), p2 * (x2[p] * y2[p]), p3 * (x3[p] * y3[p])
        b0, b1, b2, b3 = z0[p] * w0[p], z1[p] * w1[p], z2[p] * w2[p], z3[p] * w3[p]
        both = ((a0 + a1) + (a2 + a3)) * ((p0 * b0 + p1 * b1) + (p2 * b2 + p3 * b3))
        joint = (a0 * b0 + a1 * b1) + (a2 * b2 + a3 * b3)
        fixed = joint if still else both
        constant[p] = keep * constant[p] + weight * fixed
        moving[p] = weight * (joint - fixed)


@inlined
def table_four(x, y, n, pi, weight, moving, constant, add, still):
    p0, p1, p2, p3 = pi[0], pi[1], pi[2], pi[3]
    x0, x1, x2, x3 = x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 4 * n]
    y0, y1, y2, y3 = y[:n], y[n : 2 * n], y[2 * n : 3 * n], y[3 * n : 4 * n]
    keep = 1.0 if add else 0.0
    if not add:
        constant[:] = 0.0
    for p in range(n):
        a0, a1, a2, a3 = p0 * x0[p], p1 * x1[p], p2 * x2[p], p3 * x3[p]
        both = ((a0 + a1) + (a2 + a3)) * ((p0 * y0[p] + p1 * y1[p]) + (p2 * y2[p] + p3 * y3[p]))
        joint = (a0 * y0[p] + a1 * y1[p]) + (a2 * y2[p] + a3 * y3[p])
        fixed = joint if still else both  # sites that cannot change: nothing that would have to cancel
        constant[p] = keep * constant[p] + weight * fixed
        moving[p] = weight * (joint - fixed)


@inlined
def table_any(x, y, n_states, n, pi, weight, moving, constant, add, still):
    sum_x, sum_y = np.zeros(n), np.zeros(n)
    moving[:] = 0.0
    for a in range(n_states):
        row_x, row_y = x[a * n : (a + 1) * n], y[a * n : (a + 1) * n]
        for p in range(n):
            sum_x[p] += pi[a] * row_x[p]
            sum_y[p] += pi[a] * row_y[p]
            moving[p] += pi[a] * row_x[p] * row_y[p]
    if not add:
        constant[:] = 0.0
    for p in range(n):
        fixed = moving[p] if still else sum_x[p] * sum_y[p]
        constant[p] += weight * fixed
        moving[p] = weight * (moving[p] - fixed)


@inlined
def fill_exponents(family, point, data, exponents):
    for k in range(data.ascertained.shape[0]):
        for c in range(data.layout[CATEGORIES, k]):
            exponents[data.layout[TERM_AT, k] + c] = family.beta[point, k] * family.rates[point, data.layout[CATEGORY_AT, k] + c]
