"""Prune a clade and hang it in anywhere else, guided by what every place promises.

A clade is drawn uniformly and taken off; every branch of the rest is scored by hanging the clade into its middle. The scores
depend on the clade and the rest alone, not on where the clade was: so choosing a place in proportion to them, a
position on that branch uniformly, and a length for the clade's branch from its fitted conditional, is an independence proposal,
and the reverse probability is known from the same scores. One scan costs three joins a branch of the rest.
"""

import numpy as np

from vaiphy.kernels.branch import (
    MAX_LENGTH,
    MIN_LENGTH,
    conditional,
    draw_length,
    fit_gamma,
    log_draw,
    log_values,
    score,
    wide_rate,
)
from vaiphy.kernels.clades import length_gamma, length_term, log_split, split_term
from vaiphy.kernels.compile import inlined
from vaiphy.kernels.constraints import INSIDE, is_constrained, limits, mark_place, united
from vaiphy.kernels.families import carry, carry_two, fill_table
from vaiphy.kernels.partials import MOST_PENDING, pending_of, rescale, root_values, row_of, scale_of
from vaiphy.kernels.rooted import NONE
from vaiphy.kernels.workspace import blend, drawn_index, renew_upwards, replace_child, sister


@inlined
def hang(w, position, lengths, family, point, data, rows, above, above_is_tip, out):
    """out: partials at the point of the branch above w that lies `position` of its length away from w."""
    n = data.tips.shape[0]
    lower, upper = position * lengths[w], (1.0 - position) * lengths[w]
    carry_two(family, point, data, lower, row_of(w, data, rows), w < n, upper, above, above_is_tip, out)


@inlined
def place_terms(w, v, position, path_terms, children, parent, lengths, clade, size, law):
    """log q of hanging clade v into the branch above w, up to what does not depend on the place or the branch of v itself."""
    n = children.shape[0] + 2
    up = parent[w]
    on_top = up == 0
    length = lengths[w]
    joined = clade[w] ^ clade[v]
    whole = clade[up] if on_top else clade[up] ^ clade[v]
    # w leaves the clade it was part of; a new vertex takes its place and has w and v as its parts.
    value = path_terms[w] - length_term(law, clade[w], clade[up], w < n or on_top, length)
    value -= split_term(w, clade[up], children, clade, size, law)
    value += length_term(law, joined, whole, on_top, (1.0 - position) * length)
    value += log_split(law, whole, clade[w], clade[v], size[w], size[v])
    value += length_term(law, clade[w], joined, w < n, position * length)
    value += split_term(w, joined, children, clade, size, law)
    return value + split_term(v, joined, children, clade, size, law)


@inlined
def pass_down(w, v, path_terms, children, parent, lengths, clade, size, law):
    """path_terms of w's children: what changes above them if clade v is hung in somewhere below w."""
    n = children.shape[0] + 2
    up = parent[w]
    joined = clade[w] ^ clade[v]
    whole = clade[up] if up == 0 else clade[up] ^ clade[v]
    base = path_terms[w] + length_term(law, joined, whole, up == 0, lengths[w])
    base -= length_term(law, clade[w], clade[up], up == 0, lengths[w])
    base -= split_term(w, clade[up], children, clade, size, law)
    for side in range(2):
        c, other = children[w - n, side], children[w - n, 1 - side]
        value = base + log_split(law, whole, clade[c] ^ clade[v], clade[other], united(law.rules, size[c], size[v]), size[other])
        value += length_term(law, clade[other], joined, other < n, lengths[other])
        value -= length_term(law, clade[other], clade[w], other < n, lengths[other])
        value += split_term(other, joined, children, clade, size, law) - split_term(other, clade[w], children, clade, size, law)
        path_terms[c] = value


@inlined
def prior_terms(w, position, n, on_top, length, prior):
    """log prior of the two halves of the branch above w, up to what does not depend on the place (total length apart)."""
    lower = prior[0] if w < n else prior[1]
    upper = prior[0] if on_top else prior[1]
    whole = prior[0] if w < n or on_top else prior[1]
    value = (lower - 1.0) * np.log(position * length) + (upper - 1.0) * np.log((1.0 - position) * length)
    return value - (whole - 1.0) * np.log(length)


@inlined
def take_off(v, p, s, tree, family, point, data, rules, rows, work):
    """Take clade v off: its sister s takes the place of their parent p. Returns the top of the rest."""
    g = tree.parent[p]
    tree.lengths[s] += tree.lengths[p]
    tree.parent[s] = g
    if g == 0:
        tree.whole[0] = s
        return s
    replace_child(g, p, s, tree.children)
    renew_upwards(g, tree, family, point, data, rules, rows, work)
    return np.int64(tree.whole[0])


