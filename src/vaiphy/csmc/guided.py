"""Proposals and look-ahead from a guide: mergers in order of certainty, branch lengths from the data on all three sides.

Mergers: `kernels.ordered`, with the backward kernel *ordered*. Branch lengths: where the two merged subtrees meet the
guide's outer message of the new clade, each branch's conditional is known pattern by pattern; a Gamma is fitted to it.
Look-ahead: every root's own partials meet its clade's outer message, which gives the likelihood of the whole tree as if all
else were the guide's; its distance from the guide's best tree is what the particle has won or lost so far.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc import forest as forests
from vaiphy.csmc import guide as guides
from vaiphy.csmc.forest import CHUNK, Forest
from vaiphy.csmc.guide import Guide
from vaiphy.csmc.proposals import Lengths, Merger, Streams
from vaiphy.csmc.targets import Backward, Target
from vaiphy.kernels import merge, ordered
from vaiphy.parallel import chunks, map_threads


@dataclass(frozen=True)
class GuidedProposal:
    """A guide with the distances that serve mergers it has not seen, and the distributions' settings.

    `floor`: least probability of refusing the surest pair and of accepting the least sure. `sharpness`: how much the
    distribution of unseen pairs prefers those that neighbour joining would join. `prior_share`: share of the prior in every
    branch distribution. `widen`: factor on the variance of the first of two branches. `n_sweeps`: rounds over the two
    branches' Gammas.
    """

    guide: Guide
    distances: NDArray[np.float64]
    floor: float = 1e-3
    sharpness: float = 10.0
    prior_share: float = 5e-4
    widen: float = 1.1
    n_sweeps: int = 2
    look_ahead: bool = True

    def begin(self, forest: Forest, target: Target) -> "GuidedRun":
        if target.rooted != self.guide.rooted:
            raise ValueError(f"the guide was made for {'a rooted' if self.guide.rooted else 'an unrooted'} target")
        return GuidedRun(self, forest)


class GuidedRun:
    """The guide's view of one run: what it knows of every vertex made so far."""

    backward: Backward = "ordered"

    def __init__(self, settings: GuidedProposal, forest: Forest) -> None:
        self.settings, self.guide = settings, settings.guide
        n_vertices, n = len(forest.slot), forest.n_taxa
        self.clades = np.full(n_vertices, -1, dtype=np.int32)
        self.clades[:n] = self.guide.find(forest.clade_hash[:n])
        self.keys = np.zeros(n_vertices)
        self.outer_of = np.full(n_vertices, -1, dtype=np.int64)  # rows of `outer`; rows past the guide's are unseen clades
        self.values = np.zeros(n_vertices)
        self.start_length = np.full(n_vertices, 0.05)
        self.inside = np.zeros(n_vertices)
        self.outer, self.log_outer, self.length = self.guide.outer, self.guide.log_outer, self.guide.length
        self.unseen: dict[int, int] = {}
        self.n_outer = len(self.guide.hashes)
        self._identify(forest, slice(0, n))

    @property
    def merger(self) -> "GuidedRun":
        return self

    @property
    def lengths(self) -> "GuidedRun":
        return self

    @property
    def look_ahead(self) -> "GuidedRun | None":
        return self if self.settings.look_ahead else None

    def choose(self, forest: Forest, target: Target, streams: Streams) -> Merger:
        n_particles, guide, settings = forest.n_particles, self.guide, self.settings
        first, second = np.empty(n_particles, dtype=np.int64), np.empty(n_particles, dtype=np.int64)
        log_q, key = np.empty(n_particles), np.empty(n_particles)
        parts = chunks(n_particles, CHUNK)

        def work(piece: int) -> None:
            part = parts[piece]
            ordered.choose_ordered(
                streams[piece], forest.roots[part], not target.rooted, self.clades, forest.children, forest.born,
                forest.clade_hash,
                self.keys, guide.start, guide.partner, guide.chance, guide.key, settings.distances, settings.sharpness,
                settings.floor, self.start_length, self.inside, guide.total, forest.rank,
                np.full(len(guide.hashes), -1, dtype=np.int64), first[part], second[part], log_q[part], key[part],
            )  # fmt: skip

        map_threads(work, list(range(len(parts))), forest.threads)
        self.keys[forests.new_vertices(forest)] = key
        return Merger(first, second, log_q)

    def propose(self, forest: Forest, target: Target, merger: Merger, streams: Streams) -> Lengths:
        a, b = forests.pair(forest, merger.first, merger.second)
        last = forest.n_roots == 2
        made = forests.new_vertices(forest)
        if not last:
            self._name(forest, made, a, b)
        settings, counts = self.settings, forest.patterns.counts
        counts32 = counts.astype(np.float32)
        slot_a, slot_b = forest.slot[a], forest.slot[b]
        starts = np.stack([self.start_length[a], self.start_length[b]], axis=1)
        lengths = np.empty((forest.n_particles, 2))
        log_q, volume = np.empty(forest.n_particles), np.empty(forest.n_particles)
        which = self.outer_of[made]
        parts = chunks(forest.n_particles, CHUNK)

        def work(piece: int) -> None:
            part = parts[piece]
            ratio = np.empty(len(counts), dtype=np.float32)
            if last:
                merge.propose_last(
                    forest.model, streams[piece], forest.pool, counts32, slot_a[part], slot_b[part], starts[part].max(axis=1),
                    target.rooted, target.prior_rate, settings.prior_share, lengths[part], log_q[part], volume[part], ratio,
                )  # fmt: skip
            else:
                merge.propose_star(
                    forest.model, streams[piece], forest.pool, counts32, slot_a[part], slot_b[part], self.outer, which[part],
                    starts[part], target.prior_rate, settings.prior_share, settings.widen, settings.n_sweeps,
                    lengths[part], log_q[part], volume[part], ratio,
                )  # fmt: skip

        map_threads(work, list(range(len(parts))), forest.threads)
        return Lengths(lengths, log_q, volume)

    def potential(self, forest: Forest, expected: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log-likelihood that all roots gain against the guide's best tree, less what the proposal expected of its mergers."""
        self._appraise(forest, forests.newest(forest))
        return self.values[forest.roots].sum(axis=1) - expected

    def _identify(self, forest: Forest, leaves: slice) -> None:
        """Outer messages of the single taxa (taxon 0 of an unrooted target has none: it waits for the end)."""
        known = np.flatnonzero(self.clades[leaves] >= 0)
        self.outer_of[known] = self.clades[known]
        self.start_length[known] = self.length[self.clades[known]]
        gain = np.empty(len(known))
        merge.agreement_many(
            forest.model, forest.pool, forest.slot[known], self.outer, self.outer_of[known], forest.patterns.counts, gain,
            np.empty(forest.patterns.n_patterns),
        )  # fmt: skip
        self.values[known] = gain + self.log_outer[self.clades[known]] - self.guide.log_best

    def _name(self, forest: Forest, made: slice, a: NDArray[np.int32], b: NDArray[np.int32]) -> None:
        """Which clades the new vertices are; those that no reference tree has get an outer message of their own."""
        hashes = forest.clade_hash[a] ^ forest.clade_hash[b]
        clades = self.guide.find(hashes)
        rows = clades.astype(np.int64)
        tips = forest.pool[: forest.n_taxa], forest.log_likelihood[: forest.n_taxa]
        unknown = np.flatnonzero(clades < 0).tolist()
        new: dict[int, int] = {}
        for k in unknown:
            if int(hashes[k]) not in self.unseen:
                new.setdefault(int(hashes[k]), k)

        def work(k: int) -> tuple[NDArray[np.float32], float, float]:
            members = forests.members(forest, int(a[k])) | forests.members(forest, int(b[k]))
            return guides.outer_of_unseen(forest.model, tips, forest.patterns.counts, self.guide, members)

        for clade_hash, found in zip(new, map_threads(work, list(new.values()), forest.threads)):
            self.unseen[clade_hash] = self._add_outer(*found)
        for k in unknown:
            rows[k] = self.unseen[int(hashes[k])]
        self.clades[made], self.outer_of[made], self.start_length[made] = clades, rows, self.length[rows]
        sum_of_parts = self.inside[a] + self.inside[b] + self.start_length[a] + self.start_length[b]
        self.inside[made] = np.where(clades >= 0, self.guide.inside[clades], sum_of_parts)

    def _add_outer(self, message: NDArray[np.float32], log_outer: float, length: float) -> int:
        row = self.n_outer
        if row == len(self.outer):
            extra = max(256, row)
            self.outer = np.concatenate([self.outer, np.empty((extra, *self.outer.shape[1:]), dtype=np.float32)])
            self.log_outer = np.concatenate([self.log_outer, np.empty(extra)])
            self.length = np.concatenate([self.length, np.empty(extra)])
        self.outer[row], self.log_outer[row], self.length[row] = message, log_outer, length
        self.n_outer += 1
        return row

    def _appraise(self, forest: Forest, made: slice) -> None:
        """Log-likelihood of the whole tree with each new subtree in the guide's place, against the guide's best."""
        counts = forest.patterns.counts
        slots, rows = forest.slot[made], self.outer_of[made]
        gain = np.empty(len(slots))

        def work(part: slice) -> None:
            merge.agreement_many(
                forest.model, forest.pool, slots[part], self.outer, rows[part], counts, gain[part], np.empty(len(counts))
            )

        map_threads(work, chunks(len(slots), CHUNK), forest.threads)
        self.values[made] = gain + self.log_outer[rows] - self.guide.log_best
