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
from vaiphy.kernels.families import carry, fill_pairing_table, fill_table
from vaiphy.kernels.partials import MOST_PENDING, join, pending_of, rescale, row_of, scale_of
from vaiphy.kernels.workspace import CONSTANT, EXPONENT, MASS, MODE, RATE, SHAPE, blend, drawn_index, meet, replace_child, sister


@inlined
def relength(v, above, tree, family, point, data, goal, rows, space, rng, counts):
    """Draw the length of the branch between v (row seen from above) and the vertex `above` (row seen from v, or taxon 0)."""
    n = data.tips.shape[0]
    outer = v < n or above == 0
    shape, rate, _ = length_gamma(goal.law, tree.clade[v], tree.clade[above], outer)
    a, rate_b, power = blend(goal, shape, rate, outer)
    old = tree.lengths[v]
    rest = max(tree.whole[1] - old, 0.0)
    table, exponents, work = space.tables[0], space.exponents, space.work
    fill_table(family, point, data, row_of(v, data, rows.values), v < n, row_of(above, data, rows.values), above == 0, table)
    mode, fitted = fit_gamma(data, table, exponents, goal.beta, a, rate_b, power, rest, shape / rate, work)
    wide = wide_rate(rate_b, power, rest, mode)
    new = draw_length(mode, fitted, a, wide, rng)
    counts[0, 1] += 1
    if not MIN_LENGTH <= new <= MAX_LENGTH:
        return
    ratio = conditional(new, a, rate_b, power, rest) - conditional(old, a, rate_b, power, rest)
    ratio += log_draw(old, mode, fitted, a, wide) - log_draw(new, mode, fitted, a, wide)
    if goal.beta > 0.0:
        ratio += goal.beta * (score(data, table, exponents, new, work) - score(data, table, exponents, old, work))
    if np.log(rng.random()) < ratio:
        tree.lengths[v] = new
        tree.whole[1] = rest + new
        counts[0, 0] += 1


@inlined
def part_term(c, whole, tree, law):
    """Log-density of how c is split and of the length of its branch, as part of the clade `whole`."""
    length = length_term(law, tree.clade[c], whole, c < tree.children.shape[0] + 2, tree.lengths[c])
    return split_term(c, whole, tree.children, tree.clade, tree.size, law) + length


@inlined
def pairing_term(x, y, z, p, joined, tree, law):
    """Log-density of the splits around an inner branch that joins x and y below p, with z beside it, and of what is around it."""
    clade, size = tree.clade, tree.size
    above = clade[tree.parent[p]]
    value = log_split(law, clade[p], clade[x], clade[y], size[x], size[y])
    value += log_split(law, above, joined, clade[z], united(law.rules, size[x], size[y]), size[z])
    return value + part_term(x, joined, tree, law) + part_term(y, joined, tree, law) + part_term(z, clade[p], tree, law)


@inlined
def weigh_pairing(k, p, rest, tree, family, point, data, goal, space):
    """Fill option k: 0 leaves the children a and b where they are, 1 puts their aunt s in the place of a, 2 in that of b."""
    i, j = 2 if k == 1 else 0, 2 if k == 2 else 1
    x, y, z = space.order[i], space.order[j], space.order[3 - i - j]
    option, table = space.options[k], space.tables[k]
    joined = tree.clade[x] ^ tree.clade[y]
    if k > 0 and not may_pair(goal.law.rules, tree.size[x], tree.size[y], tree.size[z], joined):
        option[MASS] = -np.inf
        return
    shape, rate, constant = length_gamma(goal.law, joined, tree.clade[p], False)
    exponent, rate_b, power = blend(goal, shape, rate, False)
    value = 0.0
    if goal.beta < 1.0:
        value = (1.0 - goal.beta) * (pairing_term(x, y, z, p, joined, tree, goal.law) + constant)
    if goal.beta > 0.0:
        rows = space.carried
        fill_pairing_table(family, point, data, rows[i], rows[j], rows[3 - i - j], rows[3], rows[4], rows[5], table)
    mode, fitted = fit_gamma(data, table, space.exponents, goal.beta, exponent, rate_b, power, rest, shape / rate, space.work)
    option[EXPONENT], option[RATE], option[MODE], option[SHAPE], option[CONSTANT] = exponent, rate_b, mode, fitted, value
    option[MASS] = value + conditional(mode, exponent, rate_b, power, rest) - log_gamma(mode, fitted, fitted / mode)
    if goal.beta > 0.0:
        option[MASS] += goal.beta * score(data, table, space.exponents, mode, space.work)


@inlined
def option_term(option, length, power, rest):
    """Log-density under pi_beta over that of being proposed, but for the likelihood, of an option with this length."""
    wide = wide_rate(option[RATE], power, rest, option[MODE])
    value = option[CONSTANT] - option[MASS] + conditional(length, option[EXPONENT], option[RATE], power, rest)
    return value - log_draw(length, option[MODE], option[SHAPE], option[EXPONENT], wide)


