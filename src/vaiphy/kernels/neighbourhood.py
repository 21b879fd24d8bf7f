"""The likelihood of all trees one subtree-prune-and-regraft move away, each at the cost of about one vertex.

Cut a branch a-w. Messages in the part that keeps w which point towards the cut are those of the whole tree; only those that point
away from it have to be computed again, one per branch, walking outwards. Where they meet the old ones, a branch p-q is
completely described, and the cut-off part is hung into its middle; only its pendant branch is optimised (the "lazy" move).
"""

import numpy as np

from vaiphy.kernels.binary import fill_neighbours, fill_schedule, slot_of
from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.edges import fill_below, lift, newton, sweep
from vaiphy.kernels.logsum import weighted_log_sum
from vaiphy.kernels.pruning import join_two


@inlined
def hang(inner, i, outer, j, u, part, a, middle, ratio):
    """Ratio (as in `edges`) of a pendant branch that carries part[a] and sits in the middle of a branch with halves u."""
    n_patterns = ratio.shape[1]
    join_two(middle, 0, n_patterns, inner, i, 0, u, outer, j, 0, u)
    for p in range(n_patterns):
        o0, o1, o2, o3 = middle[0, 0, p], middle[0, 1, p], middle[0, 2, p], middle[0, 3, p]
        l0, l1, l2, l3 = part[a, 0, p], part[a, 1, p], part[a, 2, p], part[a, 3, p]
        both = ((o0 + o1) + (o2 + o3)) * ((l0 + l1) + (l2 + l3))
        joint = (o0 * l0 + o1 * l1) + (o2 * l2 + o3 * l3)
        ratio[0, p] = 4.0 * joint / both - 1.0 if both > 0.0 else 0.0


@inlined
def best_pendant(ratio, counts, u, prior, u_low, u_high, values):
    """The best decay of a pendant branch, and its score sum(counts*log(1 + u*ratio)) + prior*log(u).

    The likelihood of the two parts joined is the product of their own likelihoods times 1 + u*ratio, whichever branch the
    moved part hangs in (the pulley principle), so scores of one cut can be compared with each other.
    """
    u, _ = newton(ratio, 0, counts, u, prior, u_low, u_high, 2)
    for p in range(counts.shape[0]):
        values[p] = 1.0 + u * ratio[0, p]
    return u, weighted_log_sum(values, counts, 0, counts.shape[0]) + prior * np.log(u)


@kernel
def screen(children, lengths, tips, counts, prior, u_low, u_high, margin, max_moves, moves, scores, pendants):
    """Score all regraftings of one tree; keep those within `margin` of the best possible: the tree itself.

    Scores are log-likelihood plus log prior of the lengths, relative to the tree itself (so 0 = as good), without full
    optimisation. Fills `moves` (a, w, p, q), `scores` and `pendants` (lengths); returns how many were kept (at most max_moves).
    """
    n = children.shape[0] + 2
    n_vertices = 2 * n - 2
    n_patterns = counts.shape[0]
    order = np.empty(n - 1, dtype=np.int32)
    start = np.empty(n_vertices + 1, dtype=np.int32)
    child = np.empty(2 * n - 3, dtype=np.int32)
    fill_schedule(children, order, start, child)
    decay = np.exp(-4.0 / 3.0 * lengths)
    below = np.empty((n_vertices, 4, n_patterns))
    above = np.empty((n_vertices, 4, n_patterns))
    ratio = np.empty((n_vertices, n_patterns))
    stack = np.empty(n_vertices, dtype=np.int32)
    come_from = np.empty(n_vertices, dtype=np.int32)
    fill_below(order, start, child, decay, tips, below)
    sweep(0, start, child, decay, tips, counts, prior, u_low, u_high, 0, below, above, ratio, stack, come_from)
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
    middle = np.empty((1, 4, n_patterns))
    pendant_ratio = np.empty((1, n_patterns))
    values = np.empty(n_patterns)
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
            x, y = -1, -1
            bx, by = 0.0, 0.0
            for side in range(3):
                c = neighbour[w, side]
                if c != a:
                    if x < 0:
                        x, bx = c, span[w, side]
                    else:
                        y, by = c, span[w, side]
            part = below if direction == 0 else above
            merged = np.exp(-4.0 / 3.0 * (bx + by))
            half = np.exp(-2.0 / 3.0 * (bx + by))
            # The tree itself, scored the same lazy way, is the yardstick: gap closed, hung into the middle of it.
            reference = -np.inf
            depth = 0
            for end in range(2):
                near, far = (x, y) if end == 0 else (y, x)
                # away[near] = message partials at `far` from all that lies behind far, seen from w.
                source, index = (below, far) if parent[far] == w else (above, w)
                for s in range(4):
                    for p in range(n_patterns):
                        away[near, s, p] = source[index, s, p]
                come_from[near] = far
                if end == 0:
                    inner, i = (below, near) if parent[near] == w else (above, w)
                    hang(inner, i, away, near, half, part, cut, middle, pendant_ratio)
                    _, reference = best_pendant(pendant_ratio, counts, decay[cut], prior, u_low, u_high, values)
                if near >= n:
                    stack[depth] = near
                    depth += 1
            while depth > 0:
                depth -= 1
                q = stack[depth]
                r = come_from[q]
                # Branch q-r as it is without the cut-off part: the closed gap has the summed length.
                if (q == x and r == y) or (q == y and r == x):
                    u_qr = merged
                else:
                    u_qr = np.exp(-4.0 / 3.0 * span[q, slot_of(neighbour, q, r)])
                for side in range(3):
                    p_next = neighbour[q, side]
                    if p_next == r or p_next == w:
                        continue
                    sister = -1
                    sister_length = 0.0
                    for other in range(3):
                        c = neighbour[q, other]
                        if c != r and c != w and c != p_next:
                            sister, sister_length = c, span[q, other]
                    u_sister = np.exp(-4.0 / 3.0 * sister_length)
                    source, index = (below, sister) if parent[sister] == q else (above, q)
                    join_two(away, p_next, n_patterns, away, q, 0, u_qr, source, index, 0, u_sister)
                    lift(away, p_next)
                    come_from[p_next] = q
                    b_target = span[q, side]
                    u_half = np.exp(-2.0 / 3.0 * b_target)
                    inner, i = (below, p_next) if parent[p_next] == q else (above, q)
                    hang(inner, i, away, p_next, u_half, part, cut, middle, pendant_ratio)
                    u, score = best_pendant(pendant_ratio, counts, decay[cut], prior, u_low, u_high, values)
                    score -= reference
                    if score > -margin and n_kept < max_moves:
                        moves[n_kept, 0], moves[n_kept, 1], moves[n_kept, 2], moves[n_kept, 3] = a, w, p_next, q
                        scores[n_kept] = score
                        pendants[n_kept] = -0.75 * np.log(u)
                        n_kept += 1
                    if p_next >= n:
                        stack[depth] = p_next
                        depth += 1
    return n_kept
