"""SLANTIS (paper, Alg. 3 and 4), made exact.

All edges of the complete graph are tried in one fixed order: those of its maximum spanning tree, heaviest first, then
those of the maximum spanning forest of what remains, and so on. `tau` is always the heaviest spanning tree that holds
all accepted and no rejected edge; a trial weighs it against the heaviest that decides otherwise. Each spanning tree
is reached by exactly one sequence of decisions, so its density is the product over all trials, and a given tree's
decisions can be replayed.
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel


@inlined
def edge_index(i, j, n):
    """Position of the edge (i, j) among all pairs in lexicographic order."""
    if i > j:
        i, j = j, i
    return i * n - i * (i + 1) // 2 + (j - i - 1)


@kernel
def trial_order(ranked, ends, n, order):
    """Edges in the order in which they are tried.

    `ranked` lists the edges by descending weight, `ends` (E, 2) their vertices. Layer after layer, Kruskal's algorithm
    over the edges not yet placed yields a maximum spanning forest with its edges already sorted.
    """
    left = ranked.copy()
    n_left = left.shape[0]
    placed = 0
    root = np.empty(n, dtype=np.int64)
    while n_left > 0:
        for v in range(n):
            root[v] = v
        kept = 0
        joined = 0
        for r in range(n_left):
            edge = left[r]
            i, j = ends[edge, 0], ends[edge, 1]
            if joined < n - 1:
                while root[i] != i:
                    root[i] = root[root[i]]
                    i = root[i]
                while root[j] != j:
                    root[j] = root[root[j]]
                    j = root[j]
            if joined < n - 1 and i != j:
                root[i] = j
                joined += 1
                order[placed] = edge
                placed += 1
            else:
                left[kept] = edge
                kept += 1
        n_left = kept


@inlined
def connect(neighbour, degree, i, j):
    neighbour[i, degree[i]] = j
    degree[i] += 1
    neighbour[j, degree[j]] = i
    degree[j] += 1


@inlined
def disconnect_one(neighbour, degree, i, j):
    for s in range(degree[i]):
        if neighbour[i, s] == j:
            degree[i] -= 1
            neighbour[i, s] = neighbour[i, degree[i]]
            return


@inlined
def adjacent(neighbour, degree, i, j):
    if degree[i] > degree[j]:
        i, j = j, i
    for s in range(degree[i]):  # noqa: SIM110 (compiled)
        if neighbour[i, s] == j:
            return True
    return False


@inlined
def mark_side(neighbour, degree, start, blocked, side, stack):
    """Mark in `side` the vertices reached from `start` without the edge (start, blocked); returns their number.

    They are left in `stack`.
    """
    side[:] = False
    side[start] = True
    stack[0] = start
    size = 1
    at = 0
    while at < size:
        v = stack[at]
        at += 1
        for s in range(degree[v]):
            w = neighbour[v, s]
            if side[w] or (v == start and w == blocked):
                continue
            side[w] = True
            stack[size] = w
            size += 1
    return size


@inlined
def best_replacement(by_weight, weights, decided, side, stack, size, n):
    """Heaviest undecided edge across the cut (ties: smallest index), or -1; scans rows of the smaller side only."""
    best = -1
    inside = size <= n - size
    for r in range(size if inside else n):
        v = stack[r] if inside else r
        if not inside and side[v]:
            continue
        for s in range(n - 1):
            w = by_weight[v, s]
            if side[w] == side[v]:
                continue
            edge = edge_index(v, w, n)
            if decided[edge]:
                continue
            if best < 0 or weights[edge] > weights[best] or (weights[edge] == weights[best] and edge < best):
                best = edge
            break  # the row is sorted: its first crossing undecided edge is its heaviest
    return best


@inlined
def walk(neighbour, degree, start, goal, came, stack):
    """came[v]: the vertex from which v is reached on a walk from `start`, which ends at `goal` (-1: when all are reached)."""
    came[:] = -1
    came[start] = start
    stack[0] = start
    size = 1
    while size > 0 and (goal < 0 or came[goal] < 0):
        size -= 1
        v = stack[size]
        for s in range(degree[v]):
            w = neighbour[v, s]
            if came[w] < 0:
                came[w] = v
                stack[size] = w
                size += 1


@inlined
def lightest_on_path(neighbour, degree, i, j, weights, accepted, came, stack, n):
    """Lightest not accepted edge on the path of tau from i to j (ties: largest index), or -1."""
    walk(neighbour, degree, i, j, came, stack)
    worst = -1
    v = j
    while v != i:
        edge = edge_index(v, came[v], n)
        if not accepted[edge] and (
            worst < 0 or weights[edge] < weights[worst] or (weights[edge] == weights[worst] and edge > worst)
        ):
            worst = edge
        v = came[v]
    return worst


@kernel
def decide(order, ends, weights, by_weight, first_tree, replay, wanted, rng, parents, log_density, trace, n_traced):
    """Draw trees, or replay given ones, and their log-densities.

    `weights` (E,) are log-weights by edge index, `order` the trial order, `by_weight` (n, n-1) the other vertices of
    each vertex by descending weight, `first_tree` (n-1,) the edges of the maximum spanning tree. With `replay`,
    `wanted` (T, E) says which edges each tree holds and `rng` is not used. `parents` (T, n) is written, rooted at
    vertex 0. `log_density` (T, 2): over all trials, and over accepted trials only (as the paper prints it). `trace`
    (trials, 4) and `n_traced` (1,) record edge, alternative (-1 if forced), accepted, and whether the edge was in
    tau, for the first tree.
    """
    n = parents.shape[1]
    neighbour = np.empty((n, n), dtype=np.int32)
    degree = np.empty(n, dtype=np.int32)
    side = np.empty(n, dtype=np.bool_)
    stack = np.empty(n, dtype=np.int64)
    came = np.empty(n, dtype=np.int64)
    decided = np.empty(order.shape[0], dtype=np.bool_)
    accepted = np.empty(order.shape[0], dtype=np.bool_)
    n_traced[0] = 0
    for t in range(parents.shape[0]):
        decided[:] = False
        accepted[:] = False
        degree[:] = 0
        for s in range(n - 1):
            connect(neighbour, degree, ends[first_tree[s], 0], ends[first_tree[s], 1])
        n_accepted = 0
        log_all = 0.0
        log_accepted = 0.0
        for r in range(order.shape[0]):
            if n_accepted == n - 1:
                break
            edge = order[r]
            i, j = ends[edge, 0], ends[edge, 1]
            decided[edge] = True
            in_tree = adjacent(neighbour, degree, i, j)
            if in_tree:
                size = mark_side(neighbour, degree, i, j, side, stack)
                other = best_replacement(by_weight, weights, decided, side, stack, size, n)
            else:
                other = lightest_on_path(neighbour, degree, i, j, weights, accepted, came, stack, n)
            if other < 0:
                accept = in_tree  # no other way to connect: accept; closes a cycle of accepted edges: reject
            else:
                # log of r = w / (w + w_other) and of 1 - r, neither by subtraction from one.
                difference = weights[other] - weights[edge]
                log_r = -max(difference, 0.0) - np.log1p(np.exp(-abs(difference)))
                accept = wanted[t, edge] if replay else np.log(rng.random()) < log_r
                log_all += log_r if accept else log_r + difference
                if accept:
                    log_accepted += log_r
            if t == 0 and r < trace.shape[0]:
                trace[r, 0], trace[r, 1], trace[r, 2], trace[r, 3] = edge, other, accept, in_tree
                n_traced[0] = r + 1
            if accept:
                accepted[edge] = True
                n_accepted += 1
            if accept != in_tree:
                # Exchange: a rejected edge of tau for its replacement, or the lightest edge of the cycle for an
                # accepted one.
                old, new = (edge, other) if in_tree else (other, edge)
                a, b = ends[old, 0], ends[old, 1]
                disconnect_one(neighbour, degree, a, b)
                disconnect_one(neighbour, degree, b, a)
                connect(neighbour, degree, ends[new, 0], ends[new, 1])
        log_density[t, 0] = log_all
        log_density[t, 1] = log_accepted
        walk(neighbour, degree, 0, -1, came, stack)
        for v in range(1, n):
            parents[t, v] = came[v]
        parents[t, 0] = -1
