"""Mergers in a fixed order of preference, so that every tree is reached by exactly one path.

Every pair of clades has a key; a tree's own path always merges the available pair of smallest key, where a pair is
available once both its clades are subtrees of the forest. Going forward, a pair passed over in favour of one with a larger
key is refused for good. So at each step the available pairs are offered in ascending order, and each is accepted with the
probability that the clades are sisters given that both are clades and that the rivals offered before were refused.

Pairs seen in the guide's trees have keys below 1 and a probability of their own (`start`, `partner`, `chance`, `key`: for
clade c the pairs with larger clades, in CSR form). All others have keys between 2 and 3 made from the clades' hashes.
"""

import math

import numpy as np

from vaiphy.kernels.compile import inlined, kernel


@inlined
def unseen_key(x, y):
    """A key in [2, 3) for an unordered pair of hashes."""
    z = (x ^ y) + np.uint64(0x9E3779B97F4A7C15) * (x & y)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return 2.0 + np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16


@inlined
def fill_barrier(roots, k, children, born, keys, n_taxa, rank, barrier, stack):
    """barrier[t] = largest key among the mergers made after rank t; larger keys are open to pairs available since t."""
    for t in range(rank + 1):
        barrier[t] = -1.0
    for c in range(roots.shape[1]):
        depth = 0
        if roots[k, c] >= n_taxa:
            stack[0] = roots[k, c]
            depth = 1
        while depth > 0:
            depth -= 1
            vertex = stack[depth]
            barrier[born[vertex] - 1] = keys[vertex]
            for side in range(2):
                if children[vertex, side] >= n_taxa:
                    stack[depth] = children[vertex, side]
                    depth += 1
    for t in range(rank - 2, -1, -1):
        barrier[t] = max(barrier[t], barrier[t + 1])


@inlined
def fill_distances(roots, k, children, n_taxa, distances, owner, size, between, stack):
    """between[c, d] = mean distance between the taxa of roots c and d of particle k."""
    n_roots = roots.shape[1]
    for c in range(n_roots):
        size[c] = 0
        stack[0] = roots[k, c]
        depth = 1
        while depth > 0:
            depth -= 1
            vertex = stack[depth]
            if vertex < n_taxa:
                owner[vertex] = c
                size[c] += 1
            else:
                stack[depth] = children[vertex, 0]
                stack[depth + 1] = children[vertex, 1]
                depth += 2
        for d in range(n_roots):
            between[c, d] = 0.0
    for i in range(n_taxa):
        for j in range(n_taxa):
            between[owner[i], owner[j]] += distances[i, j]
    for c in range(n_roots):
        for d in range(n_roots):
            between[c, d] /= size[c] * size[d]


@inlined
def fill_unseen(roots, k, anchored, clades, born, hashes, barrier, start, partner, between, sharpness, weight):
    """weight[c, d] > 0 for the pairs open to particle k that the guide has not seen, by the neighbour-joining criterion."""
    n_roots = roots.shape[1]
    lowest = np.inf
    scale = 0.0
    for c in range(n_roots):
        total = 0.0
        for d in range(n_roots):
            total += between[c, d] if d != c else 0.0
        weight[c, c] = total / max(n_roots - 2, 1)
        scale += total
    scale = sharpness * n_roots * (n_roots - 1) / max(scale, 1e-12)
    for c in range(n_roots):
        for d in range(c + 1, n_roots):
            weight[c, d] = between[c, d] - weight[c, c] - weight[d, d]
            lowest = min(lowest, weight[c, d])
    count = 0
    for c in range(n_roots):
        for d in range(c + 1, n_roots):
            x, y = roots[k, c], roots[k, d]
            value = math.exp(-scale * (weight[c, d] - lowest)) + 0.01
            if (anchored and (x == 0 or y == 0)) or unseen_key(hashes[x], hashes[y]) <= barrier[max(born[x], born[y])]:
                value = 0.0
            elif clades[x] >= 0 and clades[y] >= 0:
                small, large = min(clades[x], clades[y]), max(clades[x], clades[y])
                for e in range(start[small], start[small + 1]):
                    if partner[e] == large:
                        value = 0.0
            weight[c, d] = value
            count += value > 0.0
    return count


@inlined
def refuse(c, d, chance, anchored, refused, root_at, root_total):
    """Learn from a pair passed over: either the two do not belong together, or the root is on one of their branches.

    Returns the new total of the root's weights; only their proportions matter.
    """
    other = max(1.0 - chance, 1e-4)
    by_root = 0.0 if anchored else (root_at[c] + root_at[d]) / root_total
    by_topology = (1.0 - chance) * (1.0 - by_root)
    share = by_topology / (by_topology + by_root) if by_topology + by_root > 0.0 else 1.0
    refused[c] = min(refused[c] + chance * share, 1.0)
    refused[d] = min(refused[d] + chance * share, 1.0)
    if anchored:
        return root_total
    gain = (root_at[c] + root_at[d]) * (1.0 / other - 1.0)
    root_at[c] /= other
    root_at[d] /= other
    return root_total + gain


