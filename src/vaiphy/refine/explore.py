"""Finding the topologies that matter: many starting trees, and the neighbourhoods of good trees.

Everything found is kept in an `Archive` with its mass (an estimate of log p(X | topology), `branches.gamma`): trees are
judged by mass, not by the height of their peak.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vaiphy.branches import gamma
from vaiphy.rearrange import Children, Floats, Problem, topology_hashes
from vaiphy.search import bootstrap_tree, neighbours
from vaiphy.simulate import random_tree
from vaiphy.treesample import binary_arrays

#: Kinds of starting trees.
KINDS = ("bionj", "bootstrap", "random", "vaiphy", "csmc")
#: Length of a branch whose split was never met.
NEW_LENGTH = 0.02
#: Neighbours of one tree that are fitted in full, at most.
NEIGHBOURS_KEPT = 300


@dataclass
class Archive:
    """All topologies met so far, in order of discovery, with their masses.

    `place` finds a topology by its hash; `split_length` remembers the last mode seen of each split's branch, where the next
    optimisation starts; `expanded` are the trees whose neighbourhood has been taken in.
    """

    problem: Problem
    children: list[Children] = field(default_factory=list)
    masses: list[float] = field(default_factory=list)
    place: dict[int, int] = field(default_factory=dict)
    split_length: dict[int, float] = field(default_factory=dict)
    expanded: set[int] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.children)

    def add(self, children: Children, lengths: Floats | None = None, threads: int = 1) -> NDArray[np.int64]:
        """Places of the given topologies; new ones are fitted (from `lengths`, or from what is known of their splits)."""
        hashes = topology_hashes(children).tolist()
        new: dict[int, int] = {}
        for i, key in enumerate(hashes):
            if key not in self.place:
                new.setdefault(key, i)
        if new:
            rows = list(new.values())
            fresh = np.ascontiguousarray(children[rows])
            law = gamma.fit(
                fresh,
                self.known_lengths(fresh) if lengths is None else lengths[rows],
                self.problem.patterns,
                self.problem.rate,
                threads,
            )
            self._remember(fresh, law.modes)
            for key, tree, mass in zip(new, fresh, law.masses.tolist()):
                self.place[key] = len(self.children)
                self.children.append(tree)
                self.masses.append(mass)
        return np.array([self.place[key] for key in hashes], dtype=np.int64)

    def known_lengths(self, children: Children) -> Floats:
        """Lengths to start from: for each branch the last mode seen of its split."""
        known = self.split_length.get
        return np.array([[known(key, NEW_LENGTH) for key in row] for row in gamma.splits_of(children).tolist()])

    def fitted(self, children: Children, threads: int = 1) -> gamma.GammaFit:
        """Branch laws of the given topologies, starting from what is known of their splits; nothing is remembered."""
        return gamma.fit(children, self.known_lengths(children), self.problem.patterns, self.problem.rate, threads)

    def stack(self, places: NDArray[np.int64]) -> Children:
        """The topologies at the given places, as one array."""
        n = self.problem.n_taxa
        return np.array([self.children[i] for i in places.tolist()], dtype=np.int32).reshape(-1, n - 2, 2)

    def _remember(self, children: Children, modes: Floats) -> None:
        for keys, lengths in zip(gamma.splits_of(children).tolist(), modes.tolist()):
            self.split_length.update(zip(keys, lengths))

    def to_arrays(self) -> dict[str, NDArray]:
        n = self.problem.n_taxa
        return {
            "children": np.array(self.children, dtype=np.int32)
            .reshape(-1, n - 2, 2)
            .astype(np.uint16 if n < 30000 else np.int32),
            "masses": np.array(self.masses),
            "split_keys": np.array(list(self.split_length.keys()), dtype=np.uint64),
            "split_lengths": np.array(list(self.split_length.values())),
            "expanded": np.array(sorted(self.expanded), dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, problem: Problem, arrays: dict[str, NDArray]) -> "Archive":
        children = arrays["children"].astype(np.int32)
        hashes = topology_hashes(children).tolist()
        return cls(
            problem,
            list(children),
            arrays["masses"].tolist(),
            {key: i for i, key in enumerate(hashes)},
            dict(zip(arrays["split_keys"].tolist(), arrays["split_lengths"].tolist())),
            set(arrays["expanded"].tolist()),
        )


def starting_tree(problem: Problem, kind: str, rng: np.random.Generator, threads: int = 1) -> tuple[Children, Floats]:
    """A tree to climb from.

    "bionj": that of the data; "bootstrap": the BIONJ tree of resampled sites; "random": any topology, all equally likely;
    "vaiphy": a draw of the tree law of a short VaiPhy fit, resolved to a binary tree; "csmc": a particle of combinatorial
    SMC.
    """
    patterns = problem.patterns
    if kind == "bionj":
        return bootstrap_tree(problem, None)
    if kind == "bootstrap":
        return bootstrap_tree(problem, rng)
    if kind == "random":
        return binary_arrays(random_tree(patterns.taxa, rng, problem.rate))
    # Heavy modules, compiled on first use: loaded only where asked for.
    if kind == "vaiphy":
        from vaiphy import vi

        fit = vi.fit(patterns, initial="bootstrap", iterations=20, prior_rate=problem.rate, rng=rng, threads=threads)
        drawn = fit.sample_binary(1, rng, threads)
        return drawn.children[0], drawn.lengths[0]
    if kind == "csmc":
        from vaiphy import csmc

        trees = csmc.starting_topologies(patterns, 1, rng, prior_rate=problem.rate, threads=threads)
        return trees[0], np.full(2 * problem.n_taxa - 2, NEW_LENGTH)
    raise ValueError(f"unknown kind of starting tree {kind!r}; known: {', '.join(KINDS)}")


def expand(archive: Archive, place: int, margin: float, threads: int = 1) -> None:
    """Take the neighbourhood of an archived tree into the archive."""
    archive.expanded.add(place)
    children = archive.children[place]
    law = archive.fitted(children[None])
    trees, spans, _ = neighbours(archive.problem, children, law.modes[0], margin, NEIGHBOURS_KEPT)
    if len(trees):
        archive.add(trees, spans, threads)