@inlined
def hang_in(v, p, w, lower, upper, stalk, tree, family, point, data, rules, rows, rng, work):
    """Hang clade v in above w, with these lengths below and above the new vertex p and of the clade's own branch."""
    n = data.tips.shape[0]
    up = tree.parent[w]
    tree.parent[w], tree.parent[v], tree.parent[p] = p, p, up
    tree.children[p - n, 0], tree.children[p - n, 1] = w, v
    if rng.random() < 0.5:
        tree.children[p - n, 0], tree.children[p - n, 1] = v, w
    if up == 0:
        tree.whole[0] = p
    else:
        replace_child(up, w, p, tree.children)
    tree.lengths[w], tree.lengths[p], tree.lengths[v] = lower, upper, stalk
    renew_upwards(p, tree, family, point, data, rules, rows, work)


@inlined
def fill_above(w, up, out, on_top, children, lengths, family, point, data, rows, ups, tops):
    """out: partials above the branch of w, as seen from it, whose parent is `up`. Returns their scale and pending."""
    n = data.tips.shape[0]
    x = sister(w, children, up)
    above = data.tips[0] if on_top else ups.values[up - n]
    carry_two(family, point, data, lengths[up], above, on_top, lengths[x], row_of(x, data, rows.values), x < n, out)
    value = scale_of(x, n, rows.scale) + (0.0 if on_top else ups.scale[up - n])
    count = pending_of(x, n, rows.pending) + (1 if on_top else ups.pending[up - n])
    if count > MOST_PENDING:
        value += rescale(out, data, tops)
        count = 1
    return value, count


@inlined
def hung_value(middle, family, point, data, stalk, values):
    """Log-likelihood with rows `middle` and `stalk` where the clade hangs, up to their scales."""
    total = 0.0
    for k in range(data.ascertained.shape[0]):
        root_values(family, point, data, stalk, False, middle, False, values, k)
        total += log_values(values, data, k)
    return total


@inlined
def score_places(v, s, top, tree, family, point, data, goal, rows, ups, space):
    """Score every branch of the rest, from the top down: `space.scores` in `space.order`. Returns how many there are.

    `ups` are filled with the partials above each internal vertex's branch.
    """
    n = data.tips.shape[0]
    order, scores, rules = space.order, space.scores, goal.law.rules
    constrained = is_constrained(rules)
    root, under = limits(v, s, tree.parent[s], top, tree.parent, tree.clade, tree.size, rules)
    order[0] = top
    space.path_terms[root] = 0.0
    middle = space.carried[1]
    found, reading = 1, 0
    while reading < found:
        w = order[reading]
        inside, allowed = True, True
        if constrained:
            allowed = mark_place(w, v, root, under, tree.parent, tree.clade, tree.size, rules, space.mark)
            inside = space.mark[w] & INSIDE != 0
        score = np.log(tree.lengths[w])
        if goal.beta > 0.0:
            up = tree.parent[w]
            above, above_scale, pending = data.tips[0], 0.0, 1
            if up != 0:
                above = ups.values[w - n] if w >= n else space.carried[2]
                above_scale, pending = fill_above(
                    w, up, above, tree.parent[up] == 0, tree.children, tree.lengths, family, point, data, rows, ups, space.work[0]
                )
                if w >= n:
                    ups.scale[w - n], ups.pending[w - n] = above_scale, pending
            if allowed:
                hang(w, 0.5, tree.lengths, family, point, data, rows.values, above, up == 0, middle)
                value = hung_value(middle, family, point, data, space.carried[0], space.work[0])
                score += goal.beta * (value + above_scale + scale_of(w, n, rows.scale))
        if inside and goal.beta < 1.0:
            if allowed:
                score += (1.0 - goal.beta) * place_terms(
                    w, v, 0.5, space.path_terms, tree.children, tree.parent, tree.lengths, tree.clade, tree.size, goal.law
                )
            if w >= n:
                pass_down(w, v, space.path_terms, tree.children, tree.parent, tree.lengths, tree.clade, tree.size, goal.law)
        scores[reading] = score if allowed else -np.inf
        if w >= n:
            order[found], order[found + 1] = tree.children[w - n, 0], tree.children[w - n, 1]
            found += 2
        reading += 1
    return found


@inlined
def fit_place(w, v, position, rest, gamma, table, tree, family, point, data, goal, rows, ups, space):
    """Fit the length of clade v's branch when it hangs above w. Returns mode and shape, and the scale of the table."""
    n = data.tips.shape[0]
    if goal.beta > 0.0:
        up, middle, above, above_scale = tree.parent[w], space.carried[1], data.tips[0], 0.0
        if up != 0 and w >= n:
            above, above_scale = ups.values[w - n], ups.scale[w - n]
        elif up != 0:
            above = space.carried[2]
            above_scale, _ = fill_above(
                w, up, above, tree.parent[up] == 0, tree.children, tree.lengths, family, point, data, rows, ups, space.work[0]
            )
        hang(w, position, tree.lengths, family, point, data, rows.values, above, up == 0, middle)
        fill_table(family, point, data, row_of(v, data, rows.values), v < n, middle, False, table)
    else:
        above_scale = 0.0
    exponent, rate, power = blend(goal, gamma[0], gamma[1], v < n)
    mode, fitted = fit_gamma(
        data, table, space.exponents, goal.beta, exponent, rate, power, rest, gamma[0] / gamma[1], space.work
    )
    return mode, fitted, above_scale + scale_of(w, n, rows.scale)


