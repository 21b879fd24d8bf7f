"""Which constraints a run has, from its arguments."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vaiphy.alignment import Alignment
from vaiphy.formats.constraints import Wanted, wanted
from vaiphy.trees.constraints import Clade

ConstraintTree = str | Path | Wanted | None
Clades = Sequence[str | Sequence[str]]


def wanted_of(data: Alignment, tree: ConstraintTree, monophyletic: Clades, not_monophyletic: Clades) -> Wanted | None:
    """What is asked for, of an alignment as it was read. Clades are lists of names, or one string with commas between."""
    if isinstance(tree, Wanted):
        return tree
    return wanted(data.taxa, tree, map(_names, monophyletic), map(_names, not_monophyletic))


def arranged(data: Alignment, want: Wanted | None) -> tuple[Alignment, Wanted | None]:
    """The alignment with its taxa in an order that the constraint can be used with, and the constraint in that order.

    Trees are rooted at the first taxon inside the sampler, and the required splits must be about it. If a constraint tree of
    some of the taxa is not, the first taxon that it has comes first.
    """
    if want is None or 0 in want.bound:
        return data, want
    first = min(want.bound)
    order = [first, *(t for t in range(data.n_taxa) if t != first)]
    place = {t: k for k, t in enumerate(order)}

    def moved(clade: Clade) -> Clade:
        return frozenset(place[t] for t in clade)

    now = Wanted(tuple(map(moved, want.required)), tuple(map(moved, want.forbidden)), moved(want.bound))
    return replace(data, taxa=tuple(data.taxa[t] for t in order), sites=data.sites[np.array(order)]), now


def _names(clade: str | Sequence[str]) -> Sequence[str]:
    words = clade.split(",") if isinstance(clade, str) else clade
    return [word.strip() for word in words if word.strip()]
