"""Each branch of a tree with everything else fixed, and coordinate ascent on branch lengths.

Let L be the partials below a branch and O the product of all messages that meet at its upper end from elsewhere. Seen as a
function of its own u = exp(-beta b) alone, the likelihood of a pattern is proportional to 1 + u * ratio with

    ratio = sum(pi * O * L) / (sum(pi * O) * sum(pi * L)) - 1,  at least -1,

so one number per pattern gives the likelihood of the branch at any length, and its derivatives. The log-likelihood is concave
in u, and so is the log-density of an exponential prior: Newton's method in u is safe.

Trees come as in `pruning`. `below` (n_vertices, 4, P) holds L and `above` (n_vertices, 4, P) holds O, both up to a factor per
pattern (which cancels in the ratio). `prior` is the rate of the exponential prior over beta (0: maximum
likelihood); the model is one of `models.replacement`.
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel
from vaiphy.kernels.frequencies import scale, total
from vaiphy.kernels.pruning import RESCALE_EVERY, join_one, join_two, lift_states, settle_states

SMALL, LARGE = 1e-100, 1e100
ENOUGH = 1e-5  # a Newton step that gains less than this many log units is the last of its visit


@inlined
def lift(out, vertex):
    """Multiply columns that have become tiny by a large number; nobody needs to know."""
    n_patterns = out.shape[2]
    least = 1.0
    for p in range(n_patterns):
        least = min(least, max(max(out[vertex, 0, p], out[vertex, 1, p]), max(out[vertex, 2, p], out[vertex, 3, p])))
    if least < SMALL:
        for p in range(n_patterns):
            top = max(max(out[vertex, 0, p], out[vertex, 1, p]), max(out[vertex, 2, p], out[vertex, 3, p]))
            while 0.0 < top < SMALL:
                for a in range(4):
                    out[vertex, a, p] *= LARGE
                top *= LARGE


@inlined
def start_product(out, vertex, observed, tips):
    """out[vertex] = 1, or the observation at taxon `observed` (>= 0)."""
    for a in range(4):
        for p in range(out.shape[2]):
            out[vertex, a, p] = np.float64(tips[observed, a, p]) if observed >= 0 else 1.0


@inlined
def join_many(weights, out, where, without, start, child, vertex, decay, below):
    """out[where] times the messages of all children of `vertex` except `without`, however many."""
    n_patterns = out.shape[2]
    exponent = np.zeros((4, n_patterns), dtype=np.int64)
    for i in range(start[vertex], start[vertex + 1]):
        if child[i] != without:
            join_one(weights, out, where, n_patterns, below, child[i], 0, decay[child[i]])
            lift_states(out, where, n_patterns, exponent)
    settle_states(out, where, n_patterns, exponent, np.zeros(n_patterns))


@inlined
def fill_one_below(weights, vertex, start, child, decay, tips, below):
    """below[vertex] from its children and its own observation."""
    n_taxa = tips.shape[0]
    n_patterns = tips.shape[2]
    first, last = start[vertex], start[vertex + 1]
    if vertex >= n_taxa and last - first == 2:
        c, d = child[first], child[first + 1]
        join_two(weights, below, vertex, n_patterns, below, c, 0, decay[c], below, d, 0, decay[d])
        lift(below, vertex)
        return
    start_product(below, vertex, vertex if vertex < n_taxa else -1, tips)
    if last - first >= RESCALE_EVERY:
        join_many(weights, below, vertex, -1, start, child, vertex, decay, below)
        return
    for i in range(first, last):
        join_one(weights, below, vertex, n_patterns, below, child[i], 0, decay[child[i]])
        lift(below, vertex)


@inlined
def fill_one_above(weights, c, vertex, root, start, child, decay, tips, below, above):
    """above[c]: all that meets at c's parent `vertex` except what comes from c itself."""
    n_taxa = tips.shape[0]
    n_patterns = tips.shape[2]
    first, last = start[vertex], start[vertex + 1]
    if vertex >= n_taxa and vertex != root and last - first == 2:
        sister = child[first] if child[first] != c else child[first + 1]
        join_two(weights, above, c, n_patterns, above, vertex, 0, decay[vertex], below, sister, 0, decay[sister])
        lift(above, c)
        return
    start_product(above, c, vertex if vertex < n_taxa else -1, tips)
    if vertex != root:
        join_one(weights, above, c, n_patterns, above, vertex, 0, decay[vertex])
    if last - first >= RESCALE_EVERY:
        join_many(weights, above, c, c, start, child, vertex, decay, below)
        return
    for i in range(first, last):
        if child[i] != c:
            join_one(weights, above, c, n_patterns, below, child[i], 0, decay[child[i]])
            lift(above, c)


