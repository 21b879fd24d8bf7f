"""The likelihood of all trees one subtree-prune-and-regraft move away, each at the cost of about one vertex.

Cut a branch a-w. Messages in the part that keeps w which point towards the cut are those of the whole tree; only those that
point away from it have to be computed again, one per branch, walking outwards. Where they meet the old ones, a branch p-q is
completely described, and the cut-off part is hung into its middle with an optimised pendant branch (or, not far from where it
was, to its nearer end); where that looks promising, all three branches are optimised (the "lazy" move: nothing else is).
"""

import numpy as np

from vaiphy.kernels.binary import fill_neighbours, fill_schedule, other_two, slot_of
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.edges import fill_below, lift, newton, sweep
from vaiphy.kernels.frequencies import scale, total
from vaiphy.kernels.logsum import weighted_log_sum
from vaiphy.kernels.pruning import join_two

# A move that scores less than `margin` by so much or less gets its three branches optimised. It has to be much: in the middle
# of a long branch a part may score badly whose right place, near an end, is as good as where it was.
PROMISING = 20.0
# Parts moved by fewer branches than this are also tried at the nearer end of the branch. If the branches between are short, the
# move changes little, however long the branch it leads to.
CLOSE = 2
# Where the optimisation then begins: u of the short length from that end (0.0075 under JC69).
NEAR_VERTEX = 0.99
# A move is given up as soon as so many patterns have been looked at that it scores less than even these limits by so much, its
# branches as they are. Most moves of a large tree are thousands of log units off, and a few patterns say so.
HOPELESS = 100.0
BLOCK = 128


@inlined
def fill_ratio_block(weights, first, i, u, second, j, v, part, a, begin, width, product, ratio):
    """`fill_ratio_at` for `width` patterns from `begin` on."""
    inverse = 1.0 / scale(weights)
    join_two(weights, product, 0, width, first, i, begin, u, second, j, begin, v)
    for p in range(width):
        o0, o1, o2, o3 = product[0, 0, p], product[0, 1, p], product[0, 2, p], product[0, 3, p]
        l0, l1, l2, l3 = part[a, 0, begin + p], part[a, 1, begin + p], part[a, 2, begin + p], part[a, 3, begin + p]
        both = total(weights, o0, o1, o2, o3) * total(weights, l0, l1, l2, l3)
        joint = total(weights, o0 * l0, o1 * l1, o2 * l2, o3 * l3)
        ratio[0, begin + p] = inverse * joint / both - 1.0 if both > 0.0 else 0.0


@inlined
def fill_ratio_at(weights, first, i, u, second, j, v, part, a, product, ratio):
    """Ratio (as in `edges`) of the branch that carries part[a] where messages of first[i] (by u) and second[j] (by v) meet."""
    fill_ratio_block(weights, first, i, u, second, j, v, part, a, 0, ratio.shape[1], product, ratio)


@inlined
def score_of(ratio, counts, u, values):
    """sum(counts*log(1 + u*ratio)): log-likelihood of two parts joined by a branch, less those of the parts themselves.

    The latter do not depend on where the branch sits (the pulley principle), so scores of one cut can be compared with each
    other.
    """
    for p in range(counts.shape[0]):
        values[p] = 1.0 + u * ratio[0, p]
    return weighted_log_sum(values, counts, 0, counts.shape[0])


