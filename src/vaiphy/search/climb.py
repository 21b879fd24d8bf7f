"""Searching tree space: hill climbing and neighbourhoods by subtree pruning and regrafting.

Trees are judged by mass, an estimate of log p(X | topology) (`branches.gamma`), not by the height of their peak. Moves are
screened lazily by `kernels.neighbourhood`.
"""

import numpy as np

from vaiphy.branches import gamma
from vaiphy.search.rearrange import Children, Floats, first_of_each, moved, moved_together, screen
from vaiphy.target import SimpleTarget

#: Candidates of a climbing step that are fitted in full, besides all compatible moves made together.
CLIMB_CANDIDATES = 5
#: A climb looks at moves whose lazy score is at most this far below the tree: full optimisation may bring them up.
CLIMB_MARGIN = 2.0


def neighbours(
    target: SimpleTarget, children: Children, lengths: Floats, margin: float, most: int
) -> tuple[Children, Floats, Floats]:
    """Topologies one regrafting away whose lazy score is within `margin` of the tree's own, best first, each once.

    Returns the topologies, lengths to start from, and the scores (about log mass minus that of the tree). `lengths` must be
    near their optimum.
    """
    moves, scores, spans = screen(target, children, lengths, margin)
    best = np.argsort(-scores, kind="stable")[: 4 * most]
    trees, starts = moved(children, lengths, moves[best], spans[best])
    first = first_of_each(trees)[:most]
    return trees[first], starts[first], scores[best][first]


def climb(target: SimpleTarget, children: Children, lengths: Floats) -> tuple[Children, Floats]:
    """Climb by regrafting until no neighbour has more mass; each step makes all promising moves that do not touch each other."""
    law = gamma.fit(children[None], lengths[None], target)
    lengths, mass = law.modes[0], law.masses[0]
    while True:
        moves, scores, spans = screen(target, children, lengths, CLIMB_MARGIN)
        best = np.argsort(-scores, kind="stable")
        likely = best[: 4 * CLIMB_CANDIDATES]
        candidates, starts = moved(children, lengths, moves[likely], spans[likely])
        first = first_of_each(candidates)[:CLIMB_CANDIDATES]
        candidates, starts = candidates[first], starts[first]
        rising = best[scores[best] > 0.5]
        if len(rising) > 1:
            tree, start = moved_together(children, lengths, moves[rising], spans[rising])
            candidates, starts = np.concatenate([candidates, tree[None]]), np.concatenate([starts, start[None]])
        if not len(candidates):
            return children, lengths
        law = gamma.fit(candidates, starts, target)
        chosen = int(law.masses.argmax())
        if law.masses[chosen] < mass + 1e-3:
            return children, lengths
        children, lengths, mass = candidates[chosen], law.modes[chosen], law.masses[chosen]
