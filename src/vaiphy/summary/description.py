"""What a person checks first in an alignment: sizes, kinds of sites, missing data, composition, duplicates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment, SitePatterns, compress


@dataclass(frozen=True)
class Description:
    """Counts of an alignment.

    A site is constant if one state is possible in all taxa (ambiguity codes and missing data allow several), parsimony-
    informative if at least two states are each seen unambiguously in at least two taxa, and a singleton site otherwise.
    These are IQ-TREE's definitions. `missing` and `gc` are fractions per taxon (`gc` of unambiguous bases, NaN without
    any and for other data than nucleotides); `composition` are fractions of the states (A, C, G, T, ...) among those seen
    unambiguously; `identical` are groups of taxa with the same sequence.
    """

    n_taxa: int
    n_sites: int
    n_patterns: int
    n_constant: int
    n_informative: int
    n_singleton: int
    n_empty: int
    n_ambiguous: int
    missing: NDArray[np.float64]
    gc: NDArray[np.float64]
    composition: NDArray[np.float64]
    identical: tuple[tuple[str, ...], ...]

    @property
    def missing_fraction(self) -> float:
        return float(self.missing.mean())


def describe(data: Alignment | SitePatterns) -> Description:
    """The counts of an alignment, or of the one that site patterns were made from."""
    patterns = compress(data) if isinstance(data, Alignment) else data
    codes, counts = patterns.codes, patterns.counts
    constant = np.bitwise_and.reduce(codes, axis=0) != 0
    single = [codes.dtype.type(1 << state) for state in range(patterns.alphabet.n_states)]
    is_base = np.stack([codes == state for state in single])
    informative = ~constant & ((is_base.sum(axis=1) >= 2).sum(axis=0) >= 2)
    per_taxon = is_base @ counts
    bases, total = per_taxon.sum(axis=1), per_taxon.sum()
    observed = per_taxon.sum(axis=0) * patterns.alphabet.is_nucleotides
    is_missing = codes == patterns.alphabet.everything
    missing = is_missing @ counts
    return Description(
        n_taxa=patterns.n_taxa,
        n_sites=patterns.n_sites,
        n_patterns=patterns.n_patterns,
        n_constant=int(counts[constant].sum()),
        n_informative=int(counts[informative].sum()),
        n_singleton=int(counts[~constant & ~informative].sum()),
        n_empty=int(counts[is_missing.all(axis=0)].sum()),
        n_ambiguous=int(patterns.n_taxa * patterns.n_sites - missing.sum() - total),
        missing=missing / max(patterns.n_sites, 1),
        gc=np.where(observed > 0, per_taxon[1:3].sum(axis=0) / np.maximum(observed, 1), np.nan),
        composition=bases / max(total, 1),
        identical=identical_groups(patterns),
    )


def identical_groups(patterns: SitePatterns) -> tuple[tuple[str, ...], ...]:
    """Groups of two and more taxa whose sequences are the same, ambiguity codes and missing data included."""
    groups: dict[bytes, list[str]] = {}
    for taxon, row in zip(patterns.taxa, patterns.codes):
        groups.setdefault(row.tobytes(), []).append(taxon)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
