"""The particles: forests of rooted subtrees that share what they have in common.

A subtree is a vertex in one list for all particles: the taxa first, then K new vertices for every rank. A particle is a row
of vertices, its roots. Partial likelihoods live in a pool of slots that belong to vertices, not to particles: resampling
copies rows of integers, and a slot is free again as soon as no particle has its vertex as a root.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.kernels import merge
from vaiphy.kernels.binary import taxon_keys
from vaiphy.models.jc69 import JC69
from vaiphy.models.replacement import Replacement
from vaiphy.parallel import chunks, map_threads

#: Particles per piece of work; random streams belong to pieces, so results do not depend on the number of threads.
CHUNK = 128


def taxon_hashes(n_taxa: int) -> NDArray[np.uint64]:
    """A random 64-bit hash for every taxon; that of a clade is the exclusive or of its taxa's."""
    return np.ascontiguousarray(taxon_keys(n_taxa)[:n_taxa])


@dataclass
class Forest:
    """K particles of R roots each, and every vertex ever made.

    `children[v]`, `lengths[v]` are the two subtrees below v and the branches to them; `size` counts taxa, `least` is the
    smallest of them, `born` the rank at which v was made, `clade_hash` identifies its set of taxa, and `log_likelihood` is
    log p(data of its taxa | subtree).
    """

    patterns: SitePatterns
    model: Replacement
    roots: NDArray[np.int32]
    children: NDArray[np.int32]
    lengths: NDArray[np.float64]
    size: NDArray[np.int32]
    least: NDArray[np.int32]
    born: NDArray[np.int32]
    clade_hash: NDArray[np.uint64]
    log_likelihood: NDArray[np.float64]
    slot: NDArray[np.int32]
    pool: NDArray[np.float32]
    free: list[int]
    threads: int = 1

    @property
    def n_particles(self) -> int:
        return int(self.roots.shape[0])

    @property
    def n_roots(self) -> int:
        return int(self.roots.shape[1])

    @property
    def n_taxa(self) -> int:
        return self.patterns.n_taxa

    @property
    def rank(self) -> int:
        """Number of mergers so far."""
        return self.n_taxa - self.n_roots


def begin(patterns: SitePatterns, n_particles: int, threads: int = 1, model: Replacement = JC69) -> Forest:
    """All taxa by themselves, in every particle."""
    n = patterns.n_taxa
    n_vertices = n + (n - 1) * n_particles
    # Reserved, not used: memory is taken only as slots are written, and freed slots are written first.
    n_slots = n + n_particles * (n // 2 + 1)
    pool = np.empty((n_slots, 4, patterns.n_patterns), dtype=np.float32)
    pool[:n], leaf_logs = leaves(patterns, model)
    slot = np.full(n_vertices, -1, dtype=np.int32)
    slot[:n] = np.arange(n)
    log_likelihood = np.zeros(n_vertices)
    log_likelihood[:n] = leaf_logs
    clade_hash = np.zeros(n_vertices, dtype=np.uint64)
    clade_hash[:n] = taxon_hashes(n)
    least = np.zeros(n_vertices, dtype=np.int32)
    least[:n] = np.arange(n)
    return Forest(
        patterns=patterns,
        model=model,
        roots=np.tile(np.arange(n, dtype=np.int32), (n_particles, 1)),
        children=np.full((n_vertices, 2), -1, dtype=np.int32),
        lengths=np.zeros((n_vertices, 2)),
        size=np.ones(n_vertices, dtype=np.int32),
        least=least,
        born=np.zeros(n_vertices, dtype=np.int32),
        clade_hash=clade_hash,
        log_likelihood=log_likelihood,
        slot=slot,
        pool=pool,
        free=list(range(n_slots - 1, n - 1, -1)),
        threads=threads,
    )


def leaves(patterns: SitePatterns, model: Replacement = JC69) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Normalised partials of the taxa, (n, 4, P), and their log-likelihoods (the frequency of every base that is known)."""
    chances = (model.pi[:, None] * patterns.tips).sum(axis=1)
    return (patterns.tips / chances[:, None, :]).astype(np.float32), np.log(chances) @ patterns.counts


def new_vertices(forest: Forest) -> slice:
    """The vertices that the next mergers will make, one per particle, in the order of particles."""
    start = forest.n_taxa + forest.rank * forest.n_particles
    return slice(start, start + forest.n_particles)


def newest(forest: Forest) -> slice:
    """The vertices made by the last mergers, in the order of the particles as they were then."""
    stop = new_vertices(forest).start
    return slice(stop - forest.n_particles, stop)


def pair(forest: Forest, first: NDArray[np.int64], second: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The two vertices in the chosen columns of every particle."""
    rows = np.arange(forest.n_particles)
    return forest.roots[rows, first], forest.roots[rows, second]


def members(forest: Forest, vertex: int) -> NDArray[np.bool_]:
    """Which taxa are at or below a vertex, (n,)."""
    found = np.zeros(forest.n_taxa, dtype=bool)
    stack = [vertex]
    while stack:
        top = stack.pop()
        if top < forest.n_taxa:
            found[top] = True
        else:
            stack.extend(forest.children[top].tolist())
    return found


def merge_roots(forest: Forest, first: NDArray[np.int64], second: NDArray[np.int64], lengths: NDArray[np.float64]) -> None:
    """Merge two roots of every particle: one pruning step each.

    The new vertex takes the smaller of the two columns, and the last column moves to the larger.
    """
    made = new_vertices(forest)
    a, b = pair(forest, first, second)
    n_particles, counts = forest.n_particles, forest.patterns.counts
    slots = np.array([forest.free.pop() for _ in range(n_particles)], dtype=np.int32)
    gain = np.empty(n_particles)
    slot_a, slot_b = forest.slot[a], forest.slot[b]

    def work(part: slice) -> None:
        merge.merge_many(
            forest.model, forest.pool, counts, slots[part], slot_a[part], slot_b[part], lengths[part], gain[part],
            np.empty(len(counts)),
        )  # fmt: skip

    map_threads(work, chunks(n_particles, CHUNK), forest.threads)
    forest.children[made, 0], forest.children[made, 1] = a, b
    forest.lengths[made] = lengths
    forest.size[made] = forest.size[a] + forest.size[b]
    forest.least[made] = np.minimum(forest.least[a], forest.least[b])
    forest.born[made] = forest.rank + 1
    forest.clade_hash[made] = forest.clade_hash[a] ^ forest.clade_hash[b]
    forest.log_likelihood[made] = forest.log_likelihood[a] + forest.log_likelihood[b] + gain
    forest.slot[made] = slots
    rows = np.arange(n_particles)
    low, high = np.minimum(first, second), np.maximum(first, second)
    roots = forest.roots.copy()
    roots[rows, low] = np.arange(made.start, made.stop, dtype=np.int32)
    roots[rows, high] = roots[:, -1]
    forest.roots = np.ascontiguousarray(roots[:, :-1])
    release(forest)


def resample(forest: Forest, ancestors: NDArray[np.int64]) -> None:
    """Particle k becomes a copy of particle ancestors[k]; partials are shared, and those nobody needs are freed."""
    forest.roots = forest.roots[ancestors]
    release(forest)


def release(forest: Forest) -> None:
    """Free the slots of all vertices that are no particle's root (the taxa keep theirs)."""
    live = np.zeros(len(forest.slot), dtype=bool)
    live[forest.roots.ravel()] = True
    live[: forest.n_taxa] = True
    dead = np.flatnonzero((forest.slot >= 0) & ~live)
    forest.free.extend(forest.slot[dead].tolist())
    forest.slot[dead] = -1
