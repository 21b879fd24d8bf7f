"""Which trees are allowed: those that have required splits and lack forbidden ones; how many they are.

A split is named by the taxa (numbers) of one side. Required splits may be about some of the taxa only (`bound`): a tree obeys if
it has them once the other taxa are taken off. The prior of topologies is uniform over the trees that obey, so its logarithm is
minus the logarithm of their number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from vaiphy.errors import InputError
from vaiphy.kernels.binary import taxon_keys
from vaiphy.kernels.constraints import BITS, FIELD, Rules

Clade = frozenset[int]
#: More forbidden splits than this are not counted: the terms of inclusion and exclusion double with each.
MOST_FORBIDDEN = 12
#: Clades, or names of one clade, that are listed in words.
SHOWN = 6


@dataclass(frozen=True)
class Constraint:
    """Required and forbidden splits of n_taxa taxa, each by its side without the taxon 0; see `constrained` to make one.

    `bound`: the taxa that the required splits are about, taxon 0 among them.
    """

    n_taxa: int
    required: tuple[Clade, ...] = ()
    forbidden: tuple[Clade, ...] = ()
    bound: Clade = frozenset()

    @property
    def is_partial(self) -> bool:
        return len(self.bound) < self.n_taxa

    @cached_property
    def n_trees(self) -> int:
        """Number of unrooted binary trees that obey."""
        total = 0
        for size in range(len(self.forbidden) + 1):
            for chosen in combinations(self.forbidden, size):
                total += (-1) ** size * count_with(self.n_taxa, {*self.required, *chosen}, self.bound)
        return total

    @cached_property
    def rules(self) -> Rules:
        """The same as arrays for the kernels."""
        forbidden = np.array([identity(clade, self.n_taxa) for clade in self.forbidden], dtype=np.uint64)
        if not self.required:
            none = np.zeros(0, dtype=np.int64)
            return Rules(none, none, np.ones(self.n_taxa, dtype=np.int64), forbidden)
        nodes = _nodes(self.required, self.bound)
        above = [0] * len(nodes)
        leaf = [1] * self.n_taxa  # a free taxon
        for k, clade in enumerate(nodes):
            above[k] = max((j for j in range(k) if clade < nodes[j]), default=0)
            for taxon in clade:  # larger nodes come first: the last one is the smallest
                leaf[taxon] = 1 | 1 << BITS | 1 << (2 * BITS) | k << (3 * BITS)
        blocks = [sum(leaf[taxon] >> (3 * BITS) == k for taxon in clade) for k, clade in enumerate(nodes)]
        for k in range(1, len(nodes)):
            blocks[above[k]] += 1
        one, two, three = (np.array(row, dtype=np.int64) for row in (blocks, above, leaf))
        return Rules(one, two, three, forbidden)

    def words(self, taxa: Sequence[str]) -> str:
        """Which trees are allowed and how many they are, in plain words."""
        rules = [f"have the clade {short_list(c, self.bound, taxa)}" for c in self.required[:SHOWN]]
        if len(self.required) > SHOWN:
            rules.append(f"have {len(self.required) - SHOWN} more clades of the constraint tree")
        rules += [f"do not have the clade {short_list(c, frozenset(range(self.n_taxa)), taxa)}" for c in self.forbidden]
        but = " once all other taxa are taken off" if self.is_partial else ""
        free = f"; {self.n_taxa - len(self.bound)} taxa may be anywhere" if self.is_partial else ""
        numbers = f"{_number(self.n_trees)} of the {_number(n_unrooted(self.n_taxa))} unrooted binary trees"
        return f"Topologies: equally likely are those {numbers} that {' and '.join(rules)}{but}{free}."


def constrained(
    n_taxa: int, required: Iterable[Iterable[int]], forbidden: Iterable[Iterable[int]] = (), bound: Iterable[int] | None = None
) -> Constraint:
    """The constraint with these splits, each given by either of its sides; taxon 0 must be among those that are `bound`.

    Raises `InputError` if no tree obeys.
    """
    everything = frozenset(range(n_taxa))
    of = everything if bound is None else frozenset(bound)
    if n_taxa > FIELD:
        raise InputError(f"constraints are for at most {FIELD:,} taxa; the alignment has {n_taxa:,}")
    wanted = tuple(dict.fromkeys(_side(frozenset(clade), of) for clade in required))
    barred = tuple(dict.fromkeys(_side(frozenset(clade), everything) for clade in forbidden))
    if len(barred) > MOST_FORBIDDEN:
        raise InputError(f"at most {MOST_FORBIDDEN} splits can be forbidden at once, not {len(barred)}")
    found = Constraint(n_taxa, wanted, barred, of)
    if found.n_trees == 0:
        raise InputError("no tree obeys the constraints: they leave none of all unrooted binary trees")
    return found


def conflict(clades: Sequence[Clade], of: Clade) -> tuple[int, int] | None:
    """Two splits (their places in the list) that no tree has together; None if there are none."""
    sides = [_side(clade, of) for clade in clades]
    for i, j in combinations(range(len(sides)), 2):
        if not _nested(sides[i], sides[j]):
            return i, j
    return None


def count_with(n_taxa: int, clades: set[Clade], bound: Clade) -> int:
    """Number of unrooted binary trees that have all of these splits (by their sides without taxon 0), 0 if they conflict."""
    if any(not _nested(a, b) for a, b in combinations(clades, 2)):
        return 0
    nodes = _nodes(clades, bound)
    total = 1
    for k, clade in enumerate(nodes):
        below = [c for c in nodes[k + 1 :] if c < clade]
        right_below = [c for c in below if not any(c < other for other in below)]
        total *= n_rooted(len(clade) - sum(map(len, right_below)) + len(right_below))
    # Each taxon more may be added to any of the 2k - 3 branches of a tree of k taxa.
    return total * prod(range(2 * len(bound) - 3, 2 * n_taxa - 4, 2))


def n_rooted(n_leaves: int) -> int:
    """Number of rooted binary trees, (2n - 3)!!."""
    return prod(range(1, 2 * n_leaves - 2, 2))


def n_unrooted(n_taxa: int) -> int:
    """Number of unrooted binary trees, (2n - 5)!!."""
    return n_rooted(n_taxa - 1)


def identity(clade: Clade, n_taxa: int) -> int:
    """The 64-bit identity by which the kernels know a clade without taxon 0."""
    keys = taxon_keys(n_taxa)
    return int(np.bitwise_xor.reduce(keys[sorted(clade)]))


def short_list(clade: Clade, of: Clade, taxa: Sequence[str]) -> str:
    """The smaller side of a split by its names, at most six of them."""
    side = min(clade, of - clade, key=lambda c: (len(c), sorted(c)))
    names = [taxa[t] for t in sorted(side)]
    return "{" + ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "") + "}"


def _number(n: int) -> str:
    return f"{n:,}" if n < 10**12 else f"{n // 10 ** (digits := len(str(n)) - 3) / 100:.2f}e{digits + 2}"


def _side(clade: Clade, of: Clade) -> Clade:
    return of - clade if min(of) in clade else clade


def _nested(a: Clade, b: Clade) -> bool:
    return a <= b or b <= a or not a & b


def _nodes(clades: Iterable[Clade], bound: Clade) -> list[Clade]:
    """All bound taxa but taxon 0, then the splits, larger ones first."""
    whole = bound - {0}
    return [whole, *sorted((c for c in set(clades) if c != whole), key=lambda c: (-len(c), sorted(c)))]
