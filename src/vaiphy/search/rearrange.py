"""Trees one rearrangement away: subtree pruning and regrafting, screened lazily by `kernels.neighbourhood`.

Trees are "binary arrays" (`trees.sample`).
"""

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import binary, neighbourhood
from vaiphy.target import SimpleTarget

Floats = NDArray[np.float64]
Children = NDArray[np.int32]
#: All regraftings are looked at up to this many taxa (their number grows with the square); beyond, those up to `NEAR` branches
#: away.
FAR_MOVES_UP_TO, NEAR, MOST_MOVES = 100, 8, 100_000


def topology_hashes(children: Children) -> NDArray[np.uint64]:
    """A 64-bit key of each topology, equal for equal topologies."""
    out = np.empty(len(children), dtype=np.uint64)
    binary.topology_hashes(children, binary.taxon_keys(children.shape[1] + 2), out)
    return out


def screen(
    target: SimpleTarget, children: Children, lengths: Floats, margin: float, radius: int | None = None
) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Moves within `margin` of the tree itself, their lazy scores, and the lengths of the three branches where the part is hung.

    A part is moved by at most `radius` branches; with 1 the moves are the nearest-neighbour interchanges.
    """
    n = target.n_taxa
    most = min(4 * (2 * n - 3) ** 2, MOST_MOVES)
    if radius is None:
        radius = n if n <= FAR_MOVES_UP_TO else NEAR
    moves, scores, spans = np.empty((most, 4), dtype=np.int32), np.empty(most), np.empty((most, 3))
    patterns, prior = target.patterns, target.prior_rate * target.model.spacing
    kept = neighbourhood.screen(
        target.model, children, lengths, patterns.tips, patterns.counts, prior, margin, radius, most, moves, scores, spans
    )
    return moves[:kept], scores[:kept], spans[:kept]


def moved(children: Children, lengths: Floats, moves: NDArray[np.int32], spans: Floats) -> tuple[Children, Floats]:
    """The trees after each of the moves, with lengths to start from."""
    trees = np.empty((len(moves), *children.shape), dtype=np.int32)
    starts = np.zeros((len(moves), len(lengths)))
    binary.apply_moves(children, lengths, moves, spans, trees, starts)
    return trees, starts


def moved_together(children: Children, lengths: Floats, moves: NDArray[np.int32], spans: Floats) -> tuple[Children, Floats]:
    """The tree after as many of the moves, best first, as do not touch each other, with lengths to start from."""
    tree, start = np.empty_like(children), np.zeros_like(lengths)
    binary.apply_together(children, lengths, moves, spans, tree, start)
    return tree, start


def first_of_each(children: Children) -> NDArray[np.int64]:
    """Where each distinct topology stands first, ascending."""
    return np.sort(np.unique(topology_hashes(children), return_index=True)[1])
