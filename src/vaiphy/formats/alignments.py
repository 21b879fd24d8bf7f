"""Alignments from files of any of the formats, found from their content, and back."""

import re
from pathlib import Path

from vaiphy import datasets
from vaiphy.alignment import IUPAC, MISSING, Alignment, AlignmentError, decode
from vaiphy.formats import fasta, nexus_data, phylip
from vaiphy.formats.files import read_text
from vaiphy.formats.matrix import assemble
from vaiphy.formats.nexus_blocks import is_nexus

#: What may be given as a format; the variants of PHYLIP are told apart by trying unless one is named.
FORMATS = ("fasta", "phylip", "nexus", "phylip-relaxed", "phylip-strict", "phylip-interleaved", "phylip-sequential")

#: Starts of other formats -> their names, for a helpful message.
_OTHERS = {
    "CLUSTAL": "Clustal",
    "MUSCLE": "Clustal",
    "# STOCKHOLM": "Stockholm",
    "!!NA_MULTIPLE": "MSF",
    "PILEUP": "MSF",
    "LOCUS ": "GenBank",
    "<": "XML or HTML",
    "{": "JSON",
    "(": "a Newick tree",
}


def read_alignment(
    path: str | Path, format: str | None = None, matchchar: str | None = None, missing: str | None = None
) -> Alignment:
    """The alignment in a file (FASTA, PHYLIP or NEXUS, also gzipped; "-" is standard input) or an embedded one ("DS1").

    `format` (one of `FORMATS`) overrides what the content says; `matchchar` and `missing` are symbols that stand for
    "as in the first sequence" and for missing data. A file wins over an embedded data set of the same name. Raises
    `AlignmentError` with all problems of the file.
    """
    name = str(path)
    if name.upper() in datasets.DATASETS and not Path(name).exists():
        return datasets.load(name)
    if re.fullmatch(r"DS[0-9]+", name, re.IGNORECASE) and not Path(name).exists():
        known = ", ".join(datasets.DATASETS)
        raise AlignmentError(f"{name}: there is neither such a file nor such an embedded data set (there are {known})")
    return parse_alignment(read_text(path, AlignmentError), _source(name), format, matchchar, missing)


def parse_alignment(
    text: str, source: str = "text", format: str | None = None, matchchar: str | None = None, missing: str | None = None
) -> Alignment:
    """The alignment in a text; arguments as for `read_alignment`, `source` is what messages call it.

    >>> parse_alignment(">a\\nACGT\\n>b\\nAC-T\\n>c\\nRCGT\\n").taxa
    ('a', 'b', 'c')
    """
    missing, matchchar = _symbol(missing, "missing"), _symbol(matchchar, "matchchar")
    if missing and missing == matchchar:
        raise AlignmentError(f"{missing!r} cannot be both the missing-data symbol and the match character")
    kind, _, variant = (format or detect(text, source)).partition("-")
    if kind == "fasta":
        matrix = fasta.read(text)
        if matchchar:
            matrix.missing = matrix.missing.replace(matchchar, "")
            matrix.warnings = [warning for warning in matrix.warnings if matchchar != "." or "'.'" not in warning[1]]
        matrix.missing, matrix.matchchar = matrix.missing + missing, matchchar
    elif kind == "phylip":
        matrix = phylip.read(text, variant, missing, matchchar)
    elif kind == "nexus":
        matrix = nexus_data.read(text, missing, matchchar)
    else:
        raise AlignmentError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    return assemble(matrix, source)


def write_alignment(alignment: Alignment, format: str = "fasta") -> str:
    """The text of an alignment in "fasta", "phylip" (relaxed, sequential) or "nexus"; gaps and missing data are `-`."""
    writers = {"fasta": fasta.write, "phylip": phylip.write, "nexus": nexus_data.write}
    if format not in writers:
        raise AlignmentError(f"cannot write the format {format!r}; there are {', '.join(writers)}")
    return writers[format](alignment.taxa, [decode(row) for row in alignment.sites])


def detect(text: str, source: str = "text") -> str:
    """The format of a text, from its first characters."""
    start = text.lstrip()[:200]
    if is_nexus(text):
        return "nexus"
    if start.startswith((">", ";")):
        return "fasta"
    if phylip.HEADER.match(start.split("\n", 1)[0]):
        return "phylip"
    for beginning, name in _OTHERS.items():
        if start.upper().startswith(beginning):
            raise AlignmentError(f"{source}: this looks like {name}; VaiPhy reads FASTA, PHYLIP and NEXUS alignments")
    raise AlignmentError(
        f"{source}: this is no FASTA (begins with '>'), PHYLIP (with two numbers) or NEXUS (with '#NEXUS') file; "
        "if it is one of them all the same, say --format"
    )


def _source(name: str) -> str:
    return "standard input" if name == "-" else name


def _symbol(symbol: str | None, what: str) -> str:
    if not symbol:
        return ""
    if len(symbol) != 1 or not symbol.isascii() or not symbol.isprintable() or symbol == " ":
        raise AlignmentError(f"{what}: {symbol!r} is not one printable character")
    if IUPAC.get(symbol.upper(), MISSING) != MISSING:
        raise AlignmentError(f"{what}: {symbol!r} is a nucleotide code")
    return symbol
