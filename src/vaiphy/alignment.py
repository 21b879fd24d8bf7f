"""Alignments of nucleotides, and their compression to site patterns.

A nucleotide is a set of possible bases as four bits: A = 1, C = 2, G = 4, T = 8; an IUPAC code is a union, and
15 (anything) stands for gaps and missing data, as in every likelihood program.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from vaiphy.errors import InputError

A, C, G, T = 1, 2, 4, 8
MISSING = 15

#: IUPAC letter -> bit set; gaps and unknowns are MISSING.
IUPAC = {
    "A": 1, "C": 2, "G": 4, "T": 8, "U": 8,
    "M": 3, "R": 5, "W": 9, "S": 6, "Y": 10, "K": 12,
    "V": 7, "H": 11, "D": 13, "B": 14,
    "N": 15, "X": 15, "O": 15, "?": 15, "-": 15,
}  # fmt: skip

#: Bit set -> letter; index 0 stands for nothing.
LETTERS = " ACMGRSVTWYHKDB-"
#: Byte -> bit set, either case; 0 where the byte is no nucleotide code.
_CODES = np.zeros(256, dtype=np.uint8)
for _letter, _bits in IUPAC.items():
    _CODES[[ord(_letter), ord(_letter.lower())]] = _bits


class AlignmentError(InputError):
    """The text is no usable alignment; `problems` lists everything found, each with its place."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned sequences: `sites[i, j]` is the bit set of taxon i at site j (uint8)."""

    taxa: tuple[str, ...]
    sites: NDArray[np.uint8]
    source: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_sites(self) -> int:
        return int(self.sites.shape[1])


@dataclass(frozen=True, eq=False)
class SitePatterns:
    """Distinct columns of an alignment with their counts.

    `codes[i, p]` is the bit set of taxon i in pattern p, `counts[p]` how often the pattern occurs, `site_pattern[j]`
    the pattern of site j (so that results per pattern can be spread back over sites).
    """

    taxa: tuple[str, ...]
    codes: NDArray[np.uint8]
    counts: NDArray[np.float64]
    site_pattern: NDArray[np.int64]

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_sites(self) -> int:
        return len(self.site_pattern)

    @property
    def n_patterns(self) -> int:
        return len(self.counts)

    @cached_property
    def tips(self) -> NDArray[np.uint8]:
        """Codes as 0/1 indicators, shape (n_taxa, 4, n_patterns): what the pruning kernels read."""
        return bit_planes(self.codes)


def encode(sequence: str) -> NDArray[np.uint8]:
    """A sequence of IUPAC letters, either case, as bit sets; 0 marks a character that is no nucleotide code.

    >>> encode("acgu-R").tolist()
    [1, 2, 4, 8, 15, 5]
    """
    # Characters beyond ASCII must not turn into the "?" that stands for missing data.
    plain = sequence if sequence.isascii() else "".join(c if c.isascii() else "\0" for c in sequence)
    return _CODES[np.frombuffer(plain.encode("ascii"), dtype=np.uint8)]


def decode(codes: NDArray[np.uint8]) -> str:
    """Bit sets as IUPAC letters; gaps and missing data are "-".

    >>> decode(encode("acgu?R"))
    'ACGT-R'
    """
    return "".join(LETTERS[code] for code in codes.tolist())


def bit_planes(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Bit sets (..., n) as 0/1 indicators (..., 4, n), contiguous."""
    return np.ascontiguousarray(np.stack([(codes >> base) & 1 for base in range(4)], axis=-2))


def compress(alignment: Alignment) -> SitePatterns:
    """Distinct columns in order of first appearance, with counts."""
    return _compress(alignment.taxa, alignment.sites)


def fold_states(patterns: SitePatterns) -> SitePatterns:
    """Merge patterns that differ only in the names of the four states.

    Under JC69 all states are exchangeable, so AAC and GGT have the same likelihood on every tree with every branch
    lengths: each column is replaced by the smallest of its 24 relabellings. Valid for likelihoods only, not for
    ancestral states.
    """
    codes = patterns.codes
    n_taxa = codes.shape[0]
    best = codes.copy()
    for order in permutations(range(4)):
        table = np.zeros(16, dtype=np.uint8)
        for value in range(16):
            table[value] = sum(1 << order[base] for base in range(4) if value >> base & 1)
        candidate = table[codes]
        different = candidate != best
        first = np.where(different.any(axis=0), different.argmax(axis=0), 0)
        columns = np.arange(codes.shape[1])
        smaller = candidate[first, columns] < best[first, columns]
        best[:, smaller] = candidate[:, smaller]
    folded = _compress(patterns.taxa, best)
    counts = np.bincount(folded.site_pattern, weights=patterns.counts, minlength=folded.n_patterns)
    assert folded.codes.shape[0] == n_taxa
    return SitePatterns(patterns.taxa, folded.codes, counts.astype(np.float64), folded.site_pattern[patterns.site_pattern])


def _compress(taxa: tuple[str, ...], sites: NDArray[np.uint8]) -> SitePatterns:
    columns = np.ascontiguousarray(sites.T)
    if columns.shape[0] == 0:
        return SitePatterns(taxa, sites.copy(), np.zeros(0), np.zeros(0, dtype=np.int64))
    rows = columns.view(np.dtype((np.void, columns.shape[1]))).ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    site_pattern = rank[inverse.ravel()]
    codes = np.ascontiguousarray(columns[np.sort(first)].T)
    return SitePatterns(taxa, codes, np.bincount(site_pattern).astype(np.float64), site_pattern)
