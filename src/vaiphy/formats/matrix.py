"""What every alignment reader finds: records, sizes and symbols of a file (`validation` makes an alignment of it)."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from vaiphy.alphabets import DNA, Alphabet, mixed
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
