"""What was seen of a proposal's splits, counted, and the tables that kernels look them up in."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clades

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Splits(NamedTuple):
    """Distinct (place, split) pairs, sorted by place: counts of the split and of its place, and running probabilities."""

    head: NDArray[np.uint64]
    split: NDArray[np.uint64]
    sets: NDArray[np.uint64]
    seen: Floats
    total: Floats
    cumulative: Floats


def splits_of(split: NDArray, head: NDArray, sets: NDArray, weights: Floats) -> Splits:
    """Splits seen at each place (`head`), counted by `weights`; `sets`: the taxa of one part of each split."""
    joint = np.empty(len(split), dtype=np.uint64)
    clades.joint_identities(head, split, joint)
    _, first, which = np.unique(joint, return_index=True, return_inverse=True)
    count = np.bincount(which.ravel(), weights=weights).astype(np.float64)
    order = np.argsort(head[first], kind="stable")
    first, count = first[order], count[order]
    _, begins, sizes = np.unique(head[first], return_index=True, return_counts=True)
    total = np.repeat(np.add.reduceat(count, begins), sizes)
    cumulative = np.cumsum(count / total)
    cumulative -= np.repeat(np.concatenate([[0.0], cumulative[begins[1:] - 1]]), sizes)
    return Splits(head[first], split[first], sets[first], count, total, cumulative)


def values_of(split: NDArray, values: Floats, wanted: NDArray) -> Floats:
    """The value of each of the wanted splits."""
    names, first = np.unique(split, return_index=True)
    return values[first][np.searchsorted(names, wanted)]


def placed(keys: NDArray) -> tuple[NDArray, Ints]:
    """An open-addressing table at most half full, and where each key went."""
    size = 4
    while size < 2 * len(keys):
        size *= 2
    table, place = np.zeros(size, dtype=np.uint64), np.empty(len(keys), dtype=np.int64)
    clades.place_all(np.ascontiguousarray(keys), table, place)
    return table, place
