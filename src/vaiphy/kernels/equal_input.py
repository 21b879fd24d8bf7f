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
