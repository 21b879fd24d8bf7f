"""Finding the topologies that matter: many starting trees, hill climbing, and the neighbourhoods of good trees.

Everything found is kept in an `Archive` with its mass (an estimate of log p(X | topology), `branches.gamma`): trees are judged by mass, not
by the height of their peak. Neighbourhoods are those of subtree pruning and regrafting, screened lazily by `kernels.neighbourhood`.
"""

from dataclasses import dataclass, field

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
#: Length of a branch whose split was never met.
NEW_LENGTH = 0.02
#: Neighbours of one tree that are fitted in full, at most.
NEIGHBOURS_KEPT = 300


@dataclass(frozen=True)
class Problem:
    """The data as the search sees them: patterns (folded, see `alignment.fold_states`) and the rate of the Exp prior."""

    patterns: SitePatterns
    rate: float

    @property
    def n_taxa(self) -> int:
        return self.patterns.n_taxa


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
        """Places of the given topologies; those not met before are fitted (from `lengths`, or from what is known of their splits)."""
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
            "children": np.array(self.children, dtype=np.int32).reshape(-1, n - 2, 2).astype(np.uint16 if n < 30000 else np.int32),
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
    moves, scores, spans = _screen(problem, children, lengths, margin)
    best = np.argsort(-scores, kind="stable")[: 4 * most]
    trees, starts = _moved(children, lengths, moves[best], spans[best])
    first = _first_of_each(trees)[:most]
    return trees[first], starts[first], scores[best][first]


def climb(problem: Problem, children: Children, lengths: Floats) -> tuple[Children, Floats]:
    """Climb by regrafting until no neighbour has more mass; each step makes all promising moves that do not touch each other."""
    law = gamma.fit(children[None], lengths[None], problem.patterns, problem.rate)
    lengths, mass = law.modes[0], law.masses[0]
    while True:
        moves, scores, spans = _screen(problem, children, lengths, CLIMB_MARGIN)
        best = np.argsort(-scores, kind="stable")
        likely = best[: 4 * CLIMB_CANDIDATES]
        candidates, starts = _moved(children, lengths, moves[likely], spans[likely])
        first = _first_of_each(candidates)[:CLIMB_CANDIDATES]
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


def expand(archive: Archive, place: int, margin: float, threads: int = 1) -> None:
    """Take the neighbourhood of an archived tree into the archive."""
    archive.expanded.add(place)
    children = archive.children[place]
    law = archive.fitted(children[None])
    trees, spans, _ = neighbours(archive.problem, children, law.modes[0], margin, NEIGHBOURS_KEPT)
    if len(trees):
        archive.add(trees, spans, threads)


def _first_of_each(children: Children) -> NDArray[np.int64]:
    """Where each distinct topology stands first, ascending."""
    return np.sort(np.unique(topology_hashes(children), return_index=True)[1])


def _screen(problem: Problem, children: Children, lengths: Floats, margin: float) -> tuple[NDArray[np.int32], Floats, Floats]:
    n = problem.n_taxa
    most = 4 * (2 * n - 3) * (2 * n - 3)
    moves, scores, spans = np.empty((most, 4), dtype=np.int32), np.empty(most), np.empty((most, 3))
    patterns = problem.patterns
    kept = neighbourhood.screen(
        children, lengths, patterns.tips, patterns.counts, 0.75 * problem.rate, U_LOW, U_HIGH, margin, most, moves, scores, spans
    )
    return moves[:kept], scores[:kept], spans[:kept]


def _moved(
    children: Children, lengths: Floats, moves: NDArray[np.int32], spans: Floats
) -> tuple[Children, Floats]:
    trees = np.empty((len(moves), *children.shape), dtype=np.int32)
    starts = np.zeros((len(moves), len(lengths)))
    binary.apply_moves(children, lengths, moves, spans, trees, starts)
    return trees, starts
