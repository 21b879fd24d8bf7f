"""What weighted trees say about clades: which are sisters, how often, and what the rest of the data says of each.

A clade is one side of a split. For a rooted target the root may be anywhere, so both sides of every branch are clades; given an
unrooted tree, the root's branch has probability proportional to its length (the likelihood does not see the root, and two Exp
branches in place of one give a factor rate * length). For an unrooted target the tree hangs from taxon 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.csmc.forest import leaves, taxon_hashes
from vaiphy.csmc.targets import Target
from vaiphy.kernels import outer as messages
from vaiphy.models.replacement import Replacement
from vaiphy.parallel import map_threads

Leaves = tuple[NDArray[np.float32], NDArray[np.float64]]


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
    """Tables by clade (sorted by hash) and by pair of sister clades (CSR by the smaller clade).

    `chance` of a pair: probability that the two meet at one vertex given that both are clades (for a rooted target: if the
    root is not between them). `key` orders pairs, surest first. `outer[c]` with `log_outer[c]` is the message that reaches the
    top of clade c from the rest of the best tree that has it, `length[c]` the branch above c and `inside[c]` the tree length
    within c there. The best tree of all has length `total` and log-likelihood `log_best`.
    """

    hashes: NDArray[np.uint64]
    start: NDArray[np.int64]
    partner: NDArray[np.int64]
    chance: NDArray[np.float64]
    key: NDArray[np.float64]
    outer: NDArray[np.float32]
    log_outer: NDArray[np.float64]
    length: NDArray[np.float64]
    inside: NDArray[np.float64]
    best_children: NDArray[np.int32]
    best_lengths: NDArray[np.float64]
    log_best: float
    total: float
    rooted: bool

    def find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Numbers of the clades with these hashes, -1 where the guide has not seen them."""
        where = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        return np.where(self.hashes[where] == hashes, where, -1).astype(np.int32)


def build(patterns: SitePatterns, reference: Reference, target: Target, threads: int = 1) -> Guide:
    """The guide of a reference set."""
    patterns, model, rooted = target.data(patterns), target.model, target.rooted
    n, n_trees = reference.n_taxa, len(reference.children)
    sides = _clades(reference)
    used = (sides.below, sides.above) if rooted else (sides.below,)
    hashes, first, numbers = np.unique(
        np.concatenate([side[:, 1:] for side in used], axis=1), return_index=True, return_inverse=True
    )
    numbers = numbers.reshape(n_trees, -1)
    present = np.zeros((len(hashes), n_trees), dtype=bool)
    present[numbers, np.broadcast_to(np.arange(n_trees)[:, None], numbers.shape)] = True
    start, partner, chance, union = _sisters(reference, hashes, sides, present, rooted)
    sizes = np.concatenate([sides.size[:, 1:], n - sides.size[:, 1:]], axis=1)[:, : numbers.shape[1]].ravel()[first]
    # Surest first; among equals small clades first, so that the root is decided late.
    order = np.lexsort((np.arange(len(chance)), sizes[union], -np.round(chance, 6)))
    key = np.empty(len(chance))
    key[order] = (np.arange(len(chance)) + 0.5) / max(len(chance), 1)
    chosen = np.where(present, reference.scores[None, :], -np.inf).argmax(axis=1)
    best = int(reference.scores.argmax())
    tips = leaves(patterns, model)
    tree, lengths = reference.children[best], reference.lengths[best]
    outers = _outers(model, tips, patterns.counts, reference, hashes, chosen, sides, rooted, threads)
    return Guide(
        hashes, start, partner, chance, key, *outers,
        tree, lengths, _log_likelihood(model, tips, patterns.counts, tree, lengths), float(sides.total[best]), rooted,
    )  # fmt: skip


def _log_likelihood(
    model: Replacement, tips: Leaves, counts: NDArray[np.float64], children: NDArray[np.int32], lengths: NDArray[np.float64]
) -> float:
    pool, logs, n_vertices = tree_messages(model, tips, counts, children, lengths)
    top = n_vertices - 1
    joint = (model.pi[:, None] * (send(model, pool, n_vertices + top, lengths[top]) * pool[top])).sum(axis=0)
    return float(logs[top] + logs[0] + np.log(joint) @ counts)


def tree_messages(
    model: Replacement,
    tips: Leaves,
    counts: NDArray[np.float64],
    children: NDArray[np.int32],
    lengths: NDArray[np.float64],
    missing: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float64], int]:
    """All messages of a tree (see `kernels.outer.fill_messages`); taxa marked `missing` say nothing."""
    n = len(children) + 2
    n_vertices = 2 * n - 2
    pool = np.empty((2 * n_vertices, 4, len(counts)), dtype=np.float32)
    logs = np.zeros(2 * n_vertices)
    pool[:n], logs[:n] = tips
    if missing is not None:
        pool[:n][missing], logs[:n][missing] = 1.0, 0.0
    messages.fill_messages(model, children, lengths, counts, pool, logs, np.empty(len(counts)))
    return pool, logs, n_vertices


def send(model: Replacement, pool: NDArray[np.float32], source: int, length: float) -> NDArray[np.float32]:
    """The message of a pool's entry through a branch, (4, P)."""
    u = np.float32(np.exp(-model.beta * length))
    return (1 - u) + u * pool[source]


