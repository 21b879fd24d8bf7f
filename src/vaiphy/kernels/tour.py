"""A walk around a tree that updates every branch, exactly.

The walk follows the tree's outline (an Euler tour): its state is the tree and a directed branch. One step of the tour is a
bijection of the directed branches of a tree, and every update leaves pi_beta invariant whatever branch it is made at; so, started
at a branch drawn uniformly, any fixed number of steps leaves pi_beta invariant too, although updates change the way ahead. A
step costs one join: the row of a vertex is always that seen from the branch where the walk is.

Going down, an inner branch chooses between the three topologies around it and draws its length (`interchange`); a
taxon's branch, or an inner one on the way up, draws its length alone (`relength`). Proposals are fitted to what is around the
branch and do not depend on its present state, so the Metropolis ratio is a ratio of importance weights.
"""

import numpy as np

from vaiphy.kernels.branch import (
    MAX_LENGTH,
    MIN_LENGTH,
    conditional,
    draw_length,
    fit_gamma,
    log_draw,
    log_gamma,
    score,
    wide_rate,
)
from vaiphy.kernels.clades import length_gamma, length_term, log_split, split_term
from vaiphy.kernels.compile import inlined
from vaiphy.kernels.constraints import may_pair, united
from vaiphy.kernels.families import carry, fill_table
from vaiphy.kernels.partials import MOST_PENDING, join, pending_of, rescale, row_of, scale_of


@inlined
def blend(beta, prior, shape, rate, outer):
    """Exponent and rate of b in prior^beta * proposal^(1 - beta), and the power of the tree length."""
    alpha = prior[0] if outer else prior[1]
    a = beta * (alpha - 1.0) + (1.0 - beta) * (shape - 1.0)
    return a, beta * prior[2] + (1.0 - beta) * rate, beta * prior[3]


@inlined
def relength(v, above, tree, lengths, clade, family, point, data, law, beta, prior, rows, exponents, tables, work, rng, counts):
    """Draw the length of the branch between v (row seen from above) and the vertex `above` (row seen from v, or taxon 0)."""
    n = data.tips.shape[0]
    outer = v < n or above == 0
    shape, rate, _ = length_gamma(law, clade[v], clade[above], outer)
    a, rate_b, power = blend(beta, prior, shape, rate, outer)
    old = lengths[v]
    rest = max(tree[1] - old, 0.0)
    fill_table(family, point, data, row_of(v, data, rows), v < n, row_of(above, data, rows), above == 0, tables[0])
    mode, fitted = fit_gamma(data, tables[0], exponents, beta, a, rate_b, power, rest, shape / rate, work)
    wide = wide_rate(rate_b, power, rest, mode)
    new = draw_length(mode, fitted, a, wide, rng)
    counts[0, 1] += 1
    if not MIN_LENGTH <= new <= MAX_LENGTH:
        return
    ratio = conditional(new, a, rate_b, power, rest) - conditional(old, a, rate_b, power, rest)
    ratio += log_draw(old, mode, fitted, a, wide) - log_draw(new, mode, fitted, a, wide)
    if beta > 0.0:
        ratio += beta * (score(data, tables[0], exponents, new, work) - score(data, tables[0], exponents, old, work))
    if np.log(rng.random()) < ratio:
        lengths[v] = new
        tree[1] = rest + new
        counts[0, 0] += 1


