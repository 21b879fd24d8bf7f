"""What is odd about a valid alignment, told as warnings."""

import re

import numpy as np
from numpy.typing import NDArray

from vaiphy.alphabets import Alphabet


def remarks(taxa: tuple[str, ...], sites: NDArray, alphabet: Alphabet) -> list[str]:
    """What is odd about a valid alignment: identical sequences, columns without data, names that Newick must quote."""
    found, groups = [], dict[bytes, list[str]]()
    for taxon, row in zip(taxa, sites):
        groups.setdefault(row.tobytes(), []).append(taxon)
    found += [f"identical sequences: {_listed(group)}" for group in groups.values() if len(group) > 1]
    empty = np.flatnonzero((sites == alphabet.everything).all(axis=0))
    if len(empty):
        columns = _listed([str(column + 1) for column in empty], 8)
        found.append(f"{len(empty)} column{'s' if len(empty) > 1 else ''} without data in any taxon: {columns}")
    if quoted := [taxon for taxon in taxa if re.search(r"[\s()\[\]{}:;,'\"=]", taxon)]:
        found.append(f"names that Newick needs in quotes: {_listed(quoted)}")
    return found


def _listed(items: list[str], at_most: int = 6) -> str:
    return ", ".join(items[:at_most]) + (f" and {len(items) - at_most} more" if len(items) > at_most else "")
