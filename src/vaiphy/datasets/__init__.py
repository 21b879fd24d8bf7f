"""DS1 to DS8, the alignments by which phylogenetic inference is compared, embedded with their citations.

They come from TreeBASE by way of Debian's package `beast2-mcmc-examples` (`tools/make_datasets.py` makes the embedded
files): characters, names and order of taxa are untouched. Table 2 of the paper lists them, but calls DS7 what everyone
else, and we, call DS8.
"""

import gzip
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

import numpy as np

from vaiphy.alignment import Alignment, encode
from vaiphy.errors import InputError


@dataclass(frozen=True)
class Dataset:
    """An embedded alignment: size, TreeBASE matrix ids (legacy; current where the paper has it), content and source."""

    name: str
    n_taxa: int
    n_sites: int
    legacy_id: str
    current_id: str | None
    content: str
    citation: str


DATASETS = {
    record.name: record
    for record in (
        Dataset(
            "DS1", 27, 1949, "M336", "M2017", "tetrapods, 18S rRNA",
            "Hedges, Moberg & Maxson (1990). Tetrapod phylogeny inferred from 18S and 28S ribosomal RNA sequences and "
            "a review of the evidence for amniote relationships. Molecular Biology and Evolution 7: 607-633.",
        ),
        Dataset(
            "DS2", 29, 2520, "M501", "M2131", "acanthocephalans and other animals, 18S rDNA",
            "Garey, Near, Nonnemacher & Nadler (1996). Molecular evidence for Acanthocephala as a subtaxon of "
            "Rotifera. Journal of Molecular Evolution 43: 287-292.",
        ),
        Dataset(
            "DS3", 36, 1812, "M1510", "M127", "mouse lemurs and other mammals, mitochondrial COII and cytochrome b",
            "Yang & Yoder (2003). Comparison of likelihood and Bayesian methods for estimating divergence times using "
            "multiple gene loci and calibration points, with application to a radiation of cute-looking mouse lemur "
            "species. Systematic Biology 52: 705-716.",
        ),
        Dataset(
            "DS4", 41, 1137, "M1366", "M487", "fungi, 18S rDNA",
            "Henk, Weir & Blackwell (2003). Laboulbeniopsis termitarius, an ectoparasite of termites newly recognized "
            "as a member of the Laboulbeniomycetes. Mycologia 95: 561-564.",
        ),
        Dataset(
            "DS5", 50, 378, "M3475", "M2907", "nymphalid butterflies, wingless",
            "Lakner, van der Mark, Huelsenbeck, Larget & Ronquist (2008). Efficiency of Markov chain Monte Carlo tree "
            "proposals in Bayesian phylogenetics. Systematic Biology 57: 86-103.",
        ),
        Dataset(
            "DS6", 50, 1133, "M1044", "M220", "Diaporthales (fungi), 18S rDNA",
            "Zhang & Blackwell (2001). Molecular phylogeny of dogwood anthracnose fungus (Discula destructiva) and the "
            "Diaporthales. Mycologia 93: 355-365.",
        ),
        Dataset(
            "DS7", 59, 1824, "M1809", None, "lemurs and other mammals, mitochondrial COII and cytochrome b",
            "Yoder & Yang (2004). Divergence dates for Malagasy lemurs estimated from multiple gene loci: geological "
            "and evolutionary context. Molecular Ecology 13: 757-773.",
        ),
        Dataset(
            "DS8", 64, 1008, "M755", "M2261", "Bionectriaceae (fungi), 28S rDNA",
            "Rossman, McKemy, Pardo-Schultheiss & Schroers (2001). Molecular studies of the Bionectriaceae using large "
            "subunit rDNA sequences. Mycologia 93: 100-110.",
        ),
    )
}  # fmt: skip


def load(name: str) -> Alignment:
    """The embedded alignment of that name, in any case.

    >>> load("DS1").n_sites
    1949
    """
    record = DATASETS.get(name.upper())
    if record is None:
        raise InputError(f"there is no embedded data set {name!r}; there are {', '.join(DATASETS)}")
    content = (files(__name__) / f"{record.name}.fasta.gz").read_bytes()
    text = gzip.decompress(content).decode("ascii")
    taxa, sequences = [], []
    for entry in text.split(">")[1:]:
        taxon, sequence = entry.splitlines()
        taxa.append(taxon)
        sequences.append(encode(sequence))
    return Alignment(tuple(taxa), np.array(sequences), source=record.name, sha256=sha256(content).hexdigest())
