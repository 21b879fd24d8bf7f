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
from vaiphy.kernels.families import carry, fill_table
from vaiphy.kernels.layout import COUNT_AT, PATTERNS
from vaiphy.kernels.partials import MOST_PENDING, join, rescale, root_values, row_of, scale_of
from vaiphy.kernels.rooted import NONE
from vaiphy.kernels.tour import blend


@inlined
def hang(w, position, lengths, family, point, data, rows, above, above_is_tip, out):
    """out: partials at the point of the branch above w that lies `position` of its length away from w."""
    n = data.tips.shape[0]
    carry(family, point, data, position * lengths[w], row_of(w, data, rows), w < n, out, False)
    carry(family, point, data, (1.0 - position) * lengths[w], above, above_is_tip, out, True)


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
def regraft(
    children, parent, lengths, tree, clade, size, family, point, data, law, beta, prior,
    rows, scale, pending, ups, up_scale, up_pending, carried, exponents, tables, work, order, scores, path_terms, rng, counts,
):  # fmt: skip
    """One regrafting. Rows must be those seen from the parents, and are so afterwards.

    `clade` and `size` are kept up to date. `ups` (n - 2 rows): partials above each internal vertex's branch. Returns whether the
    clade was moved.
    """
    n = data.tips.shape[0]
    top = np.int64(tree[0])
    v = 1 + np.int64(rng.random() * (2 * n - 4))
    if v >= top:
        v += 1
    p = parent[v]
    s = children[p - n, 0] if children[p - n, 1] == v else children[p - n, 1]
    g = parent[p]
    old_lower, old_upper, old_stalk = lengths[s], lengths[p], lengths[v]
    # Take the clade off: the sister s takes the place of p.
    lengths[s] = old_lower + old_upper
    parent[s] = g
    if g == 0:
        top = s
    else:
        if children[g - n, 0] == p:
            children[g - n, 0] = s
        else:
            children[g - n, 1] = s
    w = g
    while w != 0:
        a, b = children[w - n, 0], children[w - n, 1]
        clade[w] ^= clade[v]
        size[w] = united(law.rules, size[a], size[b])
        join(w, a, lengths[a], b, lengths[b], family, point, data, rows, scale, pending, work)
        w = parent[w]
    constrained = is_constrained(law.rules)
    root, under = limits(v, s, g, top, parent, clade, size, law.rules)
    mark = np.empty(2 * n if constrained else 1, dtype=np.int64)
    # Score every branch of the rest, from the top down.
    outer_v = v < n
    # The Gamma of the clade alone: the same wherever it goes.
    shape_v, rate_v, constant_v = length_gamma(law, clade[v], NONE, outer_v)
    stalk = carried[0]
    carry(family, point, data, shape_v / rate_v, row_of(v, data, rows), v < n, stalk, False)
    middle, leaf_up = carried[1], carried[2]
    order[0] = top
    path_terms[root] = 0.0
    found = 1
    reading = 0
    best = -np.inf
    while reading < found:
        w = order[reading]
        up = parent[w]
        on_top = up == 0
        # What is above the branch of w, as seen from it.
        if up == 0:
            above, above_tip, above_scale = data.tips[0], True, 0.0
        else:
            x = children[up - n, 0] if children[up - n, 1] == w else children[up - n, 1]
            out = leaf_up if w < n else ups[w - n]
            if parent[up] == 0:
                carry(family, point, data, lengths[up], data.tips[0], True, out, False)
                count, value = 1, 0.0
            else:
                carry(family, point, data, lengths[up], ups[up - n], False, out, False)
                count, value = up_pending[up - n], up_scale[up - n]
            carry(family, point, data, lengths[x], row_of(x, data, rows), x < n, out, True)
            value += scale_of(x, n, scale)
            count += 1 if x < n else pending[x - n]
            if count > MOST_PENDING:
                value += rescale(out, data, work[0])
                count = 1
            if w >= n:
                up_scale[w - n] = value
                up_pending[w - n] = count
            above, above_tip, above_scale = out, False, value
        inside, allowed = True, True
        if constrained:
            allowed = mark_place(w, v, root, under, parent, clade, size, law.rules, mark)
            inside = mark[w] & INSIDE != 0
        scores[reading] = np.log(lengths[w]) if allowed else -np.inf
        if allowed and beta > 0.0:
            hang(w, 0.5, lengths, family, point, data, rows, above, above_tip, middle)
            value = 0.0
            for k in range(data.ascertained.shape[0]):
                root_values(family, point, data, stalk, False, middle, False, work[0], k)
                value += log_values(work[0], data.counts, data.layout[COUNT_AT, k], data.layout[PATTERNS, k])
            scores[reading] += beta * (value + above_scale + scale_of(w, n, scale))
        if inside and beta < 1.0:
            if allowed:
                scores[reading] += (1.0 - beta) * place_terms(w, v, 0.5, path_terms, children, parent, lengths, clade, size, law)
            if w >= n:
                pass_down(w, v, path_terms, children, parent, lengths, clade, size, law)
        best = max(best, scores[reading])
        if w >= n:
            order[found] = children[w - n, 0]
            order[found + 1] = children[w - n, 1]
            found += 2
        reading += 1
    total = 0.0
    for i in range(found):
        total += np.exp(scores[i] - best)
    log_total = best + np.log(total)
    u = rng.random() * total
    new = 0
    while new < found - 1 and u >= np.exp(scores[new] - best):
        u -= np.exp(scores[new] - best)
        new += 1
    was = 0
    while order[was] != s:
        was += 1
    if scores[new] == -np.inf:  # by rounding alone
        new = was
    rest = max(tree[1] - old_stalk, 0.0)
    exponent, rate_b, power = blend(beta, prior, shape_v, rate_v, outer_v)
    weight = np.empty(2)
    position, length = 0.5, 0.0
    counts[3, 1] += 1
    counts[4, 1] += 1 if new != was else 0
    for k in range(2):
        # 0: where the clade was; 1: where it may go.
        i = was if k == 0 else new
        w = order[i]
        on_top = parent[w] == 0
        position = old_lower / lengths[s] if k == 0 else rng.random()
        if on_top:
            hang(w, position, lengths, family, point, data, rows, data.tips[0], True, middle)
            above_scale = 0.0
        elif w >= n:
            hang(w, position, lengths, family, point, data, rows, ups[w - n], False, middle)
            above_scale = up_scale[w - n]
        else:
            up = parent[w]
            x = children[up - n, 0] if children[up - n, 1] == w else children[up - n, 1]
            if parent[up] == 0:
                carry(family, point, data, lengths[up], data.tips[0], True, leaf_up, False)
                above_scale = 0.0
            else:
                carry(family, point, data, lengths[up], ups[up - n], False, leaf_up, False)
                above_scale = up_scale[up - n]
            carry(family, point, data, lengths[x], row_of(x, data, rows), x < n, leaf_up, True)
            above_scale += scale_of(x, n, scale)
            hang(w, position, lengths, family, point, data, rows, leaf_up, False, middle)
        fill_table(family, point, data, row_of(v, data, rows), v < n, middle, False, tables[k])
        mode, fitted = fit_gamma(data, tables[k], exponents, beta, exponent, rate_b, power, rest, shape_v / rate_v, work)
        wide = wide_rate(rate_b, power, rest, mode)
        length = old_stalk if k == 0 else draw_length(mode, fitted, exponent, wide, rng)
        lower, upper = position * lengths[w], (1.0 - position) * lengths[w]
        if k == 1 and not (MIN_LENGTH <= length <= MAX_LENGTH and lower >= MIN_LENGTH and upper >= MIN_LENGTH):
            weight[1] = -np.inf
            break
        value = conditional(length, exponent, rate_b, power, rest) - log_draw(length, mode, fitted, exponent, wide)
        value += np.log(lengths[w]) - (scores[i] - log_total)
        if beta > 0.0:
            value += beta * (score(data, tables[k], exponents, length, work) + above_scale + scale_of(w, n, scale))
            value += beta * prior_terms(w, position, n, on_top, lengths[w], prior)
        if beta < 1.0:
            value += (1.0 - beta) * place_terms(w, v, position, path_terms, children, parent, lengths, clade, size, law)
            joined = clade[w] ^ clade[v]
            shape, rate, constant = length_gamma(law, clade[v], joined, outer_v)
            value += (1.0 - beta) * (constant - constant_v + (shape - shape_v) * np.log(length) - (rate - rate_v) * length)
        weight[k] = value
    moved = np.log(rng.random()) < weight[1] - weight[0]
    counts[3, 0] += 1 if moved else 0
    counts[4, 0] += 1 if moved and new != was else 0
    w = order[new] if moved else s
    if not moved:
        position, length = old_lower / lengths[s], old_stalk
    # Hang the clade in above w.
    up = parent[w]
    whole = lengths[w]
    parent[w], parent[v], parent[p] = p, p, up
    children[p - n, 0], children[p - n, 1] = w, v
    if rng.random() < 0.5:
        children[p - n, 0], children[p - n, 1] = v, w
    if up == 0:
        top = p
    else:
        if children[up - n, 0] == w:
            children[up - n, 0] = p
        else:
            children[up - n, 1] = p
    lengths[w], lengths[p], lengths[v] = position * whole, (1.0 - position) * whole, length
    if not moved:
        lengths[s], lengths[p] = old_lower, old_upper
    tree[0], tree[1] = top, rest + length
    w = p
    while w != 0:
        a, b = children[w - n, 0], children[w - n, 1]
        clade[w] = clade[a] ^ clade[b]
        size[w] = united(law.rules, size[a], size[b])
        join(w, a, lengths[a], b, lengths[b], family, point, data, rows, scale, pending, work)
        w = parent[w]
    return moved