@inlined
def rough_score(weights, first, i, u, second, j, v, part, a, u_a, counts, yardstick, limit, product, ratio, values):
    """`fill_ratio_at` and `score_of` in one, less the yardstick, a block of patterns at a time; ends once it is below `limit`.

    yardstick[k] is what the tree itself scores on block k.
    """
    n_patterns = ratio.shape[1]
    summed = 0.0
    begin = 0
    while begin < n_patterns and summed >= limit:
        width = min(BLOCK, n_patterns - begin)
        fill_ratio_block(weights, first, i, u, second, j, v, part, a, begin, width, product, ratio)
        for p in range(width):
            values[p] = 1.0 + u_a * ratio[0, begin + p]
        summed += weighted_log_sum(values, counts, begin, width) - yardstick[begin // BLOCK]
        begin += BLOCK
    return summed


@inlined
def optimise_three(
    model, part, a, u_a, near, p, u_p, far, q, u_q, u_whole, counts, prior, reference, flat, product, ratio, values
):
    """Improve the three branches where part[a] is hung between near[p] and far[q], which one branch (u_whole) joined before.

    Returns the score (log-likelihood and prior, less that of the parts, of the whole branch and of `reference`) and
    the three u.
    """
    weights, u_low, u_high = model.weights, model.u_low, model.u_high
    for _ in range(2):
        fill_ratio_at(weights, part, a, u_a, far, q, u_q, near, p, product, ratio)
        u_p, _ = newton(ratio, 0, counts, u_p, prior, u_low, u_high, 2)
        fill_ratio_at(weights, part, a, u_a, near, p, u_p, far, q, product, ratio)
        u_q, _ = newton(ratio, 0, counts, u_q, prior, u_low, u_high, 2)
        fill_ratio_at(weights, near, p, u_p, far, q, u_q, part, a, product, ratio)
        u_a, _ = newton(ratio, 0, counts, u_a, prior, u_low, u_high, 2)
    # The parts' own likelihoods do change with the length of p-q: their ratio for the branch p-q gives by how much.
    fill_ratio_at(weights, near, p, 1.0, flat, 0, 1.0, far, q, product, ratio)
    score = score_of(ratio, counts, u_p * u_q, values) - score_of(ratio, counts, u_whole, values)
    fill_ratio_at(weights, near, p, u_p, far, q, u_q, part, a, product, ratio)
    score += score_of(ratio, counts, u_a, values) - reference
    score += prior * (np.log(u_a) + np.log(u_p) + np.log(u_q) - np.log(u_whole))
    return score, u_a, u_p, u_q


@kernel
def screen(model, children, lengths, tips, counts, prior, margin, radius, max_moves, moves, scores, spans):
    """Score all regraftings of one tree, up to `radius` branches away; keep those within `margin` of the tree itself.

    Scores are log-likelihood plus log prior of the lengths, relative to the tree itself (so 0 = as good), without full
    optimisation. Fills `moves` (a, w, p, q), `scores` and `spans` (lengths a-w, w-p, w-q); returns how many were kept (at
    most max_moves).
    """
    # In one piece: the walk around each cut shares a dozen arrays, and calls would be longer than what they call.
    n = children.shape[0] + 2
    n_vertices = 2 * n - 2
    n_patterns = counts.shape[0]
    order = np.empty(n - 1, dtype=np.int32)
    start = np.empty(n_vertices + 1, dtype=np.int32)
    child = np.empty(2 * n - 3, dtype=np.int32)
    fill_schedule(children, order, start, child)
    weights, beta, u_low, u_high = model.weights, model.beta, model.u_low, model.u_high
    decay = np.exp(-beta * lengths)
    below = np.empty((n_vertices, 4, n_patterns))
    above = np.empty((n_vertices, 4, n_patterns))
    ratio = np.empty((n_vertices, n_patterns))
    stack = np.empty(n_vertices, dtype=np.int32)
    come_from = np.empty(n_vertices, dtype=np.int32)
    distance = np.empty(n_vertices, dtype=np.int32)
    fill_below(model, order, start, child, decay, tips, below)
    sweep(model, 0, start, child, decay, tips, counts, prior, 0, below, above, ratio, stack, come_from)
    neighbour = np.empty((n_vertices, 3), dtype=np.int32)
    span = np.empty((n_vertices, 3))
    fill_neighbours(children, lengths, neighbour, span)
    parent = np.empty(n_vertices, dtype=np.int32)
    parent[0] = -1
    parent[n_vertices - 1] = 0
    for k in range(n - 2):
        parent[children[k, 0]] = n + k
        parent[children[k, 1]] = n + k
    away = np.empty((n_vertices, 4, n_patterns))
    product = np.empty((1, 4, n_patterns))
    flat = np.ones((1, 4, n_patterns))
    pendant_ratio = np.empty((1, n_patterns))
    values = np.empty(n_patterns)
    yardstick = np.empty((n_patterns + BLOCK - 1) // BLOCK)
    hopeless = -margin - PROMISING - HOPELESS
    n_kept = 0
    for cut in range(1, n_vertices):
        for direction in range(2):
            # The part behind a moves; w is the vertex it takes along. part[cut] are its partials at a.
            if direction == 0:
                a, w = cut, parent[cut]
            else:
                a, w = parent[cut], cut
            if w < n:
                continue
            x, bx, y, by = other_two(neighbour, span, w, a)
            part = below if direction == 0 else above
            merged = np.exp(-beta * (bx + by))
            # The tree itself is the yardstick.
            from_x, i_x = (below, x) if parent[x] == w else (above, w)
            from_y, i_y = (below, y) if parent[y] == w else (above, w)
            u_x, u_y = np.exp(-beta * bx), np.exp(-beta * by)
            fill_ratio_at(weights, from_x, i_x, u_x, from_y, i_y, u_y, part, cut, product, pendant_ratio)
            reference = prior * np.log(decay[cut])
            for begin in range(0, n_patterns, BLOCK):
                width = min(BLOCK, n_patterns - begin)
                for p in range(width):
                    values[p] = 1.0 + decay[cut] * pendant_ratio[0, begin + p]
                yardstick[begin // BLOCK] = weighted_log_sum(values, counts, begin, width)
                reference += yardstick[begin // BLOCK]
            depth = 0
            for end in range(2):
                near, far = (x, y) if end == 0 else (y, x)
                # away[near] = message partials at `far` from all that lies behind far, seen from w.
                source, index = (below, far) if parent[far] == w else (above, w)
                for s in range(4):
                    for p in range(n_patterns):
                        away[near, s, p] = source[index, s, p]
                come_from[near] = far
                distance[near] = 0
                if near >= n:
                    stack[depth] = near
                    depth += 1
            while depth > 0:
                depth -= 1
                q = stack[depth]
                r = come_from[q]
                # Branch q-r as it is without the cut-off part: the closed gap has the summed length.
                closed = (q == x and r == y) or (q == y and r == x)
                u_qr = merged if closed else np.exp(-beta * span[q, slot_of(neighbour, q, r)])
                at_vertex = -np.inf
                for side in range(3):
                    p_next = neighbour[q, side]
                    if p_next == r or p_next == w:  # noqa: SIM109
                        continue
                    sister = -1
                    sister_length = 0.0
                    for other in range(3):
                        c = neighbour[q, other]
                        if c != r and c != w and c != p_next:
                            sister, sister_length = c, span[q, other]
                    u_sister = np.exp(-beta * sister_length)
                    source, index = (below, sister) if parent[sister] == q else (above, q)
                    join_two(weights, away, p_next, n_patterns, away, q, 0, u_qr, source, index, 0, u_sister)
                    lift(away, p_next)
                    come_from[p_next] = q
                    distance[p_next] = distance[q] + 1
                    u_target = np.exp(-beta * span[q, side])
                    inner, i = (below, p_next) if parent[p_next] == q else (above, q)
                    if at_vertex == -np.inf and distance[q] < CLOSE:
                        # Hung to q itself, which is the same for both branches that go on from q.
                        at_vertex = rough_score(
                            weights, inner, i, u_target, away, p_next, 1.0, part, cut, decay[cut], counts, yardstick, hopeless,
                            product, pendant_ratio, values,
                        )  # fmt: skip
                    u_p = np.sqrt(u_target)
                    u_q = u_p
                    u_a = decay[cut]
                    score = rough_score(
                        weights, inner, i, u_p, away, p_next, u_q, part, cut, u_a, counts, yardstick, hopeless, product,
                        pendant_ratio, values,
                    )  # fmt: skip
                    if score >= hopeless:
                        u_a, gained = newton(pendant_ratio, 0, counts, u_a, prior, u_low, u_high, 2)
                        score += gained
                        if score >= margin:  # about; it is kept as it is, so it has to be exact
                            score = score_of(pendant_ratio, counts, u_a, values) + prior * np.log(u_a) - reference
                    if score < at_vertex:
                        score, u_a, u_q = at_vertex, decay[cut], NEAR_VERTEX
                        u_p = max(u_target / u_q, u_low)
                    if -margin - PROMISING < score and (score < margin or u_q == NEAR_VERTEX):
                        score, u_a, u_p, u_q = optimise_three(
                            model, part, cut, u_a, inner, i, u_p, away, p_next, u_q, u_target, counts, prior, reference, flat,
                            product, pendant_ratio, values,
                        )  # fmt: skip
                    if score > -margin and n_kept < max_moves:
                        moves[n_kept, 0], moves[n_kept, 1], moves[n_kept, 2], moves[n_kept, 3] = a, w, p_next, q
                        scores[n_kept] = score
                        spans[n_kept, 0] = -model.spacing * np.log(u_a)
                        spans[n_kept, 1] = -model.spacing * np.log(u_p)
                        spans[n_kept, 2] = -model.spacing * np.log(u_q)
                        n_kept += 1
                    if p_next >= n and distance[p_next] < radius:
                        stack[depth] = p_next
                        depth += 1
    return n_kept
