"""Searching tree space: hill climbing and neighbourhoods by subtree pruning and regrafting.

Trees are judged by mass, an estimate of log p(X | topology) (`branches.gamma`), not by the height of their peak. Moves are
screened lazily by `kernels.neighbourhood`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches import gamma
from vaiphy.kernels import binary, neighbourhood
from vaiphy.likelihood import U_HIGH, U_LOW
from vaiphy.start import bionj, jc_distances
from vaiphy.treesample import binary_arrays

Floats = NDArray[np.float64]
Children = NDArray[np.int32]
#: Candidates of a climbing step that are fitted in full, besides all compatible moves made together.
CLIMB_CANDIDATES = 5
#: A climb looks at moves whose lazy score is at most this far below the tree: full optimisation may bring them up.
CLIMB_MARGIN = 2.0
#: All regraftings are looked at up to this many taxa (their number grows with the square); beyond, those up to `NEAR` branches away.
FAR_MOVES_UP_TO, NEAR, MOST_MOVES = 100, 8, 100_000


@dataclass(frozen=True)
class Problem:
    """The data as the search sees them: patterns (folded, see `alignment.fold_states`) and the rate of the Exp prior."""

    patterns: SitePatterns
    rate: float

    @property
    def n_taxa(self) -> int:
        return self.patterns.n_taxa


def topology_hashes(children: Children) -> NDArray[np.uint64]:
    """A 64-bit key of each topology, equal for equal topologies."""
    out = np.empty(len(children), dtype=np.uint64)
    binary.topology_hashes(children, binary.taxon_keys(children.shape[1] + 2), out)
    return out


def bootstrap_tree(problem: Problem, rng: np.random.Generator | None) -> tuple[Children, Floats]:
    """The BIONJ tree of resampled sites (of the sites themselves without `rng`)."""
    patterns = problem.patterns
    counts = patterns.counts
    if rng is not None:
        counts = rng.multinomial(int(counts.sum()), counts / counts.sum()).astype(np.float64)
    return binary_arrays(bionj(jc_distances(patterns, counts), patterns.taxa))


def neighbours(problem: Problem, children: Children, lengths: Floats, margin: float, most: int) -> tuple[Children, Floats, Floats]:
    """Topologies one regrafting away whose lazy score is within `margin` of the tree's own, best first, each once.

    Returns the topologies, lengths to start from, and the scores (about log mass minus that of the tree). `lengths` must be
    near their optimum.
    """
    moves, scores, spans = screen(problem, children, lengths, margin)
    best = np.argsort(-scores, kind="stable")[: 4 * most]
    trees, starts = moved(children, lengths, moves[best], spans[best])
    first = first_of_each(trees)[:most]
    return trees[first], starts[first], scores[best][first]


def climb(problem: Problem, children: Children, lengths: Floats) -> tuple[Children, Floats]:
    """Climb by regrafting until no neighbour has more mass; each step makes all promising moves that do not touch each other."""
    law = gamma.fit(children[None], lengths[None], problem.patterns, problem.rate)
    lengths, mass = law.modes[0], law.masses[0]
    while True:
        moves, scores, spans = screen(problem, children, lengths, CLIMB_MARGIN)
        best = np.argsort(-scores, kind="stable")
        likely = best[: 4 * CLIMB_CANDIDATES]
        candidates, starts = moved(children, lengths, moves[likely], spans[likely])
        first = first_of_each(candidates)[:CLIMB_CANDIDATES]
        candidates, starts = candidates[first], starts[first]
        rising = best[scores[best] > 0.5]
        if len(rising) > 1:
            tree, start = np.empty_like(children), np.zeros_like(lengths)
            binary.apply_together(children, lengths, moves[rising], spans[rising], tree, start)
            candidates, starts = np.concatenate([candidates, tree[None]]), np.concatenate([starts, start[None]])
        if not len(candidates):
            return children, lengths
        law = gamma.fit(candidates, starts, problem.patterns, problem.rate)
        chosen = int(law.masses.argmax())
        if law.masses[chosen] < mass + 1e-3:
            return children, lengths
        children, lengths, mass = candidates[chosen], law.modes[chosen], law.masses[chosen]


def screen(problem: Problem, children: Children, lengths: Floats, margin: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    """Moves within `margin` of the tree itself, their lazy scores, and the lengths of the three branches where the part is hung."""
    n = problem.n_taxa
    most = min(4 * (2 * n - 3) ** 2, MOST_MOVES)
    radius = n if n <= FAR_MOVES_UP_TO else NEAR
    moves, scores, spans = np.empty((most, 4), dtype=np.int32), np.empty(most), np.empty((most, 3))
    patterns = problem.patterns
    kept = neighbourhood.screen(
        children, lengths, patterns.tips, patterns.counts, 0.75 * problem.rate, U_LOW, U_HIGH, margin, radius, most, moves, scores, spans
    )
    return moves[:kept], scores[:kept], spans[:kept]


def moved(
    children: Children, lengths: Floats, moves: NDArray[np.int32], spans: Floats
) -> tuple[Children, Floats]:
    """The trees after each of the moves, with lengths to start from."""
    trees = np.empty((len(moves), *children.shape), dtype=np.int32)
    starts = np.zeros((len(moves), len(lengths)))
    binary.apply_moves(children, lengths, moves, spans, trees, starts)
    return trees, starts


def first_of_each(children: Children) -> NDArray[np.int64]:
    """Where each distinct topology stands first, ascending."""
    return np.sort(np.unique(topology_hashes(children), return_index=True)[1])