@inlined
def interchange(v, p, tree, family, point, data, goal, rows, space, rng, counts):
    """Choose between the three topologies around the inner branch above v, and draw its length."""
    n = data.tips.shape[0]
    children, options = tree.children, space.options
    up = tree.parent[p]
    around = space.order
    around[0], around[1], around[2] = children[v - n, 0], children[v - n, 1], sister(v, children, p)
    for j in range(3):
        c = around[j]
        carry(family, point, data, tree.lengths[c], row_of(c, data, rows.values), c < n, space.carried[j], False)
    carry(family, point, data, tree.lengths[p], row_of(up, data, rows.values), up == 0, space.carried[3], False)
    old = tree.lengths[v]
    rest = max(tree.whole[1] - old, 0.0)
    for k in range(3):
        weigh_pairing(k, p, rest, tree, family, point, data, goal, space)
    k, _ = drawn_index(options[:, MASS], 3, rng)
    if options[k, MASS] == -np.inf:  # by rounding alone
        k = 0
    power = goal.beta * goal.prior[3]
    wide = wide_rate(options[k, RATE], power, rest, options[k, MODE])
    new = draw_length(options[k, MODE], options[k, SHAPE], options[k, EXPONENT], wide, rng)
    counts[1, 1] += 1
    counts[2, 1] += 1 if k > 0 else 0
    accepted = False
    if MIN_LENGTH <= new <= MAX_LENGTH:
        ratio = option_term(options[k], new, power, rest) - option_term(options[0], old, power, rest)
        if goal.beta > 0.0:
            gain = score(data, space.tables[k], space.exponents, new, space.work)
            ratio += goal.beta * (gain - score(data, space.tables[0], space.exponents, old, space.work))
        accepted = np.log(rng.random()) < ratio
    if accepted:
        counts[1, 0] += 1
        counts[2, 0] += 1 if k > 0 else 0
        tree.lengths[v] = new
        tree.whole[1] = rest + new
        if k > 0:
            exchange(k, v, p, tree, data, goal.law.rules, rows, space)
    # Which child comes first has no meaning; a coin makes the next way of the tour independent of the last.
    if rng.random() < 0.5:
        children[v - n, 0], children[v - n, 1] = children[v - n, 1], children[v - n, 0]


@inlined
def exchange(k, v, p, tree, data, rules, rows, space):
    """Let the sister s of v change places with v's child k - 1."""
    n = data.tips.shape[0]
    children = tree.children
    moved, stays, s = space.order[k - 1], space.order[2 - k], space.order[2]
    children[v - n, k - 1] = s
    replace_child(p, s, moved, children)
    tree.parent[s], tree.parent[moved] = v, p
    tree.clade[v] = tree.clade[s] ^ tree.clade[stays]
    tree.size[v] = united(rules, tree.size[children[v - n, 0]], tree.size[children[v - n, 1]])
    multiply(v, s, stays, 2, 2 - k, data, rows, space)
    multiply(p, tree.parent[p], moved, 3, k - 1, data, rows, space)


@inlined
def multiply(v, x, y, i, j, data, rows, space):
    """rows[v] from two neighbours x and y, whose carried rows are i and j."""
    n = data.tips.shape[0]
    out, one, two = rows.values[v - n], space.carried[i], space.carried[j]
    for q in range(out.shape[0]):
        out[q] = one[q] * two[q]
    rows.scale[v - n] = scale_of(x, n, rows.scale) + scale_of(y, n, rows.scale)
    rows.pending[v - n] = pending_of(x, n, rows.pending) + pending_of(y, n, rows.pending)
    if rows.pending[v - n] > MOST_PENDING:
        rows.scale[v - n] += rescale(out, data, space.work[0])
        rows.pending[v - n] = 1


@inlined
def turn(v, c, tree, family, point, data, rows, work):
    """rows[v] as seen from its child c: the other child and the parent's side."""
    s = sister(c, tree.children, v)
    up = tree.parent[v]
    join(v, s, tree.lengths[s], up, tree.lengths[v], family, point, data, rows.values, rows.scale, rows.pending, work)


@inlined
def turn_path(v, tree, family, point, data, rows, space):
    """Rows of all vertices above v as seen from v."""
    path = space.order
    depth = 0
    w = v
    while tree.parent[w] != 0:
        w = tree.parent[w]
        path[depth] = w
        depth += 1
    for i in range(depth - 1, -1, -1):
        turn(path[i], path[i - 1] if i > 0 else v, tree, family, point, data, rows, space.work)


@inlined
def tour(n_steps, interchanges, tree, family, point, data, goal, rows, space, rng, counts):
    """Walk `n_steps` steps from a branch drawn uniformly. Rows must be those seen from the parents, and are anything afterwards.

    `interchanges`: whether topologies change.
    """
    n = data.tips.shape[0]
    v = 1 + np.int64(rng.random() * (2 * n - 3))
    down = rng.random() < 0.5
    turn_path(v, tree, family, point, data, rows, space)
    for _ in range(n_steps):
        above = tree.parent[v]
        if down and interchanges and v >= n and above != 0:
            interchange(v, above, tree, family, point, data, goal, rows, space, rng, counts)
        elif down or v >= n:
            relength(v, above, tree, family, point, data, goal, rows, space, rng, counts)
        # On along the outline: down to the first child, at a taxon or the top about, over to the second child, or up.
        if down and v < n:
            down = False
        elif not down and above == 0:
            down = True
        elif down or tree.children[above - n, 0] == v:
            at = v if down else above
            c = tree.children[at - n, 0 if down else 1]
            turn(at, c, tree, family, point, data, rows, space.work)
            v = c
            down = True
        else:
            meet(above, tree.children[above - n, 0], tree.children[above - n, 1], tree, family, point, data, rows, space.work)
            v = above
