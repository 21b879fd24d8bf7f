"""Trees for a guide: everything found so far with its mass, hill climbing, and neighbourhoods.

A tree is judged by its mass, an estimate of log p(X | topology) without noise (`branches.gamma`); moves are those of `search`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vaiphy.branches import gamma
from vaiphy.csmc.effort import Effort
from vaiphy.csmc.guide import Reference
from vaiphy.parallel import map_threads
from vaiphy.search.climb import climb, neighbours
from vaiphy.search.rearrange import topology_hashes
from vaiphy.search.starts import bionj, distances
from vaiphy.target import SimpleTarget
from vaiphy.trees.sample import binary_arrays
from vaiphy.weights import tempered

Children = NDArray[np.int32]
Floats = NDArray[np.float64]
Drawn = tuple[NDArray[np.int64], Floats]


@dataclass
class Archive:
    """All distinct topologies met so far, with the means of their branch lengths and their masses.

    `target` judges them. `place` finds a topology by its hash; `expanded` are the places
    whose neighbourhood has been taken in.
    """

    target: SimpleTarget
    effort: Effort = field(default_factory=Effort)
    children: list[Children] = field(default_factory=list)
    lengths: list[Floats] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)
    expanded: set[int] = field(default_factory=set)

    def add(self, children: Children, lengths: Floats, threads: int = 1) -> NDArray[np.int64]:
        """Take in topologies; those not met before are fitted, starting from `lengths`. Returns the places of all."""
        keys = topology_hashes(children).tolist()
        new: dict[int, int] = {}
        for row, key in enumerate(keys):
            if key not in self.place:
                new.setdefault(key, row)
        if new:
            self._fit(new, children, lengths, threads)
        return np.array([self.place[key] for key in keys], dtype=np.int64)

    def _fit(self, new: dict[int, int], children: Children, lengths: Floats, threads: int) -> None:
        rows = list(new.values())
        fresh = np.ascontiguousarray(children[rows])
        law = gamma.fit(fresh, np.ascontiguousarray(lengths[rows]), self.target, threads)
        means = law.shapes / law.rates
        means[:, 0] = 0.0
        for key, tree, mean, mass in zip(new, fresh, means, law.masses.tolist()):
            self.place[key] = len(self.children)
            self.children.append(tree)
            self.lengths.append(mean)
            self.masses.append(mass)

    def best(self, most: int, unexpanded: bool = False) -> list[int]:
        """Places of the trees of largest mass, best first."""
        order = np.argsort(-np.array(self.masses), kind="stable").tolist()
        return [i for i in order if not (unexpanded and i in self.expanded)][:most]

    def climb(self, places: list[int], threads: int = 1) -> None:
        """Climb from each of the places and take in where it ends."""

        def work(place: int) -> tuple[Children, Floats]:
            return climb(self.target, self.children[place], self.lengths[place])

        self._add_all(map_threads(work, places, threads), threads)

    def expand(self, places: list[int], threads: int = 1) -> None:
        """Take in the neighbourhoods of the trees at these places."""

        def work(place: int) -> tuple[Children, Floats]:
            children, lengths = self.children[place], self.lengths[place]
            trees, starts, _ = neighbours(self.target, children, lengths, self.effort.margin, self.effort.neighbours)
            return trees, starts

        self.expanded.update(places)
        self._add_all(map_threads(work, places, threads), threads)

    def reference(self, drawn: list[Drawn]) -> Reference:
        """Reference trees with weights: half by mass among the best trees, half as pilot runs have drawn and weighed them.

        The former are tempered until at least so many of them count. Mass alone would overrate what the search happened to
        find where the posterior is spread over more topologies than can be listed; draws alone lack what they missed.
        """
        masses = np.array(self.masses)
        top = np.argsort(-masses, kind="stable")[: self.effort.most_trees]
        weights = np.zeros(len(masses))
        weights[top] = tempered(masses[top], min(self.effort.least_effective, len(top) / 2))
        for places, share in drawn:
            weights += np.bincount(places, weights=share, minlength=len(masses)) / len(drawn)
        kept = np.flatnonzero(weights > self.effort.least_share * weights.max())
        chosen = kept.tolist()
        return Reference(
            np.array([self.children[i] for i in chosen]),
            np.array([self.lengths[i] for i in chosen]),
            weights[kept] / weights[kept].sum(),
            masses[kept],
        )

    def _add_all(self, found: list[tuple[Children, Floats]], threads: int) -> None:
        if not found:
            return
        found = [(np.reshape(c, (-1, *self.children[0].shape)), np.reshape(l, (-1, len(self.lengths[0])))) for c, l in found]
        self.add(np.concatenate([c for c, _ in found]), np.concatenate([l for _, l in found]), threads)


def bootstrap_trees(target: SimpleTarget, n_trees: int, rng: np.random.Generator) -> tuple[Children, Floats]:
    """The BIONJ tree of the data, and of n_trees - 1 bootstrap samples of its sites."""
    patterns = target.patterns
    share = patterns.counts / patterns.counts.sum()
    draws = rng.multinomial(int(patterns.counts.sum()), share, size=n_trees).astype(np.float64)
    draws[0] = patterns.counts
    trees = [binary_arrays(bionj(distances(patterns, counts, target.model), patterns.taxa)) for counts in draws]
    return np.array([children for children, _ in trees]), np.array([lengths for _, lengths in trees])
