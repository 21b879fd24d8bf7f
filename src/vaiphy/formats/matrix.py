"""What every alignment reader finds, and its validation: all problems of a file in one pass."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment, AlignmentError
from vaiphy.alphabets import DNA, Alphabet, mixed
from vaiphy.formats.limits import too_many_characters
from vaiphy.formats.names import turning
from vaiphy.formats.remarks import remarks
from vaiphy.formats.seqtype import alphabet_of

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
    """The records of a file, what it says about its size and symbols, and what was wrong or odd on the way.

    `seqtype` names the alphabet ("" if it must be guessed). Each site is one character of a record's text; those that stand
    for a set of states (`{01}` in NEXUS) are keys of `sets`, with what was in the brackets. `mixed` are (first site, behind
    the last, kind of data) of a file with several kinds.
    """

    records: list[Record]
    n_taxa: int | None = None
    n_sites: int | None = None
    missing: str = ""
    matchchar: str = ""
    dot_hint: str = ""
    seqtype: str = ""
    sets: dict[str, str] = field(default_factory=dict)
    mixed: list[tuple[int, int, str]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)

    @cached_property
    def blocks(self) -> tuple[tuple[int, int, Alphabet], ...]:
        """`mixed` with the alphabet of each; used once the records are there."""
        return tuple((start, stop, alphabet_of(_letters(self, start, stop), kind)[0]) for start, stop, kind in self.mixed)

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


#: Characters of Unicode's private area stand for sets of states, one for each set that a file has.
_FIRST_MARK, _MOST_SETS = 0xE000, 6400


class Splitter:
    """How a line is cut into name and characters: at the first white space, behind column `width`, or behind quotes."""

    _QUOTED = re.compile(r"'((?:[^'\n]|'')*)'")
    _POLYMORPHISM = re.compile(r"\{([^{}()]*)\}|\(([^{}()]*)\)")

    def __init__(self, symbols: str, width: int = 0, nexus: bool = False, letters: str = "".join(DNA.codes)) -> None:
        self._plain = frozenset(letters + letters.lower() + symbols + ("{}()" if nexus else ""))
        self._width, self._nexus = width, nexus
        self.sets: dict[str, str] = {}
        self._marks: dict[str, str] = {}

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
        """White space removed; in NEXUS `{AG}` and `(AG)` become one character, a key of `sets`."""
        text = "".join(text.split())
        return self._POLYMORPHISM.sub(self._mark, text) if self._nexus and ("{" in text or "(" in text) else text

    def _mark(self, found: re.Match[str]) -> str:
        inside = "".join(sorted(set((found[1] or found[2] or "").replace(",", "").upper())))
        if inside and inside not in self._marks and len(self._marks) < _MOST_SETS:
            mark = chr(_FIRST_MARK + len(self._marks))
            self._marks[inside], self.sets[mark] = mark, inside
        return self._marks.get(inside, found[0])


def assemble(matrix: Matrix, source: str) -> Alignment:
    """The alignment, or an `AlignmentError` with everything that is wrong with it."""
    problems = problems_of(matrix)
    if problems:
        ordered = sorted(problems, key=lambda problem: problem[0])
        raise AlignmentError(*(_place(source, line) + message for line, message in ordered))
    first = matrix.records[0].sequence
    alphabet, doubt = resolved(matrix)
    sites = np.array([_codes(matrix, record, first, alphabet) for record in matrix.records], dtype=alphabet.dtype)
    taxa = tuple(record.name for record in matrix.records)
    warnings = [_place(source, line) + message for line, message in matrix.warnings]
    warnings += [f"{source}: {message}" for message in ([doubt] if doubt else []) + remarks(taxa, sites, alphabet)]
    return Alignment(taxa, sites, source, tuple(warnings), alphabet=alphabet, blocks=matrix.blocks)


def resolved(matrix: Matrix) -> tuple[Alphabet, str]:
    """The alphabet of a matrix and, where it had to be guessed and the guess is not plain, a sentence that says so."""
    if matrix.blocks:
        return mixed(tuple(alphabet for _, _, alphabet in matrix.blocks)), ""
    return alphabet_of(_letters(matrix), matrix.seqtype)


def _letters(matrix: Matrix, start: int = 0, stop: int | None = None) -> Counter[str]:
    """Characters of some sites in upper case, those inside sets of states too."""
    letters = Counter[str]()
    for record in matrix.records:
        letters.update(record.sequence[start:stop].upper())
    for symbol in matrix.missing.upper() + matrix.matchchar.upper():
        letters.pop(symbol, None)
    for mark, inside in matrix.sets.items():
        for letter in inside:
            letters[letter] += letters[mark]
    return letters


def problems_of(matrix: Matrix) -> list[Problem]:
    """Everything that keeps the matrix from being an alignment."""
    records, problems = matrix.records, list(matrix.problems)
    if not records:
        return problems or [(0, "no sequences found")]
    if matrix.n_taxa is not None and len(records) != matrix.n_taxa:
        problems.append((0, f"{_count(len(records), 'taxon', 'taxa')} found, {matrix.n_taxa} announced"))
    elif len(records) < 3:
        problems.append((0, f"{_count(len(records), 'taxon', 'taxa')} found; a tree needs at least 3"))
    if message := too_many_characters(len(records), max(record.size for record in records)):
        return [*problems, (0, message)]
    return problems + _name_problems(records) + _size_problems(matrix) + _character_problems(matrix)


def _place(source: str, line: int) -> str:
    return f"{source}, line {line}: " if line else f"{source}: "


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def _name_problems(records: list[Record]) -> list[Problem]:
    problems, seen = [], dict[str, int]()
    for record in records:
        if not record.name:
            problems.append((record.line, "a sequence without a name"))
        elif character := turning(record.name):
            problems.append(
                (record.line, f"taxon {record.name!r}: {character} turns the text behind it around; rename the taxon")
            )
        elif record.name in seen:
            first = f"is already in line {seen[record.name]}" if record.line else "occurs twice"
            problems.append((record.line, f"taxon {record.name!r} {first}; names must differ"))
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
    alphabet, _ = resolved(matrix)
    for record in matrix.records:
        sequence = record.sequence
        codes = _codes(matrix, record, first, alphabet)
        bad = np.flatnonzero(codes == 0).tolist()
        if matrix.dot_hint and matrix.matchchar != ".":
            dotted = [column for column in bad if sequence[column] == "."]
            if dotted and not dots:
                place = f"taxon {record.name!r}, column {dotted[0] + 1}: '.' {matrix.dot_hint}"
                problems.append((record.line_of(dotted[0]), place))
            dots += len(dotted)
            bad = [column for column in bad if sequence[column] != "."]
        if bad:
            problems.append((record.line_of(bad[0]), _bad_characters(record.name, sequence, bad, matrix, alphabet)))
        elif len(codes) == expected > 0 and (codes == alphabet.everything).all():
            problems.append((record.line, f"taxon {record.name!r} has no data: every site is a gap or missing"))
    return problems


def _bad_characters(name: str, sequence: str, bad: list[int], matrix: Matrix, alphabet: Alphabet) -> str:
    shown = [f"'{{{matrix.sets[c]}}}'" if (c := sequence[column]) in matrix.sets else repr(c) for column in bad[:5]]
    start = f"taxon {name!r}, column {bad[0] + 1}: {shown[0]} "
    start += "repeats nothing in the first taxon" if sequence[bad[0]] == matrix.matchchar else f"is not {alphabet.noun}"
    if len(bad) == 1:
        return start
    others = ", ".join(f"{character} in column {column + 1}" for character, column in zip(shown[1:], bad[1:]))
    return f"{start}; also {others}" + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")


def _codes(matrix: Matrix, record: Record, first: str, alphabet: Alphabet) -> NDArray:
    """Bit sets of a record, symbols of the file resolved; 0 where the character means nothing."""
    sequence = record.sequence
    if matrix.matchchar and record is not matrix.records[0] and matrix.matchchar in sequence:
        padded = first.ljust(len(sequence), matrix.matchchar)
        sequence = "".join(above if own == matrix.matchchar else own for own, above in zip(sequence, padded))
    if not matrix.blocks:
        return _encoded(matrix, sequence, alphabet)
    pieces = []
    for start, stop, own in matrix.blocks:
        codes = _encoded(matrix, sequence[start:stop], own).astype(alphabet.dtype)
        pieces.append(np.where(codes == own.everything, alphabet.dtype.type(alphabet.everything), codes))
    return np.concatenate(pieces)


def _encoded(matrix: Matrix, sequence: str, alphabet: Alphabet) -> NDArray:
    table = {ord(case): "?" for symbol in matrix.missing for case in (symbol.lower(), symbol.upper())}
    if matrix.matchchar:
        table[ord(matrix.matchchar)] = "\0"
    codes = alphabet.encode_letters(sequence.translate(table) if table else sequence)
    if matrix.sets:
        for column, character in enumerate(sequence):
            if character in matrix.sets:
                codes[column] = alphabet.encode(f"{{{matrix.sets[character]}}}")[0]
    return codes
