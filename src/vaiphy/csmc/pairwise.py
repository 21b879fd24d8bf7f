"""Branch lengths from the two merged subtrees themselves: their sum from the data, its division as in neighbour joining.

The likelihood of two merged subtrees depends on the two new branches only through their sum (the pulley principle), so the
sum is drawn from a Gamma fitted to its conditional. Where the new vertex sits between the two is decided by everything else:
by how much further one of them is from the other taxa, on average, than the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc import forest as forests
from vaiphy.csmc.forest import CHUNK, Forest
from vaiphy.csmc.proposals import Lengths, Merger, Streams
from vaiphy.csmc.targets import Target
from vaiphy.kernels import division, merge
from vaiphy.parallel import chunks, map_threads


@dataclass(frozen=True, eq=False)
class PairwiseLengths:
    """`distances` (n, n) between taxa; `prior_share` of the prior is mixed in, which bounds the weights."""

    distances: NDArray[np.float64]
    prior_share: float = 0.001

    def propose(self, forest: Forest, target: Target, merger: Merger, streams: Streams) -> Lengths:
        a, b = forests.pair(forest, merger.first, merger.second)
        slot_a, slot_b = forest.slot[a], forest.slot[b]
        last = forest.n_roots == 2
        n_particles, counts = forest.n_particles, forest.patterns.counts
        lengths, log_q = np.empty((n_particles, 2)), np.empty(n_particles)
        counts32 = counts.astype(np.float32)
        parts = chunks(n_particles, CHUNK)

        def work(piece: int) -> None:
            part = parts[piece]
            ratio = np.empty(len(counts), dtype=np.float32)
            start = np.full(part.stop - part.start, 0.1)
            if last:
                merge.propose_last(
                    forest.model, streams[piece], forest.pool, counts32, slot_a[part], slot_b[part], start, target.rooted,
                    target.prior_rate, self.prior_share, lengths[part], log_q[part], np.empty(len(start)), ratio,
                )  # fmt: skip
                return
            share, weight = np.empty(len(start)), np.empty(len(start))
            division.divide(a[part], b[part], forest.children, forest.lengths, self.distances, counts.sum(), share, weight)
            merge.propose_pair(
                forest.model, streams[piece], forest.pool, counts32, slot_a[part], slot_b[part], start, share, weight,
                target.prior_rate, self.prior_share, lengths[part], log_q[part], ratio,
            )  # fmt: skip

        map_threads(work, list(range(len(parts))), forest.threads)
        return Lengths(lengths, log_q)
