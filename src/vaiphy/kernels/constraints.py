"""Trees that must have given splits, or must not: what distributions of clades and moves need to know of them.

Required splits, each named by its side without taxon 0, are nested or disjoint, so they are nodes of a tree whose root, node 0,
is all taxa but taxon 0. The *blocks* of a node are the nodes and taxa right below it. In a tree that obeys, every clade is made
of some of the blocks of one node; made of all of them, it is a single block of the node above. So a vertex's *standing* (its
node, its number of blocks) tells whether two clades may be joined: if they belong to the same node. No sets are compared.

Required splits may be about some of the taxa only (a constraint tree without the others): the others are *free*, belong to no
node, and may be joined with anything. A standing therefore also counts the taxa, and the bound ones among them. It is packed into
one integer, which takes the place of the number of taxa that is all that unconstrained trees need.

Among the trees that obey, drawn uniformly, a clade with s blocks is cut as a uniform tree with s leaves is; free taxa are added
one by one, each to any of the 2k - 1 branches (stem included) of a rooted tree with k leaves.
"""

from typing import Any, NamedTuple

import numpy as np

from vaiphy.kernels.compile import inlined

#: Packing of a standing: taxa, bound taxa, blocks (fifteen bits each), node. A clade that breaks a rule has the standing -1.
BITS = 15
FIELD = (1 << BITS) - 1
BROKEN = -1
#: What `mark_place` finds out about a place: inside what is left of the clade's node; of the same node; a place that would make a
#: forbidden split; below the vertex, if there is one, that a forbidden split is made at without the clade.
INSIDE, FITS, BARRED, UNDER = 1, 2, 4, 8


class Rules(NamedTuple):
    """`blocks` (nodes,): how many blocks each node has, empty if nothing is required; `above` (nodes,): the node that each is a
    block of (its number is smaller); `leaf` (n,): standing of each taxon; `forbidden`: identities of clades that must not be.
    """

    blocks: Any  # (nodes,) int64
    above: Any  # (nodes,) int64
    leaf: Any  # (n,) int64
    forbidden: Any  # (k,) uint64


@inlined
def bound_in(standing):
    return (standing >> BITS) & FIELD


@inlined
def blocks_in(standing):
    return (standing >> (2 * BITS)) & FIELD


@inlined
def node_of(standing):
    return standing >> (3 * BITS)


@inlined
def united(rules, a, b):
    """Standing of two clades together (without required splits: their number of taxa)."""
    if rules.blocks.shape[0] == 0:
        return a + b
    if a < 0 or b < 0:
        return np.int64(BROKEN)
    taxa = (a & FIELD) + (b & FIELD)
    if bound_in(a) == 0:
        return ((b >> BITS) << BITS) | taxa
    if bound_in(b) == 0:
        return ((a >> BITS) << BITS) | taxa
    node, blocks = node_of(a), blocks_in(a) + blocks_in(b)
    if node != node_of(b):
        return np.int64(BROKEN)
    if node != 0 and blocks == rules.blocks[node]:
        node, blocks = rules.above[node], 1
    return taxa | ((bound_in(a) + bound_in(b)) << BITS) | (blocks << (2 * BITS)) | (node << (3 * BITS))


@inlined
def log_uniform(rules, log_trees, a, b):
    """Log-probability that a clade is cut into parts of these standings, these very ones, in a tree drawn uniformly."""
    if rules.blocks.shape[0] == 0:
        return log_trees[a] + log_trees[b] - log_trees[a + b]
    if united(rules, a, b) < 0:
        return -np.inf
    value = log_trees[a & FIELD] + log_trees[b & FIELD] - log_trees[(a & FIELD) + (b & FIELD)]
    bound_a, bound_b = bound_in(a), bound_in(b)
    value += log_trees[bound_a + bound_b] - log_trees[bound_a] - log_trees[bound_b]
    if bound_a > 0 and bound_b > 0:
        blocks_a, blocks_b = blocks_in(a), blocks_in(b)
        value += log_trees[blocks_a] + log_trees[blocks_b] - log_trees[blocks_a + blocks_b]
    return value


@inlined
def is_forbidden(rules, clade):
    found = False
    for k in range(rules.forbidden.shape[0]):
        found |= rules.forbidden[k] == clade
    return found


@inlined
def is_constrained(rules):
    return rules.blocks.shape[0] + rules.forbidden.shape[0] > 0


@inlined
def may_pair(rules, x, y, z, clade):
    """Whether three clades of these standings may be joined, first x and y, which make `clade`."""
    if is_forbidden(rules, clade):
        return False
    if rules.blocks.shape[0] == 0:
        return True
    pair = united(rules, x, y)
    return pair >= 0 and united(rules, pair, z) >= 0


@inlined
def name_standings(children, order, rules, size):
    """Standing of every vertex; `order` is a postorder of the internal ones."""
    n = children.shape[0] + 2
    for v in range(n):
        size[v] = rules.leaf[v]
    for i in range(n - 2):
        v = order[i]
        size[v] = united(rules, size[children[v - n, 0]], size[children[v - n, 1]])


@inlined
def limits(v, s, g, top, parent, clade, size, rules):
    """Where clade v, taken off beside s and below g, may go at most: at or below `root`, and below `under` (0: no such limit).

    root: the highest vertex with what is left of the node of v, and nothing else but free taxa. under: the lowest vertex at which
    a forbidden split is found without v, which must come back below it.
    """
    root, under = top, np.int64(0)
    if rules.blocks.shape[0] > 0 and bound_in(size[v]) > 0 and node_of(size[v]) > 0:
        node = node_of(size[v])
        left = rules.blocks[node] - blocks_in(size[v])
        root = s
        while bound_in(size[root]) == 0 or node_of(size[root]) != node or blocks_in(size[root]) != left:
            root = parent[root]
        while parent[root] != 0 and size[parent[root]] >> BITS == size[root] >> BITS:
            root = parent[root]
    w = g
    while w != 0 and under == 0 and rules.forbidden.shape[0] > 0:
        if is_forbidden(rules, clade[w]):
            under = w
        w = parent[w]
    return root, under


@inlined
def mark_place(w, v, root, under, parent, clade, size, rules, mark):
    """mark[w] of the branch above w, once its parent has one; returns whether clade v may be hung in there."""
    up = parent[w]
    found = 0
    above = mark[up] if up != 0 else 0
    if w == root or above & INSIDE:
        found |= INSIDE
        if rules.blocks.shape[0] == 0 or bound_in(size[v]) == 0:
            found |= FITS
        elif bound_in(size[w]) == 0:  # on free taxa alone: as good as the place where these hang
            found |= above & FITS
        elif node_of(size[w]) == node_of(size[v]):
            found |= FITS
    if above & BARRED or is_forbidden(rules, clade[w] ^ clade[v]):
        found |= BARRED
    if under == 0 or up == under or above & UNDER:
        found |= UNDER
    mark[w] = found
    return found & (FITS | BARRED | UNDER) == FITS | UNDER
