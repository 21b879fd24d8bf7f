"""phi-CSMC's branch lengths (paper, appendix D.1): mixtures of JC distributions over the labelled edges that a branch might be.

In the fitted distribution every internal vertex has a label, in CSMC none. So the labels are drawn with the lengths: for the
subtree with the smallest taxon the edge above it, in proportion to how often sampled trees have that edge (a taxon's own edges,
or any edge between internal vertices); for the other subtree an edge to the same upper vertex. The density is that of the
whole mixture.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.branches.law import LengthLaw
from vaiphy.csmc import forest as forests
from vaiphy.csmc.forest import CHUNK, Forest
from vaiphy.csmc.proposals import Lengths, Merger, Streams
from vaiphy.csmc.targets import Target
from vaiphy.kernels import support as kernels
from vaiphy.parallel import chunks, map_threads
from vaiphy.trees.augmented import AugmentedTrees


@dataclass(frozen=True, eq=False)
class MixtureLengths:
    """Counts of labelled edges in CSR form by kind of subtree and upper label (see `kernels.support.propose_mixture`)."""

    law: LengthLaw
    parent_start: NDArray[np.int64]
    parent_weight: NDArray[np.float64]
    start: NDArray[np.int64]
    edge: NDArray[np.int64]
    weight: NDArray[np.float64]

    def propose(self, forest: Forest, target: Target, merger: Merger, streams: Streams) -> Lengths:
        a, b = forests.pair(forest, merger.first, merger.second)
        swap = forest.least[b] < forest.least[a]
        one, two = np.where(swap, b, a), np.where(swap, a, b)
        single = forest.n_roots == 2 and not target.rooted
        lengths, log_q = np.empty((forest.n_particles, 2)), np.empty(forest.n_particles)
        rows, norms = self.law.rows.reshape(-1, 5), self.law.log_norm.ravel()
        parts = chunks(forest.n_particles, CHUNK)

        def work(piece: int) -> None:
            part = parts[piece]
            kernels.propose_mixture(
                streams[piece], one[part], two[part], forest.n_taxa, self.parent_start, self.parent_weight,
                self.start, self.edge, self.weight, rows, norms, self.law.prior_share, self.law.prior_rate, single,
                lengths[part], log_q[part],
            )  # fmt: skip

        map_threads(work, list(range(len(parts))), forest.threads)
        if not single:  # back to the order of the columns; a single branch is the first whoever it belongs to
            lengths[swap] = lengths[swap][:, ::-1]
        return Lengths(lengths, log_q)


def mixture_lengths(trees: AugmentedTrees, law: LengthLaw) -> MixtureLengths:
    """The branch-length proposal of trees of the fitted distribution; `law` has rows (2n-2, n-2) by vertex and label above.

    An edge that no tree has gets one hundredth of a count where a label above is given and none of its edges was seen.
    """
    n = len(trees.taxa)
    n_labels = n - 2
    counts = np.zeros((2 * n - 2, n_labels))
    vertex = np.broadcast_to(np.arange(2 * n - 2), trees.parents.shape)
    inside = trees.parents >= 0
    np.add.at(counts, (vertex[inside], trees.parents[inside] - n), 1.0)
    core = counts[n:] + counts[n:].T  # internal edges have no direction
    starts, edges, weights, parent_weights = [0], [], [], []
    for kind in range(n + 1):
        for label in range(n_labels):
            if kind < n:
                choices, found = np.array([kind]), counts[kind, label : label + 1]
            else:
                choices = n + np.flatnonzero(np.arange(n_labels) != label)
                found = core[choices - n, label]
                if not len(choices):  # three taxa have no internal edge: any edge of the only label will do
                    choices, found = np.arange(n), np.zeros(n)
            seen = found > 0
            chosen = choices[seen] if seen.any() else choices
            edges.append(chosen * n_labels + label)
            weights.append(found[seen] if seen.any() else np.full(len(chosen), 0.01))
            starts.append(starts[-1] + len(chosen))
            parent_weights.append(found.sum())
    table = np.array(parent_weights).reshape(n + 1, n_labels)
    empty = table.sum(axis=1) == 0
    table[empty] = 1.0
    return MixtureLengths(
        law,
        np.arange(n + 2, dtype=np.int64) * n_labels,
        table.ravel(),
        np.array(starts, dtype=np.int64),
        np.concatenate(edges).astype(np.int64),
        np.concatenate(weights),
    )
