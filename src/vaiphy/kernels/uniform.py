"""Cutting a set of taxa in two as in a tree drawn uniformly: from all trees, or from those that obey constraints."""

import numpy as np

from vaiphy.kernels.compile import inlined
from vaiphy.kernels.constraints import bound_in, node_of


@inlined
def uniform_part(members, size, log_trees, rng):
    """Cut `members` (shuffled in place) as in a uniform tree: returns how many of them, from the first on, are one part."""
    # The number of ordered cuts into i and size - i is binomial * trees * trees.
    u = rng.random()
    total = 0.0
    part = size - 1
    log_choose = 0.0
    for i in range(1, size):
        log_choose += np.log((size - i + 1.0) / i)
        total += np.exp(log_choose + log_trees[i] + log_trees[size - i] - log_trees[size]) * 0.5
        if u < total:
            part = i
            break
    for i in range(part):
        j = i + np.int64(rng.random() * (size - i))
        members[i], members[j] = members[j], members[i]
    return part


@inlined
def block_numbers(members, rules, number):
    """number[i]: which block member i belongs to, -1 if it is free; returns how many blocks there are.

    The blocks are those of the lowest node that has all members that are not free.
    """
    node = np.int64(-1)
    for taxon in members:
        if bound_in(rules.leaf[taxon]) > 0:
            other = node_of(rules.leaf[taxon])
            if node < 0:
                node = other
            while node != other:  # the node above has the smaller number
                if node > other:
                    node = rules.above[node]
                else:
                    other = rules.above[other]
    n_nodes = rules.blocks.shape[0]
    known = np.full(n_nodes + rules.leaf.shape[0], -1)
    found = 0
    for i in range(members.shape[0]):
        taxon = members[i]
        number[i] = -1
        if bound_in(rules.leaf[taxon]) > 0:
            name = n_nodes + taxon
            at = node_of(rules.leaf[taxon])
            while at != node:
                name, at = at, rules.above[at]
            if known[name] < 0:
                known[name] = found
                found += 1
            number[i] = known[name]
    return found


@inlined
def uniform_blocks(members, other, log_trees, rules, rng):
    """As `uniform_part`, in a tree drawn uniformly from those that have the required splits; `other`: room for as many."""
    size = members.shape[0]
    number = np.empty(size, dtype=np.int64)
    n_blocks = block_numbers(members, rules, number)
    first = np.ones(n_blocks, dtype=np.bool_)  # whether a block is in the first part
    if n_blocks > 1:
        shuffled = np.arange(n_blocks)
        part = uniform_part(shuffled, n_blocks, log_trees, rng)
        for i in range(part, n_blocks):
            first[shuffled[i]] = False
    one, two = 0, 0  # taxa placed so far
    in_first = np.empty(size, dtype=np.bool_)
    for i in range(size):
        if number[i] >= 0:
            in_first[i] = first[number[i]]
            one, two = (one + 1, two) if in_first[i] else (one, two + 1)
    for i in range(size):
        if number[i] >= 0:
            continue
        # Free: to any branch of the tree so far, that is of one part, of the other, or the stem, which makes a part of its own.
        u = rng.random() * (2.0 * (one + two) - 1.0)
        if one + two == 0 or (two > 0 and u < 2.0 * one - 1.0):
            in_first[i] = True
            one += 1
        elif two > 0 and u < 2.0 * (one + two) - 2.0:
            in_first[i] = False
            two += 1
        else:
            for j in range(size):
                if number[j] >= 0 or j < i:
                    in_first[j] = True
            in_first[i] = False
            one, two = one + two, 1
    part, rest = 0, 0
    for i in range(size):
        taxon = members[i]
        if in_first[i]:
            members[part] = taxon
            part += 1
        else:
            other[rest] = taxon
            rest += 1
    for i in range(rest):
        members[part + i] = other[i]
    return part
