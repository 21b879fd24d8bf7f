"""Alignments in NEXUS files: the matrix of the first DATA or CHARACTERS block."""

import re

from vaiphy.alignment import IUPAC, MISSING
from vaiphy.formats.matrix import Matrix, Problem, Record, Splitter, interleaved, sequential
from vaiphy.formats.nexus_blocks import Command, commands, options, words

NUCLEOTIDES = ("dna", "rna", "nucleotide")
DOT_HINT = "means nothing here: the FORMAT command names it neither as MATCHCHAR nor as MISSING (see --matchchar, --missing)"
_UNSUPPORTED = ("equate", "transpose", "tokens", "nolabels")


def read(text: str, missing: str = "", matchchar: str = "") -> Matrix:
    """The records of the first DATA or CHARACTERS block, with what its DIMENSIONS and FORMAT commands say."""
    matrix = Matrix([], missing=missing, matchchar=matchchar, dot_hint=DOT_HINT)
    settings: dict[str, str] = {}
    body = None
    last = None
    for command in commands(text):
        last = command
        if command.word == "dimensions" and command.block in ("taxa", "data", "characters"):
            _dimensions(command, matrix)
        elif command.block == "taxa" and command.word == "taxlabels" and matrix.n_taxa is None:
            matrix.n_taxa = len(words(command.text))
        elif command.block in ("data", "characters"):
            if command.word == "format":
                settings = options(command.text)
                _symbols(command, settings, matrix)
            elif command.word == "matrix":
                if body is not None:
                    matrix.warnings.append((command.line, "a second matrix; only the first is used"))
                    break
                body = command
    if body is None:
        matrix.problems.append((0, "no DATA or CHARACTERS block with a MATRIX found"))
        return matrix
    if "datatype" not in settings and not matrix.problems:
        matrix.warnings.append((body.line, "FORMAT names no DATATYPE; read as DNA"))
    if not body.complete:
        matrix.problems.append((body.line, "the MATRIX is not ended by ';'; is the file truncated?"))
    elif last is not None and last.block and last.word != "end":
        matrix.warnings.append((last.line, f"the block {last.block.upper()} is not ended by 'END;'"))
    if any("DATATYPE" in message for _, message in matrix.problems):
        return matrix
    _records(body, settings.get("interleave", "no").lower(), matrix)
    return matrix


def write(taxa: tuple[str, ...], sequences: list[str]) -> str:
    """A NEXUS file with one DATA block."""
    names = ["'" + taxon.replace("'", "''") + "'" if re.search(r"[^\w.+]", taxon) else taxon for taxon in taxa]
    width = max(map(len, names)) + 2
    rows = "".join(f"    {name:<{width}}{sequence}\n" for name, sequence in zip(names, sequences))
    return (
        f"#NEXUS\nBEGIN DATA;\n  DIMENSIONS NTAX={len(taxa)} NCHAR={len(sequences[0])};\n"
        f"  FORMAT DATATYPE=DNA MISSING=? GAP=-;\n  MATRIX\n{rows}  ;\nEND;\n"
    )


def _dimensions(command: Command, matrix: Matrix) -> None:
    found = options(command.text)
    for key, attribute in (("ntax", "n_taxa"), ("nchar", "n_sites")):
        value = found.get(key)
        if value is None:
            continue
        if re.fullmatch(r"[0-9]{1,9}", value):
            setattr(matrix, attribute, int(value))
        else:
            matrix.problems.append((command.line, f"DIMENSIONS {key.upper()}={value!r} is no number"))


def _symbols(command: Command, settings: dict[str, str], matrix: Matrix) -> None:
    """Fill in the symbols that FORMAT declares; those given by the user win."""
    kind = settings.get("datatype", "dna").lower()
    if kind == "protein":
        matrix.problems.append((command.line, "DATATYPE=protein: VaiPhy reads nucleotides only, no amino acids"))
    elif kind not in NUCLEOTIDES:
        matrix.problems.append((command.line, f"DATATYPE={kind}: VaiPhy reads DNA, RNA or NUCLEOTIDE only"))
    for key in _UNSUPPORTED:
        if settings.get(key, "no").lower() != "no":
            matrix.problems.append((command.line, f"FORMAT {key.upper()} is not supported; write the matrix without it"))
    for key in ("missing", "gap", "matchchar"):
        symbol = settings.get(key, "")
        if not symbol:
            continue
        if len(symbol) != 1 or not symbol.isascii() or IUPAC.get(symbol.upper(), MISSING) != MISSING:
            matrix.problems.append((command.line, f"FORMAT {key.upper()}={symbol} is no usable symbol"))
        elif key == "matchchar":
            matrix.matchchar = matrix.matchchar or (symbol if symbol not in matrix.missing else "")
        elif symbol != matrix.matchchar:
            matrix.missing += symbol
    if matrix.matchchar and matrix.matchchar in matrix.missing:
        matrix.problems.append((command.line, f"FORMAT gives {matrix.matchchar!r} two meanings"))


def _records(body: Command, interleave: str, matrix: Matrix) -> None:
    lines = [(body.line + k, line) for k, line in enumerate(body.text.split("\n")) if line.strip()]
    split = Splitter(matrix.missing + matrix.matchchar, nexus=True)
    if interleave != "no":
        matrix.records, problems = _interleaved(lines, split)
        matrix.problems += problems
        return
    matrix.records = sequential(lines, matrix.n_taxa, matrix.n_sites, split)
    if matrix.fits or matrix.problems:
        return
    for records, problems in (_interleaved(lines, split), interleaved(lines, matrix.n_taxa or 0, split)):
        if Matrix(records, matrix.n_taxa, matrix.n_sites, problems=problems).fits:
            matrix.records = records
            matrix.warnings.append((body.line, "the matrix is interleaved although FORMAT does not say INTERLEAVE"))
            return


def _interleaved(lines: list[Problem], split: Splitter) -> tuple[list[Record], list[Problem]]:
    """Records from blocks of lines, each line with its name."""
    records: dict[str, Record] = {}
    problems: list[Problem] = []
    first: Record | None = None
    for line, text in lines:
        name, rest = split(text)
        record = records.setdefault(name, Record(name, line))
        first = first or record
        if record is not first and len(record.pieces) >= len(first.pieces):
            problems.append((line, f"taxon {name!r} is already in line {record.line}; names must differ"))
        record.pieces.append((line, split.characters(rest)))
    return list(records.values()), problems
