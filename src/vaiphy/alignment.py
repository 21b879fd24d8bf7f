"""Alignments of any alphabet, and their compression to site patterns.

A character is a set of possible states as bits (see `alphabets`). Nucleotides have four: A = 1, C = 2, G = 4, T = 8; an IUPAC
code is a union, and 15 (anything) stands for gaps and missing data, as in every likelihood program.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from vaiphy.alphabets import DNA, Alphabet
from vaiphy.errors import InputError

A, C, G, T = 1, 2, 4, 8
MISSING = 15

#: IUPAC letter -> bit set; gaps and unknowns are MISSING.
IUPAC = DNA.codes
#: Bit set -> letter; index 0 stands for nothing.
LETTERS = " ACMGRSVTWYHKDB-"


#: Below four taxa there is one unrooted topology, and nothing to infer about it.
MIN_TAXA = 4


class AlignmentError(InputError):
    """The text is not a usable alignment; `problems` lists everything found, each with its place."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned sequences: `sites[i, j]` is the bit set of taxon i at site j (uint8 for nucleotides, else the alphabet's).

    `source` is what messages call it; `sha256` is that of the file it was read from, empty if there was none; `nexus` is the text
    of that file if it is NEXUS, for what else stands there (partitions, a mrbayes block). `blocks` are (first site, behind the
    last, alphabet) where there are several kinds of data; missing data are then all states of `alphabet`, the largest.
    """

    taxa: tuple[str, ...]
    sites: NDArray
    source: str = ""
    warnings: tuple[str, ...] = ()
    sha256: str = ""
    alphabet: Alphabet = DNA
    blocks: tuple[tuple[int, int, Alphabet], ...] = ()
    nexus: str = field(default="", repr=False)

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
    codes: NDArray
    counts: NDArray[np.float64]
    site_pattern: NDArray[np.int64]
    alphabet: Alphabet = DNA

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
        """Codes as 0/1 indicators, shape (n_taxa, n_states, n_patterns): what the pruning kernels read."""
        return bit_planes(self.codes, self.alphabet.n_states)

    @cached_property
    def folded(self) -> "SitePatterns":
        """The patterns that an analysis with exchangeable states can tell apart (`fold_states`), found once."""
        folded = fold_states(self)
        folded.__dict__["folded"] = folded  # folding again would change nothing
        return folded


def too_few_taxa(alignment: Alignment) -> str:
    """What is said of an alignment with too few taxa to be analysed, nothing if there are enough."""
    if alignment.n_taxa >= MIN_TAXA:
        return ""
    return f"{alignment.source}: {alignment.n_taxa} taxa; at least {MIN_TAXA} are needed for there to be a choice of trees"


def encode(sequence: str) -> NDArray[np.uint8]:
    """A sequence of IUPAC letters, either case, as bit sets; 0 marks a character that is not a nucleotide code.

    >>> encode("acgu-R").tolist()
    [1, 2, 4, 8, 15, 5]
    """
    return DNA.encode_letters(sequence)


def decode(codes: NDArray[np.uint8]) -> str:
    """Bit sets as IUPAC letters; gaps and missing data are "-".

    >>> decode(encode("acgu?R"))
    'ACGT-R'
    """
    return "".join(LETTERS[code] for code in codes.tolist())


def bit_planes(codes: NDArray, n_states: int = 4) -> NDArray[np.uint8]:
    """Bit sets (..., n) as 0/1 indicators (..., n_states, n), contiguous."""
    one = codes.dtype.type(1)
    planes = [((codes >> codes.dtype.type(state)) & one).astype(np.uint8) for state in range(n_states)]
    return np.ascontiguousarray(np.stack(planes, axis=-2))


def require_nucleotides(source: str, alphabet: Alphabet, what: str) -> None:
    """Refuse data of another alphabet; `what` wants nucleotides, and `source` is what messages call the data."""
    if not alphabet.is_nucleotides:
        raise AlignmentError(f"{source}: these are {alphabet.kind}; {what} reads nucleotides (DNA or RNA) only")


def compress(alignment: Alignment) -> SitePatterns:
    """Distinct columns in order of first appearance, with counts."""
    return _compress(alignment.taxa, alignment.sites, alignment.alphabet)


def fold_states(patterns: SitePatterns) -> SitePatterns:
    """Merge patterns that differ only in the names of the states.

    Where all states are exchangeable (JC69, Mk), AAC and GGT have the same likelihood on every tree with every branch
    lengths. With four states each column is replaced by the smallest of its 24 relabellings, else by the one that numbers
    states as they appear. Valid for likelihoods only, not for ancestral states.
    """
    best = _smallest_of_24(patterns.codes) if patterns.alphabet.n_states == 4 else _by_appearance(patterns)
    folded = _compress(patterns.taxa, best, patterns.alphabet)
    counts = np.bincount(folded.site_pattern, weights=patterns.counts, minlength=folded.n_patterns)
    return replace(folded, counts=counts.astype(np.float64), site_pattern=folded.site_pattern[patterns.site_pattern])


def _by_appearance(patterns: SitePatterns) -> NDArray:
    """Columns with their states numbered in the order in which they appear alone; any others keep their order behind."""
    n_states = patterns.alphabet.n_states
    relabelled = np.empty_like(patterns.codes)
    for p, column in enumerate(patterns.codes.T.tolist()):
        alone = [code.bit_length() - 1 for code in column if code.bit_count() == 1]
        order = {state: k for k, state in enumerate(dict.fromkeys([*alone, *range(n_states)]))}
        table = {code: sum(1 << order[state] for state in range(n_states) if code >> state & 1) for code in set(column)}
        relabelled[:, p] = [table[code] for code in column]
    return relabelled


def _smallest_of_24(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
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
    return best


def _compress(taxa: tuple[str, ...], sites: NDArray, alphabet: Alphabet) -> SitePatterns:
    columns = np.ascontiguousarray(sites.T)
    if columns.shape[0] == 0:
        return SitePatterns(taxa, sites.copy(), np.zeros(0), np.zeros(0, dtype=np.int64), alphabet)
    rows = columns.view(np.dtype((np.void, columns.shape[1] * columns.itemsize))).ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    site_pattern = rank[inverse.ravel()]
    codes = np.ascontiguousarray(columns[np.sort(first)].T)
    return SitePatterns(taxa, codes, np.bincount(site_pattern).astype(np.float64), site_pattern, alphabet)
