"""Distance trees that obey constraints, for learning to start from."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels.joining_neighbours import bionj
from vaiphy.trees.constraints import Clade, Constraint

Floats = NDArray[np.float64]

#: Required splits are made this many times as long as the largest distance (at least 1), so that joining neighbours finds them.
FAR = 10.0
#: Rounds in which forbidden splits are broken up; a tree that still has one is not used.
ROUNDS = 10


def joined_under(
    constraint: Constraint, distances: Floats, children: NDArray[np.int32], lengths: Floats, rng: np.random.Generator
) -> None:
    """The BIONJ tree of `distances` as binary arrays, with required splits, and forbidden ones broken up by chance.

    Required splits get a long branch each, which is taken off afterwards. A taxon that is not bound by them goes with the bound
    taxon that it is nearest to.
    """
    n = constraint.n_taxa
    bound = np.array(sorted(constraint.bound), dtype=np.int64)
    nearest = {t: t if t in constraint.bound else int(bound[distances[t, bound].argmin()]) for t in range(n)}
    required = {frozenset(t for t in range(n) if nearest[t] in clade) for clade in constraint.required}
    far = FAR * max(1.0, float(distances.max()))
    apart = distances.copy()
    for clade in required:
        inside = np.isin(np.arange(n), sorted(clade))
        apart += far * (inside[:, None] != inside[None, :])
    bionj(apart, children, lengths)
    for v, clade in _clades(children).items():
        if clade in required:
            lengths[v] = max(lengths[v] - far, 0.0)
    for _ in range(ROUNDS):
        present = [v for v, clade in _clades(children).items() if clade in constraint.forbidden]
        if not present:
            return
        _exchange(present[0], children, rng)


def _clades(children: NDArray[np.int32]) -> dict[int, Clade]:
    """The taxa below each vertex."""
    n = len(children) + 2
    below = {v: frozenset([v]) for v in range(1, n)}
    waiting = [n + k for k in range(n - 2)]
    while waiting:  # the vertices are in postorder unless some were exchanged
        left = []
        for v in waiting:
            a, b = children[v - n].tolist()
            if a in below and b in below:
                below[v] = below[a] | below[b]
            else:
                left.append(v)
        waiting = left
    return below


def _exchange(v: int, children: NDArray[np.int32], rng: np.random.Generator) -> None:
    """Exchange one of the two clades below v with the one beside it."""
    n = len(children) + 2
    above, side = np.argwhere(children == v)[0]
    k = int(rng.integers(2))
    children[v - n, k], children[above, 1 - side] = children[above, 1 - side], children[v - n, k]
