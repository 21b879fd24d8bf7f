"""Trees from conditional tables over subsplits, drawn by a walk over indices; nothing is looked up by its clade.

The tables (`vaiphy.vbpi.network`): row r, a clade beside its sister, has the entries start[r]..start[r + 1] - 1, each a way to
split the clade in two. `below[e, side]` is the row of that half beside the other half, or -1 - taxon where it is one taxon.
Trees are binary arrays rooted at taxon 0 (`binary`): row 0 is the clade of all other taxa.
"""

import numpy as np

from vaiphy.kernels.binary import fill_clades
from vaiphy.kernels.compile import inlined, kernel


@kernel
def clade_hashes(children, keys, out):
    """out[t, v]: the hash of the taxa below each vertex of each tree."""
    for t in range(children.shape[0]):
        fill_clades(children[t], keys, out[t])


@kernel
def normalise(start, logits, probability, log_probability):
    """The conditional probabilities of each row: softmax of its entries' logits."""
    for r in range(start.shape[0] - 1):
        top = -np.inf
        for e in range(start[r], start[r + 1]):
            top = max(top, np.float64(logits[e]))
        total = 0.0
        for e in range(start[r], start[r + 1]):
            probability[e] = np.exp(np.float64(logits[e]) - top)
            total += probability[e]
        for e in range(start[r], start[r + 1]):
            probability[e] /= total
            log_probability[e] = np.float64(logits[e]) - top - np.log(total)


@inlined
def pick(start, probability, row, uniform):
    """The entry of a row that a uniform number falls on."""
    last = start[row + 1] - 1
    for e in range(start[row], last):
        uniform -= probability[e]
        if uniform < 0.0:
            return e
    return last


@inlined
def walk(t, start, below, probability, uniforms, chosen, children, waiting):
    """Fill children[t] and chosen[t], the entry of each internal vertex; takes the given entries where there is no chance."""
    n = children.shape[1] + 2
    next_name = 2 * n - 4
    waiting[2 * n - 3] = 0
    for v in range(2 * n - 3, n - 1, -1):
        k = v - n
        if uniforms.shape[0] > 0:
            chosen[t, k] = pick(start, probability, waiting[v], uniforms[t, k])
        e = chosen[t, k]
        for side in range(2):
            row = below[e, side]
            if row < 0:
                children[t, k, side] = -1 - row
            else:
                children[t, k, side] = next_name
                waiting[next_name] = row
                next_name -= 1


@kernel
def draw(start, below, probability, log_probability, uniforms, chosen, children, log_q):
    """One tree for each row of `uniforms` (T, n-2): the entries chosen, the topology and its log-probability."""
    waiting = np.empty(2 * children.shape[1] + 2, dtype=np.int64)
    for t in range(children.shape[0]):
        walk(t, start, below, probability, uniforms, chosen, children, waiting)
        log_q[t] = 0.0
        for k in range(children.shape[1]):
            log_q[t] += log_probability[chosen[t, k]]


@kernel
def identify(children, chosen, split_of, down_of, up_of, taxon_split, nothing_below, nothing_above, out):
    """out[t, v - 1]: the numbers of the branch above v: its split and the subsplit pairs below and above it."""
    n = children.shape[1] + 2
    for t in range(children.shape[0]):
        for v in range(1, n):
            out[t, v - 1, 0] = taxon_split[v]
            out[t, v - 1, 1] = nothing_below
        out[t, 2 * n - 4, 2] = nothing_above
        for k in range(n - 2):
            e = chosen[t, k]
            out[t, n + k - 1, 0] = split_of[e]
            out[t, n + k - 1, 1] = down_of[e]
            for side in range(2):
                out[t, children[t, k, side] - 1, 2] = up_of[e, side]


@kernel
def add_gradient(start, row_of, probability, chosen, coefficient, gradient):
    """gradient += sum over trees of coefficient[t] * (derivative of log q(tree t) in the logits)."""
    for t in range(chosen.shape[0]):
        for k in range(chosen.shape[1]):
            e = chosen[t, k]
            r = row_of[e]
            if start[r + 1] - start[r] > 1:
                gradient[e] += coefficient[t]
                for other in range(start[r], start[r + 1]):
                    gradient[other] -= coefficient[t] * probability[other]
