"""Alignments in NEXUS files: the matrix of the first DATA or CHARACTERS block."""

import re

from vaiphy.alphabets import DNA, MORPH, Alphabet, alphabet_named
from vaiphy.formats.matrix import Matrix, Problem, Record, Splitter, interleaved, resolved, sequential
from vaiphy.formats.nexus_blocks import Command, commands, options, words

#: DATATYPE -> our name of the alphabet.
DATATYPES = {
    "dna": "DNA",
    "rna": "DNA",
    "nucleotide": "DNA",
    "protein": "AA",
    "standard": "MORPH",
    "binary": "BIN",
    "restriction": "BIN",
}
DOT_HINT = "means nothing here: the FORMAT command names it neither as MATCHCHAR nor as MISSING (see --matchchar, --missing)"
_MIXED = re.compile(r"datatype\s*=\s*mixed\s*\(([^)]*)\)", re.IGNORECASE)
_MIXED_ITEM = re.compile(r"\s*([A-Za-z]+)\s*:\s*([0-9]+)\s*-\s*([0-9]+)\s*")
_UNSUPPORTED = ("equate", "transpose", "tokens", "nolabels")


def read(text: str, missing: str = "", matchchar: str = "", seqtype: str = "") -> Matrix:
    """The records of the first DATA or CHARACTERS block, with what its DIMENSIONS and FORMAT commands say."""
    matrix = Matrix([], missing=missing, matchchar=matchchar, dot_hint=DOT_HINT, seqtype=seqtype)
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
                settings = options(_MIXED.sub("", command.text))
                _mixed(command, matrix)
                _symbols(command, settings, matrix)
            elif command.word == "matrix":
                if body is not None:
                    matrix.warnings.append((command.line, "a second matrix; only the first is used"))
                    break
                body = command
    if body is None:
        matrix.problems.append((0, "no DATA or CHARACTERS block with a MATRIX found"))
        return matrix
    if not body.complete:
        matrix.problems.append((body.line, "the MATRIX is not ended by ';'; is the file truncated?"))
    elif last is not None and last.block and last.word != "end":
        matrix.warnings.append((last.line, f"the block {last.block.upper()} is not ended by 'END;'"))
    if matrix.mixed and matrix.n_sites is None:
        matrix.n_sites = matrix.mixed[-1][1]
    if any("DATATYPE" in message for _, message in matrix.problems):
        return matrix
    _records(body, settings.get("interleave", "no").lower(), matrix)
    if not matrix.seqtype and not matrix.mixed and matrix.records:
        matrix.seqtype = resolved(matrix)[0].name
        matrix.warnings.append((body.line, f"FORMAT names no DATATYPE; read as {matrix.seqtype} (--seqtype says otherwise)"))
    return matrix


def write(taxa: tuple[str, ...], sequences: list[str], alphabet: Alphabet = DNA, n_sites: int | None = None) -> str:
    """A NEXUS file with one DATA block; `n_sites` where sequences hold sets of states in braces."""
    names = ["'" + taxon.replace("'", "''") + "'" if re.search(r"[^\w.+]", taxon) else taxon for taxon in taxa]
    width = max(map(len, names)) + 2
    rows = "".join(f"    {name:<{width}}{sequence}\n" for name, sequence in zip(names, sequences))
    datatype = {"AA": "PROTEIN", "BIN": "STANDARD", "MORPH": "STANDARD"}.get(alphabet.name, alphabet.name)
    if datatype == "STANDARD":
        datatype += f' SYMBOLS="{alphabet.states}"'
    return (
        f"#NEXUS\nBEGIN DATA;\n  DIMENSIONS NTAX={len(taxa)} NCHAR={len(sequences[0]) if n_sites is None else n_sites};\n"
        f"  FORMAT DATATYPE={datatype} MISSING=? GAP=-;\n  MATRIX\n{rows}  ;\nEND;\n"
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
            matrix.problems.append((command.line, f"DIMENSIONS {key.upper()}={value!r} is not a number"))


def _mixed(command: Command, matrix: Matrix) -> None:
    """MrBayes's `datatype=mixed(Standard:1-166,DNA:167-3246)`: several kinds of data side by side, in order and without gaps."""
    found = _MIXED.search(command.text)
    if found is None or matrix.seqtype:
        return
    behind = 0
    for item in found[1].split(","):
        part = _MIXED_ITEM.fullmatch(item)
        if part is None or part[1].lower() not in DATATYPES:
            matrix.problems.append((command.line, f"DATATYPE=mixed: '{item.strip()}' is not read; write Standard:1-166"))
            return
        first, last = int(part[2]), int(part[3])
        if first != behind + 1 or last < first:
            message = f"DATATYPE=mixed: '{item.strip()}' should begin at site {behind + 1} and not end before it"
            matrix.problems.append((command.line, message))
            return
        matrix.mixed.append((first - 1, last, DATATYPES[part[1].lower()]))
        behind = last
    if matrix.n_sites is not None and behind != matrix.n_sites:
        matrix.problems.append((command.line, f"DATATYPE=mixed names {behind} sites, DIMENSIONS {matrix.n_sites}"))


def _alphabets(matrix: Matrix) -> list[Alphabet]:
    """Alphabets that characters may be of, before these are seen."""
    kinds = [kind for _, _, kind in matrix.mixed] or [matrix.seqtype or "DNA"]
    return [MORPH(36) if kind == "MORPH" else alphabet_named(kind) for kind in kinds]


def _symbols(command: Command, settings: dict[str, str], matrix: Matrix) -> None:
    """Fill in the symbols that FORMAT declares; those given by the user win."""
    kind = settings.get("datatype", "").lower()
    if kind and kind not in DATATYPES:
        known = ", ".join(DATATYPES)
        matrix.problems.append((command.line, f"DATATYPE={kind} is not read; VaiPhy reads {known}"))
    matrix.seqtype = matrix.seqtype or DATATYPES.get(kind, "")
    states = settings.get("symbols", "").split()
    if len(states) > 1 and min(map(len, states)) > 1:
        message = f"FORMAT SYMBOLS: states of several characters such as '{states[0]}' are not read; write each as one character"
        matrix.problems.append((command.line, message))
    for key in _UNSUPPORTED:
        if settings.get(key, "no").lower() != "no":
            matrix.problems.append((command.line, f"FORMAT {key.upper()} is not supported; write the matrix without it"))
    for key in ("missing", "gap", "matchchar"):
        symbol = settings.get(key, "")
        if not symbol:
            continue
        state = any(a.codes.get(symbol.upper(), a.everything) != a.everything for a in _alphabets(matrix))
        if len(symbol) != 1 or not symbol.isascii() or state:
            matrix.problems.append((command.line, f"FORMAT {key.upper()}={symbol} is not a usable symbol"))
        elif key == "matchchar":
            matrix.matchchar = matrix.matchchar or (symbol if symbol not in matrix.missing else "")
        elif symbol != matrix.matchchar:
            matrix.missing += symbol
    if matrix.matchchar and matrix.matchchar in matrix.missing:
        matrix.problems.append((command.line, f"FORMAT gives {matrix.matchchar!r} two meanings"))


def _records(body: Command, interleave: str, matrix: Matrix) -> None:
    lines = [(body.line + k, line) for k, line in enumerate(body.text.split("\n")) if line.strip()]
    letters = "".join(letter for alphabet in _alphabets(matrix) for letter in alphabet.codes)
    split = Splitter(matrix.missing + matrix.matchchar, nexus=True, letters=letters)
    matrix.sets = split.sets
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
