"""What a set of weighted trees says about clades: who is whose sister, how often, and what the rest of the data says of it.

A clade is one side of a split. For a rooted target the root may be anywhere, so both sides of every branch are clades, and
given an unrooted tree the root's branch has probability proportional to its length (the likelihood does not see the root;
two Exp branches in place of one give a factor rate * length). For an unrooted target the tree hangs from taxon 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.csmc.forest import leaf_marks
from vaiphy.kernels import outer as messages
from vaiphy.parallel import map_threads


@dataclass(frozen=True, eq=False)
class Reference:
    """Weighted unrooted trees as binary arrays; `scores` (log posterior, up to a constant) rank them."""

    children: NDArray[np.int32]
    lengths: NDArray[np.float64]
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]

    @property
    def n_taxa(self) -> int:
        return int(self.children.shape[1]) + 2


@dataclass(frozen=True, eq=False)
class Guide:
    """Tables by clade (sorted by mark) and by pair of sister clades (CSR by the smaller clade).

    `chance` of a pair: probability that the two are sisters given that both are clades. `key` orders pairs, surest first.
    `outer[c]` with `log_outer[c]` is the message that reaches the top of clade c from the rest of the best tree that has it,
    `length[c]` the branch above c there. `best` is the best tree, whose log-likelihood is `log_best`.
    """

    marks: NDArray[np.uint64]
    start: NDArray[np.int64]
    partner: NDArray[np.int64]
    chance: NDArray[np.float64]
    key: NDArray[np.float64]
    outer: NDArray[np.float32]
    log_outer: NDArray[np.float64]
    length: NDArray[np.float64]
    best_children: NDArray[np.int32]
    best_lengths: NDArray[np.float64]
    log_best: float
    rooted: bool

    def find(self, marks: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Numbers of the clades with these marks, -1 where the guide has not seen them."""
        where = np.minimum(np.searchsorted(self.marks, marks), len(self.marks) - 1)
        return np.where(self.marks[where] == marks, where, -1).astype(np.int32)


def build(patterns: SitePatterns, reference: Reference, rooted: bool, threads: int = 1) -> Guide:
    """The guide of a reference set; `patterns` should be folded (`alignment.fold_states`)."""
    n, n_trees = reference.n_taxa, len(reference.children)
    below, above, inside_below, inside_above, total = _clades(reference)
    sides = [below[:, 1:]] + ([above[:, 1:]] if rooted else [])
    insides = [inside_below[:, 1:]] + ([inside_above[:, 1:]] if rooted else [])
    all_marks, all_inside = np.concatenate(sides, axis=1), np.concatenate(insides, axis=1)
    marks, numbers = np.unique(all_marks, return_inverse=True)
    numbers = numbers.reshape(all_marks.shape)
    outside = np.zeros((len(marks), n_trees), dtype=np.float32)
    present = np.zeros((len(marks), n_trees), dtype=bool)
    trees = np.broadcast_to(np.arange(n_trees)[:, None], numbers.shape)
    present[numbers, trees] = True
    # The share of the tree's length where the root may be, if the clade is one: all that is not inside it.
    outside[numbers, trees] = 1.0 - all_inside / total[:, None] if rooted else 1.0
    start, partner, chance = _sisters(reference, marks, below, above, outside, present, rooted)
    order = np.lexsort((np.arange(len(chance)), -chance))
    key = np.empty(len(chance))
    key[order] = (np.arange(len(chance)) + 0.5) / max(len(chance), 1)

    ranked = np.where(present, reference.scores[None, :], -np.inf)
    chosen = ranked.argmax(axis=1)
    outer, log_outer, length = _outers(patterns, reference, marks, chosen, below, above, rooted, threads)
    best = int(reference.scores.argmax())
    guide = Guide(
        marks, start, partner, chance, key, outer, log_outer, length,
        reference.children[best], reference.lengths[best], 0.0, rooted,
    )  # fmt: skip
    pool, logs, n_vertices = tree_messages(patterns, guide.best_children, guide.best_lengths)
    top = 2 * n - 3
    joint = 0.25 * (send(pool, n_vertices + top, guide.best_lengths[top]) * pool[top]).sum(axis=0, dtype=np.float64)
    object.__setattr__(guide, "log_best", float(logs[top] + logs[0] + np.log(joint) @ patterns.counts))
    return guide


def tree_messages(
    patterns: SitePatterns, children: NDArray[np.int32], lengths: NDArray[np.float64], missing: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.float32], NDArray[np.float64], int]:
    """All messages of a tree (see `kernels.outer.fill_messages`); taxa marked `missing` say nothing."""
    n = len(children) + 2
    n_vertices = 2 * n - 2
    pool = np.empty((2 * n_vertices, 4, patterns.n_patterns), dtype=np.float32)
    logs = np.zeros(2 * n_vertices)
    n_states = patterns.tips.sum(axis=1, keepdims=True)
    pool[:n] = 4.0 * patterns.tips / n_states
    logs[:n] = np.log(0.25 * n_states[:, 0, :]) @ patterns.counts
    if missing is not None:
        pool[:n][missing], logs[:n][missing] = 1.0, 0.0
    messages.fill_messages(children, lengths, patterns.counts, pool, logs, np.empty(patterns.n_patterns))
    return pool, logs, n_vertices


def send(pool: NDArray[np.float32], source: int, length: float) -> NDArray[np.float32]:
    """The message of a pool's entry through a branch, (4, P)."""
    u = np.float32(np.exp(-4.0 / 3.0 * length))
    return (1 - u) + u * pool[source]


