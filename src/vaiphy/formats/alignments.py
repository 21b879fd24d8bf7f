"""Alignments from files of any of the formats, found from their content, and back."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from vaiphy import datasets
from vaiphy.alignment import Alignment, AlignmentError
from vaiphy.alphabets import DNA, Alphabet, alphabet_named
from vaiphy.formats import fasta, nexus_data, phylip
from vaiphy.formats.files import read_hashed
from vaiphy.formats.nexus_blocks import is_nexus
from vaiphy.formats.objects import from_object
from vaiphy.formats.validation import assemble

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
    path: str | Path | Any,
    format: str | None = None,
    matchchar: str | None = None,
    missing: str | None = None,
    seqtype: str | None = None,
) -> Alignment:
    """The alignment in a file (FASTA, PHYLIP or NEXUS, also gzipped; "-" is standard input) or an embedded one ("DS1").

    Instead of a path, an alignment of Biopython, scikit-bio or cogent3 will do.

    `format` (one of `FORMATS`) overrides what the content says; `matchchar` and `missing` are symbols that stand for
    "as in the first sequence" and for missing data; `seqtype` (DNA, RNA, AA, BIN or MORPH) says what the characters are.
    Without it they are what a NEXUS file says, else guessed, and a guess other than DNA is told in `warnings`. A file wins
    over an embedded data set of the same name. Raises `AlignmentError` with all problems of the file.
    """
    if isinstance(path, Alignment):
        return path
    if not isinstance(path, str | os.PathLike):
        alphabet = alphabet_named(seqtype) if seqtype else DNA
        symbols = _symbol(missing, "missing", alphabet), _symbol(matchchar, "matchchar", alphabet)
        return from_object(path, *symbols, alphabet.name if seqtype else "")
    name = str(path)
    if name.upper() in datasets.DATASETS and not Path(name).exists():
        return datasets.load(name)
    if re.fullmatch(r"DS[0-9]+", name, re.IGNORECASE) and not Path(name).exists():
        known = ", ".join(datasets.DATASETS)
        raise AlignmentError(f"{name}: there is no such file, and no embedded data set of that name (there are {known})")
    text, digest = read_hashed(name, AlignmentError)
    data = parse_alignment(text, _source(name), format, matchchar, missing, seqtype)
    return replace(data, sha256=digest, nexus=text if is_nexus(text) else "")


def parse_alignment(
    text: str,
    source: str = "text",
    format: str | None = None,
    matchchar: str | None = None,
    missing: str | None = None,
    seqtype: str | None = None,
) -> Alignment:
    """The alignment in a text; arguments as for `read_alignment`, `source` is what messages call it.

    >>> parse_alignment(">a\\nACGT\\n>b\\nAC-T\\n>c\\nRCGT\\n").taxa
    ('a', 'b', 'c')
    """
    alphabet = alphabet_named(seqtype) if seqtype else DNA
    missing, matchchar = _symbol(missing, "missing", alphabet), _symbol(matchchar, "matchchar", alphabet)
    kind_told = alphabet.name if seqtype else ""
    if missing and missing == matchchar:
        raise AlignmentError(f"{missing!r} cannot be both the missing-data symbol and the match character")
    kind, _, variant = (format or detect(text, source)).partition("-")
    if kind == "fasta":
        matrix = fasta.read(text)
        if matchchar:
            matrix.missing = matrix.missing.replace(matchchar, "")
            matrix.warnings = [warning for warning in matrix.warnings if matchchar != "." or "'.'" not in warning[1]]
        matrix.missing, matrix.matchchar, matrix.seqtype = matrix.missing + missing, matchchar, kind_told
    elif kind == "phylip":
        matrix = phylip.read(text, variant, missing, matchchar, kind_told)
    elif kind == "nexus":
        matrix = nexus_data.read(text, missing, matchchar, kind_told)
    else:
        raise AlignmentError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    return assemble(matrix, source)


def write_alignment(alignment: Alignment, format: str = "fasta") -> str:
    """The text of an alignment in "fasta", "phylip" (relaxed, sequential) or "nexus"; gaps and missing data are `-`.

    Sets of states that have no letter of their own, such as `{01}`, can be written as NEXUS only.
    """
    rows = [alignment.alphabet.decode(row) for row in alignment.sites]
    if format == "nexus":
        return nexus_data.write(alignment.taxa, rows, alignment.alphabet, alignment.n_sites)
    writers = {"fasta": fasta.write, "phylip": phylip.write}
    if format not in writers:
        raise AlignmentError(f"cannot write the format {format!r}; there are {', '.join(writers)}, nexus")
    if polymorphic := next((taxon for taxon, row in zip(alignment.taxa, rows) if "{" in row), None):
        raise AlignmentError(f"taxon {polymorphic!r} has sets of states such as {{01}}; only NEXUS can hold them")
    return writers[format](alignment.taxa, rows)


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
        f"{source}: this does not look like FASTA (begins with '>'), PHYLIP (with two numbers) or NEXUS (with '#NEXUS'); "
        "if it is one of them, say which with --format"
    )


def _source(name: str) -> str:
    return "standard input" if name == "-" else name


def _symbol(symbol: str | None, what: str, alphabet: Alphabet) -> str:
    if not symbol:
        return ""
    if len(symbol) != 1 or not symbol.isascii() or not symbol.isprintable() or symbol == " ":
        raise AlignmentError(f"{what}: {symbol!r} is not one printable character")
    if alphabet.codes.get(symbol.upper(), alphabet.everything) != alphabet.everything:
        raise AlignmentError(f"{what}: {symbol!r} is {alphabet.noun}")
    return symbol
