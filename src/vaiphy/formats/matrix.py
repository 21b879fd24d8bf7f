"""What every alignment reader finds, and its validation: all problems of a file in one pass."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import IUPAC, LETTERS, MISSING, Alignment, AlignmentError, encode

#: Letters that stand for amino acids and for no nucleotide.
AMINO_ACIDS = frozenset("EFILPQZJ")
Problem = tuple[int, str]
"""Line (0 if none) and message."""


@dataclass
class Record:
    """One taxon: its name, the line where it begins, and its characters as (line, text without white space)."""

    name: str
    line: int
    pieces: list[Problem] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(len(text) for _, text in self.pieces)

    @property
    def sequence(self) -> str:
        return "".join(text for _, text in self.pieces)

    def line_of(self, column: int) -> int:
        """The line that holds a column (from 0)."""
        for line, text in self.pieces:
            if column < len(text):
                return line
            column -= len(text)
        return self.line


@dataclass
class Matrix:
    """The records of a file, what it says about its size and symbols, and what was wrong or odd on the way."""

    records: list[Record]
    n_taxa: int | None = None
    n_sites: int | None = None
    missing: str = ""
    matchchar: str = ""
    dot_hint: str = ""
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    @property
    def expected_size(self) -> int:
        """The number of sites announced, else the most common one."""
        if self.n_sites is not None:
            return self.n_sites
        return Counter(record.size for record in self.records).most_common(1)[0][0]

    @property
    def fits(self) -> bool:
        """Whether the records have the numbers and sizes announced, under different names."""
        names = {record.name for record in self.records}
        return (
            not self.problems
            and len(names) == len(self.records) == self.n_taxa
            and all(record.name and record.size == self.n_sites for record in self.records)
        )


def sequential(lines: Iterable[Problem], n_taxa: int | None, n_sites: int | None, split: "Splitter") -> list[Record]:
    """Records whose sequences follow their names, over as many lines as it takes to reach `n_sites`.

    With as many lines as taxa (or no size to go by) each line is one record. A line that cannot be sequence begins a
    new record, so that one short sequence does not swallow all that follow.
    """
    rows = list(lines)
    one_line_each = n_sites is None or len(rows) == n_taxa
    records: list[Record] = []
    size = 0
    for line, text in rows:
        complete = not records or one_line_each or size >= (n_sites or 0)
        rest = text
        if complete or split.begins_record(text):
            name, rest = split(text)
            records.append(Record(name, line))
            size = 0
        piece = split.characters(rest)
        records[-1].pieces.append((line, piece))
        size += len(piece)
    return records


def interleaved(lines: list[Problem], n_taxa: int, split: "Splitter") -> tuple[list[Record], list[Problem]]:
    """Records from blocks of `n_taxa` lines of which only the first block has names."""
    records = []
    for line, text in lines[:n_taxa]:
        name, rest = split(text)
        records.append(Record(name, line, [(line, split.characters(rest))]))
    problems: list[Problem] = []
    if n_taxa == 0 or len(lines) % n_taxa:
        problems.append((0, f"{len(lines)} lines of sequence cannot be blocks of {n_taxa} taxa"))
    for index, (line, text) in enumerate(lines[n_taxa:]):
        if records:
            records[index % n_taxa].pieces.append((line, split.characters(text)))
    return records, problems


class Splitter:
    """How a line is cut into name and characters: at the first white space, behind column `width`, or behind quotes."""

    _QUOTED = re.compile(r"'((?:[^'\n]|'')*)'")
    _POLYMORPHISM = re.compile(r"\{([^{}()]*)\}|\(([^{}()]*)\)")

    def __init__(self, symbols: str, width: int = 0, nexus: bool = False) -> None:
        self._plain = frozenset("".join(IUPAC) + "".join(IUPAC).lower() + symbols + ("{}()" if nexus else ""))
        self._width, self._nexus = width, nexus

    def __call__(self, text: str) -> tuple[str, str]:
        if self._width:
            return text[: self._width].strip(), text[self._width :]
        text = text.lstrip()
        if self._nexus and (quoted := self._QUOTED.match(text)):
            return quoted[1].replace("''", "'"), text[quoted.end() :]
        name, *rest = text.split(None, 1)
        return name, rest[0] if rest else ""

    def begins_record(self, text: str) -> bool:
        """Whether a line has a first word (or first columns) that cannot be sequence, and more behind it."""
        name, rest = self(text)
        return bool(rest.strip()) and not self._plain.issuperset(name.replace(" ", ""))

    def characters(self, text: str) -> str:
        """White space removed; in NEXUS `{AG}` and `(AG)` become one code."""
        text = "".join(text.split())
        return self._POLYMORPHISM.sub(_union, text) if self._nexus and ("{" in text or "(" in text) else text


def _union(found: re.Match[str]) -> str:
    codes = encode(found[1] or found[2] or "")
    if len(codes) == 0 or not codes.all():
        return found[0]
    return LETTERS[int(np.bitwise_or.reduce(codes))]


def assemble(matrix: Matrix, source: str) -> Alignment:
    """The alignment, or an `AlignmentError` with everything that is wrong with it."""
    problems = problems_of(matrix)
    if problems:
        ordered = sorted(problems, key=lambda problem: problem[0])
        raise AlignmentError(*(_place(source, line) + message for line, message in ordered))
    first = matrix.records[0].sequence
    sites = np.array([_codes(matrix, record, first) for record in matrix.records])
    taxa = tuple(record.name for record in matrix.records)
    warnings = [_place(source, line) + message for line, message in matrix.warnings]
    warnings += [f"{source}: {message}" for message in _remarks(taxa, sites)]
    return Alignment(taxa, sites, source, tuple(warnings))


def problems_of(matrix: Matrix) -> list[Problem]:
    """Everything that keeps the matrix from being an alignment."""
    records, problems = matrix.records, list(matrix.problems)
    if not records:
        return problems or [(0, "no sequences found")]
    if matrix.n_taxa is not None and len(records) != matrix.n_taxa:
        problems.append((0, f"{_count(len(records), 'taxon', 'taxa')} found, {matrix.n_taxa} announced"))
    elif len(records) < 3:
        problems.append((0, f"{_count(len(records), 'taxon', 'taxa')} found; a tree needs at least 3"))
    if kind := _foreign(records):
        return [*problems, (records[0].line, f"these look like {kind}; VaiPhy reads nucleotides (DNA or RNA) only")]
    return problems + _name_problems(records) + _size_problems(matrix) + _character_problems(matrix)


def _place(source: str, line: int) -> str:
    return f"{source}, line {line}: " if line else f"{source}: "


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _foreign(records: list[Record]) -> str:
    """What the characters are if they are clearly something else than nucleotides."""
    letters = Counter[str]()
    for record in records:
        letters.update(record.sequence.upper())
    amino = {letter: letters[letter] for letter in AMINO_ACIDS if letters[letter]}
    total = sum(n for letter, n in letters.items() if letter.isalpha())
    if len(amino) >= 3 and sum(amino.values()) > 0.1 * total:
        return "amino acids"
    digits = sum(letters[digit] for digit in "0123456789")
    return "morphological characters or other numbers" if digits > 0.5 * (total + digits) else ""


def _name_problems(records: list[Record]) -> list[Problem]:
    problems, seen = [], dict[str, int]()
    for record in records:
        if not record.name:
            problems.append((record.line, "a sequence without a name"))
        elif record.name in seen:
            first = seen[record.name]
            problems.append((record.line, f"taxon {record.name!r} is already in line {first}; names must differ"))
        seen.setdefault(record.name, record.line)
    return problems


def _size_problems(matrix: Matrix) -> list[Problem]:
    sizes = [record.size for record in matrix.records]
    expected = matrix.expected_size
    reason = "as most others" if matrix.n_sites is None else "from the header"
    if len(set(sizes)) == 1 and sizes[0] not in (0, expected):
        return [(0, f"every sequence has {sizes[0]} sites, the header announces {expected}")]
    problems = []
    for record, size in zip(matrix.records, sizes):
        if size == 0:
            problems.append((record.line, f"taxon {record.name!r} has no sequence"))
        elif size != expected:
            message = f"taxon {record.name!r} has {size} sites, expected {expected} ({reason})"
            problems.append((record.line, message + "; sequences must be aligned"))
    return problems


def _character_problems(matrix: Matrix) -> list[Problem]:
    problems, dots = [], 0
    first = matrix.records[0].sequence
    expected = matrix.expected_size
    for record in matrix.records:
        sequence = record.sequence
        codes = _codes(matrix, record, first)
        bad = np.flatnonzero(codes == 0).tolist()
        if matrix.dot_hint and matrix.matchchar != ".":
            dotted = [column for column in bad if sequence[column] == "."]
            if dotted and not dots:
                place = f"taxon {record.name!r}, column {dotted[0] + 1}: '.' {matrix.dot_hint}"
                problems.append((record.line_of(dotted[0]), place))
            dots += len(dotted)
            bad = [column for column in bad if sequence[column] != "."]
        if bad:
            problems.append((record.line_of(bad[0]), _bad_characters(record.name, sequence, bad, matrix.matchchar)))
        elif len(codes) == expected > 0 and (codes == MISSING).all():
            problems.append((record.line, f"taxon {record.name!r} has no data: every site is a gap or missing"))
    return problems


def _bad_characters(name: str, sequence: str, bad: list[int], matchchar: str) -> str:
    start = f"taxon {name!r}, column {bad[0] + 1}: {sequence[bad[0]]!r} "
    start += "repeats nothing in the first taxon" if sequence[bad[0]] == matchchar else "is no nucleotide code"
    if len(bad) == 1:
        return start
    shown = ", ".join(f"{sequence[column]!r} in column {column + 1}" for column in bad[1:5])
    return f"{start}; also {shown}" + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")


def _codes(matrix: Matrix, record: Record, first: str) -> NDArray[np.uint8]:
    """Bit sets of a record, symbols of the file resolved; 0 where the character means nothing."""
    sequence = record.sequence
    if matrix.matchchar and record is not matrix.records[0] and matrix.matchchar in sequence:
        padded = first.ljust(len(sequence), matrix.matchchar)
        sequence = "".join(above if own == matrix.matchchar else own for own, above in zip(sequence, padded))
    table = {ord(case): "?" for symbol in matrix.missing for case in (symbol.lower(), symbol.upper())}
    if matrix.matchchar:
        table[ord(matrix.matchchar)] = "\0"
    return encode(sequence.translate(table) if table else sequence)


def _remarks(taxa: tuple[str, ...], sites: NDArray[np.uint8]) -> list[str]:
    """What is odd about a valid alignment: identical sequences, columns without data, names that Newick must quote."""
    remarks, groups = [], dict[bytes, list[str]]()
    for taxon, row in zip(taxa, sites):
        groups.setdefault(row.tobytes(), []).append(taxon)
    remarks += [f"identical sequences: {_listed(group)}" for group in groups.values() if len(group) > 1]
    empty = np.flatnonzero((sites == MISSING).all(axis=0))
    if len(empty):
        columns = _listed([str(column + 1) for column in empty], 8)
        remarks.append(f"{_count(len(empty), 'column', 'columns')} without data in any taxon: {columns}")
    if quoted := [taxon for taxon in taxa if re.search(r"[\s()\[\]{}:;,'\"=]", taxon)]:
        remarks.append(f"names that Newick needs in quotes: {_listed(quoted)}")
    return remarks


def _listed(items: list[str], at_most: int = 6) -> str:
    return ", ".join(items[:at_most]) + (f" and {len(items) - at_most} more" if len(items) > at_most else "")