@inlined
def fill_ratio(weights, v, above, below, ratio):
    """ratio[v] from above[v] and below[v]; 0 (no information) where a pattern is impossible."""
    inverse = 1.0 / scale(weights)
    for p in range(ratio.shape[1]):
        o0, o1, o2, o3 = above[v, 0, p], above[v, 1, p], above[v, 2, p], above[v, 3, p]
        l0, l1, l2, l3 = below[v, 0, p], below[v, 1, p], below[v, 2, p], below[v, 3, p]
        both = total(weights, o0, o1, o2, o3) * total(weights, l0, l1, l2, l3)
        joint = total(weights, o0 * l0, o1 * l1, o2 * l2, o3 * l3)
        ratio[v, p] = inverse * joint / both - 1.0 if both > 0.0 else 0.0


@inlined
def slopes(ratio, v, counts, u):
    """First derivative in u of sum_p counts * log(1 + u*ratio), and minus the second."""
    slope = 0.0
    curvature = 0.0
    for p in range(counts.shape[0]):
        r = ratio[v, p] / (1.0 + u * ratio[v, p])
        slope += counts[p] * r
        curvature += counts[p] * r * r
    return slope, curvature


@inlined
def newton(ratio, v, counts, u, prior, u_low, u_high, n_steps):
    """Maximise sum_p counts*log(1 + u*ratio) + prior*log(u) over u in [u_low, u_high], starting from u.

    The function is concave, so a step that leaves the range goes to the end of the range, from where Newton's method comes
    back if the maximum is inside. Returns u and about how much was gained.
    """
    gained = 0.0
    for _ in range(n_steps):
        slope, curvature = slopes(ratio, v, counts, u)
        slope += prior / u
        curvature += prior / (u * u)
        if curvature <= 0.0:  # flat: no pattern says anything
            return u, gained
        new = min(max(u + slope / curvature, 0.5 * u, u_low), u_high)
        gain = (new - u) * (slope - 0.5 * curvature * (new - u))
        gained += gain
        u = new
        if gain < ENOUGH:
            break
    return u, gained


@kernel
def fill_below(model, order, start, child, decay, tips, below):
    """below[v] for every vertex (observations included), children before parents."""
    for v in range(tips.shape[0]):
        start_product(below, v, v, tips)
    for k in range(order.shape[0]):
        fill_one_below(model.weights, order[k], start, child, decay, tips, below)


@kernel
def sweep(model, root, start, child, decay, tips, counts, prior, n_steps, below, above, ratio, stack, position):
    """Visit every branch once, depth first, with all partials kept up to date; improve its length by `n_steps` Newton steps.

    `below` must be filled; `decay` changes in place. With n_steps = 0 nothing moves and `above` and `ratio` are filled for the
    tree as it is. Returns about how many log units were gained.
    """
    gained = 0.0
    depth = 0
    stack[0] = root
    position[root] = start[root]
    while depth >= 0:
        vertex = stack[depth]
        if position[vertex] < start[vertex + 1]:
            c = child[position[vertex]]
            position[vertex] += 1
            fill_one_above(model.weights, c, vertex, root, start, child, decay, tips, below, above)
            fill_ratio(model.weights, c, above, below, ratio)
            if n_steps > 0:
                u, gain = newton(ratio, c, counts, decay[c], prior, model.u_low, model.u_high, n_steps)
                gained += gain
                decay[c] = u
            depth += 1
            stack[depth] = c
            position[c] = start[c]
        else:
            if n_steps > 0 and vertex != root and start[vertex + 1] > start[vertex]:
                fill_one_below(model.weights, vertex, start, child, decay, tips, below)
            depth -= 1
    return gained


@kernel
def optimise(model, order, start, child, decay, tips, counts, prior, tolerance, max_sweeps, below, above, ratio, stack, position):
    """Coordinate Newton sweeps until one gains less than `tolerance` log units; `decay` in place.

    Returns the number of sweeps. `above` and `ratio` are those met during the last sweep.
    """
    fill_below(model, order, start, child, decay, tips, below)
    root = order[order.shape[0] - 1]
    for k in range(max_sweeps):
        gained = sweep(model, root, start, child, decay, tips, counts, prior, 2, below, above, ratio, stack, position)
        if gained < tolerance:
            return k + 1
    return max_sweeps