def outer_of_unseen(
    patterns: SitePatterns, guide: Guide, members: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], float, float]:
    """Outer message, its log-likelihood and a branch length for a clade that no reference tree has.

    The clade's taxa are taken out of the best tree, and it hangs from the middle of the branch whose split is most like it.
    """
    n = len(members)
    inside = np.zeros((2 * n - 2, n), dtype=bool)
    inside[:n] = np.eye(n, dtype=bool)
    for k, (a, b) in enumerate(guide.best_children.tolist()):
        inside[n + k] = inside[a] | inside[b]
    common = inside @ members.astype(np.int64)
    size, clade = inside.sum(axis=1), int(members.sum())
    same = common / (size + clade - common)
    other = (clade - common) / ((n - size) + common)
    likeness = np.maximum(same, other)
    likeness[0] = -1.0
    branch = int(likeness.argmax())
    pool, logs, n_vertices = tree_messages(patterns, guide.best_children, guide.best_lengths, members)
    half = 0.5 * guide.best_lengths[branch]
    message = send(pool, branch, half) * send(pool, n_vertices + branch, half)
    mean = message.mean(axis=0, dtype=np.float64)
    message /= mean
    log_outer = logs[branch] + logs[n_vertices + branch] + float(np.log(mean) @ patterns.counts)
    return message, log_outer, 0.5 * float(guide.best_lengths[branch]) + 0.01


def _clades(reference: Reference) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray, NDArray, NDArray]:
    """Marks of the taxa below and above the branch of each vertex, the tree length inside each side, and the whole length."""
    n, n_trees = reference.n_taxa, len(reference.children)
    rows = np.arange(n_trees)
    taxa = leaf_marks(n)
    below = np.zeros((n_trees, 2 * n - 2), dtype=np.uint64)
    below[:, :n] = taxa
    inside = np.zeros((n_trees, 2 * n - 2))
    for k in range(n - 2):
        a, b = reference.children[:, k, 0], reference.children[:, k, 1]
        below[:, n + k] = below[rows, a] ^ below[rows, b]
        inside[:, n + k] = inside[rows, a] + inside[rows, b] + reference.lengths[rows, a] + reference.lengths[rows, b]
    everything = np.bitwise_xor.reduce(taxa)
    total = reference.lengths[:, 1:].sum(axis=1)
    return below, below ^ everything, inside, total[:, None] - inside - reference.lengths, total


def _sisters(
    reference: Reference,
    marks: NDArray[np.uint64],
    below: NDArray[np.uint64],
    above: NDArray[np.uint64],
    outside: NDArray[np.float32],
    present: NDArray[np.bool_],
    rooted: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """All pairs of sister clades in CSR form with the chance that they are sisters given that both are clades."""
    n, n_trees = reference.n_taxa, len(reference.children)
    rows = np.arange(n_trees)[:, None]
    vertices = np.arange(n, 2 * n - 2)
    a, b = reference.children[:, :, 0], reference.children[:, :, 1]
    triples = [(below[rows, a], below[rows, b], below[:, vertices])]
    if rooted:
        triples.append((below[rows, a], above[:, vertices], above[rows, b]))
        triples.append((below[rows, b], above[:, vertices], above[rows, a]))
    one, two, union = (np.searchsorted(marks, np.concatenate([t[i] for t in triples], axis=1)) for i in range(3))
    tree = np.broadcast_to(rows, one.shape).ravel()
    small, large, union = np.minimum(one, two).ravel(), np.maximum(one, two).ravel(), union.ravel()
    pairs, number = np.unique(small * len(marks) + large, return_inverse=True)
    together = np.bincount(number, weights=reference.weights[tree] * outside[union, tree], minlength=len(pairs))
    small, large = pairs // len(marks), pairs % len(marks)
    both = np.empty(len(pairs))
    for block in range(0, len(pairs), 4096):
        s, l = small[block : block + 4096], large[block : block + 4096]
        possible = np.where(present[s] & present[l], outside[s] + outside[l] - 1.0, 0.0)
        both[block : block + 4096] = possible @ reference.weights
    start = np.searchsorted(small, np.arange(len(marks) + 1))
    return start, large, np.clip(together / np.maximum(both, 1e-300), 0.0, 1.0)


def _outers(
    patterns: SitePatterns,
    reference: Reference,
    marks: NDArray[np.uint64],
    chosen: NDArray[np.int64],
    below: NDArray[np.uint64],
    above: NDArray[np.uint64],
    rooted: bool,
    threads: int,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    """Outer message, log-likelihood and branch length of every clade, from the tree `chosen` for it."""
    n = reference.n_taxa
    outer = np.empty((len(marks), 4, patterns.n_patterns), dtype=np.float32)
    log_outer, length = np.empty(len(marks)), np.empty(len(marks))
    needed = np.unique(chosen)

    def work(tree: int) -> None:
        pool, logs, n_vertices = tree_messages(patterns, reference.children[tree], reference.lengths[tree])
        for source, side in ((n_vertices, below), (0, above)):
            if side is above and not rooted:
                continue
            numbers = np.searchsorted(marks, side[tree, 1:])
            for vertex in (np.flatnonzero(chosen[numbers] == tree) + 1).tolist():
                c = int(numbers[vertex - 1])
                length[c] = reference.lengths[tree, vertex]
                log_outer[c] = logs[source + vertex]
                messages.send(pool, source + vertex, length[c], outer, c)

    map_threads(work, needed.tolist(), threads)
    assert n == patterns.n_taxa
    return outer, log_outer, length