@inlined
def interchange(
    v, p, children, parent, lengths, tree, clade, size, family, point, data, law, beta, prior,
    rows, scale, pending, carried, exponents, tables, work, rng, counts,
):  # fmt: skip
    """Choose between the three topologies around the inner branch above v, and draw its length."""
    n = data.tips.shape[0]
    side = 0 if children[p - n, 0] == v else 1
    s = children[p - n, 1 - side]
    a, b = children[v - n, 0], children[v - n, 1]
    up = parent[p]
    for j in range(3):
        c = a if j == 0 else b if j == 1 else s
        carry(family, point, data, lengths[c], row_of(c, data, rows), c < n, carried[j], False)
    carry(family, point, data, lengths[p], row_of(up, data, rows), up == 0, carried[3], False)
    old = lengths[v]
    rest = max(tree[1] - old, 0.0)
    below, above = carried[4], carried[5]
    exponent = np.empty(3)
    rate = np.empty(3)
    modes = np.empty(3)
    fitted = np.empty(3)
    constant = np.empty(3)
    mass = np.empty(3)
    power = 0.0
    for k in range(3):
        # 0: v keeps its children; 1: s takes the place of a; 2: s takes the place of b.
        x, y, z = (a, b, s) if k == 0 else (s, b, a) if k == 1 else (a, s, b)
        joined = clade[x] ^ clade[y]
        if k > 0 and not may_pair(law.rules, size[x], size[y], size[z], joined):
            mass[k] = -np.inf
            continue
        shape_q, rate_q, constant_q = length_gamma(law, joined, clade[p], False)
        exponent[k], rate[k], power = blend(beta, prior, shape_q, rate_q, False)
        constant[k] = 0.0
        if beta < 1.0:
            density = log_split(law, clade[p], clade[x], clade[y], size[x], size[y])
            density += log_split(law, clade[up], joined, clade[z], united(law.rules, size[x], size[y]), size[z])
            # Those around the branch are part of other clades now.
            for c, whole in ((x, joined), (y, joined), (z, clade[p])):
                density += split_term(c, whole, children, clade, size, law)
                density += length_term(law, clade[c], whole, c < n, lengths[c])
            constant[k] = (1.0 - beta) * (density + constant_q)
        if beta > 0.0:
            one = carried[2] if k == 1 else carried[0]
            two = carried[2] if k == 2 else carried[1]
            three = carried[2] if k == 0 else carried[0] if k == 1 else carried[1]
            for i in range(below.shape[0]):
                below[i] = one[i] * two[i]
                above[i] = three[i] * carried[3, i]
            fill_table(family, point, data, below, False, above, False, tables[k])
        modes[k], fitted[k] = fit_gamma(
            data, tables[k], exponents, beta, exponent[k], rate[k], power, rest, shape_q / rate_q, work
        )
        mass[k] = constant[k] + conditional(modes[k], exponent[k], rate[k], power, rest)
        mass[k] -= log_gamma(modes[k], fitted[k], fitted[k] / modes[k])
        if beta > 0.0:
            mass[k] += beta * score(data, tables[k], exponents, modes[k], work)
    top = max(mass[0], max(mass[1], mass[2]))
    total = np.exp(mass[0] - top) + np.exp(mass[1] - top) + np.exp(mass[2] - top)
    u = rng.random() * total
    k = 0
    while k < 2 and u >= np.exp(mass[k] - top):
        u -= np.exp(mass[k] - top)
        k += 1
    if mass[k] == -np.inf:  # by rounding alone
        k = 0
    wide = wide_rate(rate[k], power, rest, modes[k])
    new = draw_length(modes[k], fitted[k], exponent[k], wide, rng)
    counts[1, 1] += 1
    counts[2, 1] += 1 if k > 0 else 0
    accepted = False
    if MIN_LENGTH <= new <= MAX_LENGTH:
        ratio = constant[k] - constant[0] + mass[0] - mass[k]
        ratio += conditional(new, exponent[k], rate[k], power, rest) - conditional(old, exponent[0], rate[0], power, rest)
        ratio -= log_draw(new, modes[k], fitted[k], exponent[k], wide)
        ratio += log_draw(old, modes[0], fitted[0], exponent[0], wide_rate(rate[0], power, rest, modes[0]))
        if beta > 0.0:
            ratio += beta * (score(data, tables[k], exponents, new, work) - score(data, tables[0], exponents, old, work))
        accepted = np.log(rng.random()) < ratio
    if accepted:
        counts[1, 0] += 1
        counts[2, 0] += 1 if k > 0 else 0
        lengths[v] = new
        tree[1] = rest + new
        if k > 0:
            moved = a if k == 1 else b
            children[v - n, k - 1] = s
            children[p - n, 1 - side] = moved
            parent[s], parent[moved] = v, p
            clade[v] = clade[children[v - n, 0]] ^ clade[children[v - n, 1]]
            size[v] = united(law.rules, size[children[v - n, 0]], size[children[v - n, 1]])
            for w in range(2):
                x, y = (v, children[v - n, 1]) if w == 0 else (p, up)
                z = children[v - n, 0] if w == 0 else moved
                i, j = (0 if k == 2 else 2, 1 if k == 1 else 2) if w == 0 else (k - 1, 3)
                out = rows[x - n]
                for q in range(out.shape[0]):
                    out[q] = carried[i, q] * carried[j, q]
                scale[x - n] = scale_of(y, n, scale) + scale_of(z, n, scale)
                pending[x - n] = pending_of(y, n, pending) + pending_of(z, n, pending)
                if pending[x - n] > MOST_PENDING:
                    scale[x - n] += rescale(out, data, work[0])
                    pending[x - n] = 1
    # Which child comes first has no meaning; a coin makes the next way of the tour independent of the last.
    if rng.random() < 0.5:
        children[v - n, 0], children[v - n, 1] = children[v - n, 1], children[v - n, 0]


