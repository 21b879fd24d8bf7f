"""Splits of seen clades into clades that were both seen, though perhaps never together.

Where the posterior is diffuse no sample has seen most of its trees, but it has seen most of their clades. So a tree is given a
probability in proportion to the product of its clades' frequencies, over all trees that can be made of seen clades; what follows
for the splits of each clade is found from the small clades up (Larget 2013; Berling et al. 2025, where it is called CCD0).
"""

import numpy as np

from vaiphy.kernels.clades import find, split_identity
from vaiphy.kernels.compile import kernel
from vaiphy.kernels.constraints import log_uniform, united


@kernel
def recombine(identity, sets, standing, log_frequency, group, first, table, index, rules, log_trees, least_share):
    """All such splits, but those with less than `least_share` of their clade's probability.

    Clades in order of size, taxa first: `identity`, `sets` (taxa as bits), `standing`, `log_frequency`; `group`: the lowest taxon
    of each; first[t]: the first clade whose lowest taxon is t, -1 if there is none. `table`, `index`: clades by identity. Returns
    the clade, the identity of the split, the part with the lowest taxon, the split's share of the clade's probability, and
    its log-probability in a uniform tree.
    """
    n_clades, words = sets.shape
    log_total = np.zeros(n_clades)
    after = np.full(n_clades, -1, dtype=np.int64)  # the next clade with the same lowest taxon
    last = first.copy()
    for c in range(n_clades):
        t = group[c]
        if c > first[t]:
            after[last[t]] = c
            last[t] = c
    size = 64
    whole, one, other = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    share = np.empty(size)
    found = 0
    for c in range(n_clades):
        begin = found
        best = -np.inf
        a = first[group[c]]
        while a != c:
            inside = True
            for w in range(words):
                inside &= sets[a, w] & ~sets[c, w] == np.uint64(0)
            place = find(table, identity[c] ^ identity[a]) if inside else np.int64(-1)
            if place >= 0 and united(rules, standing[a], standing[index[place]]) >= 0:
                b = index[place]
                if found == size:
                    size *= 2
                    whole = np.append(whole, np.empty(found, dtype=np.int64))
                    one = np.append(one, np.empty(found, dtype=np.int64))
                    other = np.append(other, np.empty(found, dtype=np.int64))
                    share = np.append(share, np.empty(found))
                whole[found], one[found], other[found] = c, a, b
                share[found] = log_frequency[a] + log_frequency[b] + log_total[a] + log_total[b]
                best = max(best, share[found])
                found += 1
            a = after[a]
        if found == begin:
            continue
        total = 0.0
        for i in range(begin, found):
            total += np.exp(share[i] - best)
        log_total[c] = best + np.log(total)
        # Those that hardly count are left out, and the others share alike what these had.
        kept, kept_total = begin, 0.0
        for i in range(begin, found):
            value = np.exp(share[i] - log_total[c])
            if value >= least_share:
                whole[kept], one[kept], other[kept], share[kept] = c, one[i], other[i], value
                kept_total += value
                kept += 1
        for i in range(begin, kept):
            share[i] /= kept_total
        found = kept
    split, uniform = np.empty(found, dtype=np.uint64), np.empty(found)
    for i in range(found):
        split[i] = split_identity(identity[one[i]], identity[other[i]])
        uniform[i] = log_uniform(rules, log_trees, standing[one[i]], standing[other[i]])
    return whole[:found], split, one[:found], share[:found], uniform