@kernel
def choose_ordered(
    rng, roots, anchored, clades, children, born, hashes, keys, start, partner, chance, key, distances, sharpness, floor,
    above, inside, tree_length, rank, position, first, second, log_q, new_key,
):  # fmt: skip
    """Choose a pair for every particle; `position` (n_clades,) is a workspace of -1.

    Not `anchored`, the root may be on any branch with probability proportional to its length: `above` and `inside` are a
    vertex's branch and the length within it, `tree_length` the whole. Two roots that meet at a vertex are sisters only if the
    root of the tree is on neither's branch.
    """
    # In one piece: offering, refusing and accepting share a dozen arrays, and calls would be longer than what they call.
    n_particles, n_roots = roots.shape
    n_taxa = distances.shape[0]
    barrier = np.empty(rank + 2)
    stack = np.empty(2 * n_taxa, dtype=np.int64)
    owner = np.empty(n_taxa, dtype=np.int64)
    size = np.empty(n_roots)
    between = np.empty((n_roots, n_roots))
    weight = np.empty((n_roots, n_roots))
    refused = np.empty(n_roots)
    root_at = np.empty(n_roots)
    n_pairs = n_roots * (n_roots - 1) // 2
    if anchored and n_roots > 2:
        n_pairs -= n_roots - 1
    found_first = np.empty(n_pairs, dtype=np.int64)
    found_second = np.empty(n_pairs, dtype=np.int64)
    found_key = np.empty(n_pairs)
    found_chance = np.empty(n_pairs)
    mass = np.empty(n_pairs)
    for k in range(n_particles):
        if n_roots == 2:
            first[k], second[k], log_q[k], new_key[k] = 0, 1, 0.0, 3.0
            continue
        fill_barrier(roots, k, children, born, keys, n_taxa, rank, barrier, stack)
        barrier[rank] = -1.0
        # Where the root may still be: `root_at[c]` on the branch of root c, the rest of `root_total` further inside.
        root_total = tree_length
        ends = 0.0
        for c in range(n_roots):
            refused[c] = 0.0
            root_at[c] = max(above[roots[k, c]], 1e-6)
            root_total -= inside[roots[k, c]]
            ends += root_at[c]
            if clades[roots[k, c]] >= 0:
                position[clades[roots[k, c]]] = c
        root_total = ends if n_roots == 3 else max(root_total, 1.02 * ends)
        n_seen = 0
        n_found = 0
        for c in range(n_roots):
            clade = clades[roots[k, c]]
            if clade < 0:
                continue
            for e in range(start[clade], start[clade + 1]):
                d = position[partner[e]]
                if d < 0:
                    continue
                n_seen += 1
                if key[e] <= barrier[max(born[roots[k, c]], born[roots[k, d]])]:
                    root_total = refuse(c, d, chance[e], anchored, refused, root_at, root_total)
                    continue
                i = n_found
                while i > 0 and found_key[i - 1] > key[e]:
                    found_first[i], found_second[i] = found_first[i - 1], found_second[i - 1]
                    found_key[i], found_chance[i] = found_key[i - 1], found_chance[i - 1]
                    i -= 1
                found_first[i], found_second[i], found_key[i], found_chance[i] = c, d, key[e], chance[e]
                n_found += 1
        for c in range(n_roots):
            if clades[roots[k, c]] >= 0:
                position[clades[roots[k, c]]] = -1
        left = 1.0
        for i in range(n_found):
            c, d = found_first[i], found_second[i]
            accept = found_chance[i] / max(1.0 - max(refused[c], refused[d]), 1e-9)
            if not anchored:
                accept *= 1.0 - (root_at[c] + root_at[d]) / root_total
            accept = min(max(accept, floor), 1.0 - floor)
            mass[i] = left * accept
            left *= 1.0 - accept
            root_total = refuse(c, d, found_chance[i], anchored, refused, root_at, root_total)
        # Without a merger outside the guide so far, every unseen pair is still open.
        any_unseen = n_pairs > n_seen
        filled = False
        if any_unseen and barrier[0] >= 2.0:
            fill_distances(roots, k, children, n_taxa, distances, owner, size, between, stack)
            any_unseen = (
                fill_unseen(roots, k, anchored, clades, born, hashes, barrier, start, partner, between, sharpness, weight) > 0
            )
            filled = True
        # A tree has at least one available pair. If the guide knows any, an unseen one is as unlikely as `floor`.
        unseen_share = 0.0 if not any_unseen else 1.0 if n_found == 0 else floor
        total = (1.0 - left) / (1.0 - unseen_share) if n_found > 0 else 1.0
        draw = rng.random() * total
        chosen = -1
        for i in range(n_found):
            draw -= mass[i]
            if draw < 0.0 or (i == n_found - 1 and not any_unseen):
                chosen = i
                break
        if chosen >= 0:
            first[k], second[k] = found_first[chosen], found_second[chosen]
            log_q[k] = math.log(mass[chosen] / total)
            new_key[k] = found_key[chosen]
            continue
        if not filled:
            fill_distances(roots, k, children, n_taxa, distances, owner, size, between, stack)
            fill_unseen(roots, k, anchored, clades, born, hashes, barrier, start, partner, between, sharpness, weight)
        pick_unseen(rng, k, roots, hashes, weight, unseen_share, first, second, log_q, new_key)


@inlined
def pick_unseen(rng, k, roots, hashes, weight, share, first, second, log_q, new_key):
    """Draw a pair in proportion to `weight`; `share` is the probability that an unseen pair is drawn at all."""
    n_roots = roots.shape[1]
    total = 0.0
    for c in range(n_roots):
        for d in range(c + 1, n_roots):
            total += weight[c, d]
    draw = rng.random() * total
    for c in range(n_roots):
        for d in range(c + 1, n_roots):
            if weight[c, d] > 0.0:
                first[k], second[k] = c, d
                log_q[k] = math.log(share * weight[c, d] / total)
                new_key[k] = unseen_key(hashes[roots[k, c]], hashes[roots[k, d]])
                draw -= weight[c, d]
                if draw < 0.0:
                    return