@inlined
def place_weight(
    w, v, position, length, mode, fitted, scale, rest, gamma, table, tree, family, point, data, goal, space
):  # fmt: skip
    """Log of pi_beta over the density of being proposed, but for the choice of the place, of clade v hung in above w."""
    outer = v < data.tips.shape[0]
    exponent, rate, power = blend(goal, gamma[0], gamma[1], outer)
    value = conditional(length, exponent, rate, power, rest)
    value -= log_draw(length, mode, fitted, exponent, wide_rate(rate, power, rest, mode))
    whole = tree.lengths[w]
    value += np.log(whole)
    if goal.beta > 0.0:
        value += goal.beta * (score(data, table, space.exponents, length, space.work) + scale)
        value += goal.beta * prior_terms(w, position, data.tips.shape[0], tree.parent[w] == 0, whole, goal.prior)
    if goal.beta < 1.0:
        term = place_terms(
            w, v, position, space.path_terms, tree.children, tree.parent, tree.lengths, tree.clade, tree.size, goal.law
        )
        shape, rate, constant = length_gamma(goal.law, tree.clade[v], tree.clade[w] ^ tree.clade[v], outer)
        term += constant - gamma[2] + (shape - gamma[0]) * np.log(length) - (rate - gamma[1]) * length
        value += (1.0 - goal.beta) * term
    return value


@inlined
def regraft(tree, family, point, data, goal, rows, ups, space, rng, counts):
    """One regrafting; returns whether the clade was moved. Rows must be those seen from the parents, and are so afterwards."""
    n = data.tips.shape[0]
    lengths, tables, rules = tree.lengths, space.tables, goal.law.rules
    v = 1 + np.int64(rng.random() * (2 * n - 4))
    if v >= np.int64(tree.whole[0]):
        v += 1
    p = tree.parent[v]
    s = sister(v, tree.children, p)
    old_lower, old_upper, old = lengths[s], lengths[p], lengths[v]
    rest = max(tree.whole[1] - old, 0.0)
    top = take_off(v, p, s, tree, family, point, data, rules, rows, space.work)
    # The Gamma of the clade alone: the same wherever it goes.
    gamma = length_gamma(goal.law, tree.clade[v], NONE, v < n)
    carry(family, point, data, gamma[0] / gamma[1], row_of(v, data, rows.values), v < n, space.carried[0], False)
    found = score_places(v, s, top, tree, family, point, data, goal, rows, ups, space)
    new, _ = drawn_index(space.scores, found, rng)
    was = 0
    while space.order[was] != s:
        was += 1
    if space.scores[new] == -np.inf:  # by rounding alone
        new = was
    counts[3, 1] += 1
    counts[4, 1] += 1 if new != was else 0
    w = space.order[new]
    # Where the clade was, then where it may go.
    position = old_lower / lengths[s]
    mode, fitted, scale = fit_place(s, v, position, rest, gamma, tables[0], tree, family, point, data, goal, rows, ups, space)
    before = place_weight(
        s, v, position, old, mode, fitted, scale, rest, gamma, tables[0], tree, family, point, data, goal, space
    )  # fmt: skip
    position = rng.random()
    lower, upper = position * lengths[w], (1.0 - position) * lengths[w]
    mode, fitted, scale = fit_place(w, v, position, rest, gamma, tables[1], tree, family, point, data, goal, rows, ups, space)
    exponent, rate, power = blend(goal, gamma[0], gamma[1], v < n)
    length = draw_length(mode, fitted, exponent, wide_rate(rate, power, rest, mode), rng)
    after = -np.inf
    if MIN_LENGTH <= length <= MAX_LENGTH and lower >= MIN_LENGTH and upper >= MIN_LENGTH:
        after = place_weight(
            w, v, position, length, mode, fitted, scale, rest, gamma, tables[1], tree, family, point, data, goal, space
        )  # fmt: skip
    ratio = after - before + space.scores[was] - space.scores[new]
    moved = np.log(rng.random()) < ratio
    counts[3, 0] += 1 if moved else 0
    counts[4, 0] += 1 if moved and new != was else 0
    if not moved:
        w, lower, upper, length = s, old_lower, old_upper, old
    hang_in(v, p, w, lower, upper, length, tree, family, point, data, rules, rows, rng, space.work)
    tree.whole[1] = rest + length
    return moved