def outer_of_unseen(
    model: Replacement, tips: Leaves, counts: NDArray[np.float64], guide: Guide, members: NDArray[np.bool_]
) -> tuple[NDArray[np.float32], float, float]:
    """Outer message, its log-likelihood and a branch length for a clade that no reference tree has.

    The clade's taxa are taken out of the best tree, and it hangs from the middle of the branch whose split is most like it.
    """
    n = len(members)
    n_common, n_below = members.astype(np.int64).tolist(), [1] * n
    for a, b in guide.best_children.tolist():
        n_common.append(n_common[a] + n_common[b])
        n_below.append(n_below[a] + n_below[b])
    common, size, clade = np.array(n_common), np.array(n_below), int(members.sum())
    same = common / (size + clade - common)
    other = (clade - common) / ((n - size) + common)
    likeness = np.maximum(same, other)
    likeness[0] = -1.0
    branch = int(likeness.argmax())
    pool, logs, n_vertices = tree_messages(model, tips, counts, guide.best_children, guide.best_lengths, members)
    half = 0.5 * guide.best_lengths[branch]
    message = send(model, pool, branch, half) * send(model, pool, n_vertices + branch, half)
    mean = (model.pi[:, None] * message).sum(axis=0)
    message /= mean
    log_outer = logs[branch] + logs[n_vertices + branch] + float(np.log(mean) @ counts)
    return message, log_outer, 0.5 * float(guide.best_lengths[branch]) + 0.01


@dataclass(frozen=True, eq=False)
class _Sides:
    """Both sides of the branch above each vertex of each tree: hashes, tree length inside, taxa below; whole lengths."""

    below: NDArray[np.uint64]
    above: NDArray[np.uint64]
    inside_below: NDArray[np.float64]
    inside_above: NDArray[np.float64]
    size: NDArray[np.int64]
    total: NDArray[np.float64]


def _clades(reference: Reference) -> _Sides:
    n, n_trees = reference.n_taxa, len(reference.children)
    rows = np.arange(n_trees)
    taxa = taxon_hashes(n)
    below = np.zeros((n_trees, 2 * n - 2), dtype=np.uint64)
    below[:, :n] = taxa
    inside = np.zeros((n_trees, 2 * n - 2))
    size = np.ones((n_trees, 2 * n - 2), dtype=np.int64)
    for k in range(n - 2):
        a, b = reference.children[:, k, 0], reference.children[:, k, 1]
        below[:, n + k] = below[rows, a] ^ below[rows, b]
        inside[:, n + k] = inside[rows, a] + inside[rows, b] + reference.lengths[rows, a] + reference.lengths[rows, b]
        size[:, n + k] = size[rows, a] + size[rows, b]
    everything = np.bitwise_xor.reduce(taxa)
    total = reference.lengths[:, 1:].sum(axis=1)
    return _Sides(below, below ^ everything, inside, total[:, None] - inside - reference.lengths, size, total)


def _sisters(
    reference: Reference, hashes: NDArray[np.uint64], sides: _Sides, present: NDArray[np.bool_], rooted: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """All pairs of clades that meet at a vertex, in CSR form, with the chance that they do given both, and their union."""
    n, n_trees = reference.n_taxa, len(reference.children)
    rows = np.arange(n_trees)[:, None]
    vertices = np.arange(n, 2 * n - 2)
    a, b = reference.children[:, :, 0], reference.children[:, :, 1]
    below, above = sides.below, sides.above
    triples = [(below[rows, a], below[rows, b], below[:, vertices])]
    if rooted:
        triples.append((below[rows, a], above[:, vertices], above[rows, b]))
        triples.append((below[rows, b], above[:, vertices], above[rows, a]))
    one, two, union = (np.searchsorted(hashes, np.concatenate([t[i] for t in triples], axis=1)) for i in range(3))
    tree = np.broadcast_to(rows, one.shape).ravel()
    small, large = np.minimum(one, two).ravel(), np.maximum(one, two).ravel()
    pairs, first, number = np.unique(small * len(hashes) + large, return_index=True, return_inverse=True)
    together = np.bincount(number.ravel(), weights=reference.weights[tree], minlength=len(pairs))
    small, large = pairs // len(hashes), pairs % len(hashes)
    both = np.empty(len(pairs))
    for block in range(0, len(pairs), 4096):
        part = slice(block, block + 4096)
        both[part] = (present[small[part]] & present[large[part]]) @ reference.weights
    start = np.searchsorted(small, np.arange(len(hashes) + 1))
    return start, large, np.clip(together / np.maximum(both, 1e-300), 0.0, 1.0), union.ravel()[first]


def _outers(
    model: Replacement,
    tips: Leaves,
    counts: NDArray[np.float64],
    reference: Reference,
    hashes: NDArray[np.uint64],
    chosen: NDArray[np.int64],
    sides: _Sides,
    rooted: bool,
    threads: int,
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Outer message, its log-likelihood, branch length and length inside of every clade, from the tree `chosen` for it."""
    outer = np.empty((len(hashes), 4, len(counts)), dtype=np.float32)
    log_outer, length, inside = np.empty(len(hashes)), np.empty(len(hashes)), np.empty(len(hashes))
    needed = np.unique(chosen)

    def work(tree: int) -> None:
        pool, logs, n_vertices = tree_messages(model, tips, counts, reference.children[tree], reference.lengths[tree])
        directions = [(n_vertices, sides.below, sides.inside_below), (0, sides.above, sides.inside_above)]
        for source, side, within in directions if rooted else directions[:1]:
            numbers = np.searchsorted(hashes, side[tree, 1:])
            for vertex in (np.flatnonzero(chosen[numbers] == tree) + 1).tolist():
                c = int(numbers[vertex - 1])
                length[c], inside[c] = reference.lengths[tree, vertex], within[tree, vertex]
                log_outer[c] = logs[source + vertex]
                messages.send(model, pool, source + vertex, length[c], outer, c)

    map_threads(work, needed.tolist(), threads)
    return outer, log_outer, length, inside