@inlined
def turn(v, c, children, parent, lengths, family, point, data, rows, scale, pending, work):
    """rows[v] as seen from its child c: the other child and the parent's side."""
    n = data.tips.shape[0]
    s = children[v - n, 0] if children[v - n, 1] == c else children[v - n, 1]
    join(v, s, lengths[s], parent[v], lengths[v], family, point, data, rows, scale, pending, work)


@inlined
def tour(
    children, parent, lengths, tree, clade, size, family, point, data, law, beta, prior,
    rows, scale, pending, carried, exponents, tables, work, path, n_steps, interchanges, rng, counts,
):  # fmt: skip
    """Walk `n_steps` steps from a branch drawn uniformly. Rows must be those seen from the parents, and are anything afterwards.

    tree: (top, sum of lengths). `interchanges`: whether topologies change.
    """
    n = data.tips.shape[0]
    v = 1 + np.int64(rng.random() * (2 * n - 3))
    down = rng.random() < 0.5
    depth = 0
    w = v
    while parent[w] != 0:
        w = parent[w]
        path[depth] = w
        depth += 1
    for i in range(depth - 1, -1, -1):
        c = path[i - 1] if i > 0 else v
        turn(path[i], c, children, parent, lengths, family, point, data, rows, scale, pending, work)
    for _ in range(n_steps):
        above = parent[v]
        if down and interchanges and v >= n and above != 0:
            interchange(
                v, above, children, parent, lengths, tree, clade, size, family, point, data, law, beta, prior,
                rows, scale, pending, carried, exponents, tables, work, rng, counts,
            )  # fmt: skip
        elif down or v >= n:
            relength(
                v, above, tree, lengths, clade, family, point, data, law, beta, prior, rows, exponents, tables, work, rng, counts
            )
        # On along the outline.
        if down:
            if v < n:
                down = False
            else:
                c = children[v - n, 0]
                turn(v, c, children, parent, lengths, family, point, data, rows, scale, pending, work)
                v = c
        elif above == 0:
            down = True
        elif children[above - n, 0] == v:
            c = children[above - n, 1]
            turn(above, c, children, parent, lengths, family, point, data, rows, scale, pending, work)
            v = c
            down = True
        else:
            a, b = children[above - n, 0], children[above - n, 1]
            join(above, a, lengths[a], b, lengths[b], family, point, data, rows, scale, pending, work)
            v = above
