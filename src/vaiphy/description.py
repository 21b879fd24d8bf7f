"""What a person checks first in an alignment: sizes, kinds of sites, missing data, base composition, duplicates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import MISSING, Alignment, compress

BASES = "ACGT"


@dataclass(frozen=True)
class Description:
    """Counts of an alignment.

    A site is constant if one base is possible in all taxa (ambiguity codes and missing data allow several), parsimony-
    informative if at least two bases are each seen unambiguously in at least two taxa, and a singleton site otherwise.
    These are IQ-TREE's definitions. `missing` and `gc` are fractions per taxon (`gc` of unambiguous bases, NaN without
    any); `composition` are fractions of A, C, G, T among the unambiguous bases; `identical` are groups of taxa with the
    same sequence.
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


def describe(alignment: Alignment) -> Description:
    """The counts of an alignment."""
    sites = alignment.sites
    constant = np.bitwise_and.reduce(sites, axis=0) != 0
    seen = np.stack([(sites == 1 << base).sum(axis=0) for base in range(4)])
    informative = ~constant & ((seen >= 2).sum(axis=0) >= 2)
    per_taxon = np.stack([(sites == 1 << base).sum(axis=1) for base in range(4)])
    bases, total = per_taxon.sum(axis=1), per_taxon.sum()
    observed = per_taxon.sum(axis=0)
    is_missing = sites == MISSING
    return Description(
        n_taxa=alignment.n_taxa,
        n_sites=alignment.n_sites,
        n_patterns=compress(alignment).n_patterns,
        n_constant=int(constant.sum()),
        n_informative=int(informative.sum()),
        n_singleton=int((~constant & ~informative).sum()),
        n_empty=int(is_missing.all(axis=0).sum()),
        n_ambiguous=int(sites.size - is_missing.sum() - total),
        missing=is_missing.mean(axis=1),
        gc=np.where(observed > 0, (per_taxon[1] + per_taxon[2]) / np.maximum(observed, 1), np.nan),
        composition=bases / max(total, 1),
        identical=identical_groups(alignment),
    )


def identical_groups(alignment: Alignment) -> tuple[tuple[str, ...], ...]:
    """Groups of two and more taxa whose sequences are the same, ambiguity codes and missing data included."""
    groups: dict[bytes, list[str]] = {}
    for taxon, row in zip(alignment.taxa, alignment.sites):
        groups.setdefault(row.tobytes(), []).append(taxon)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
