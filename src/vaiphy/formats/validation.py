"""From the records of a file to an alignment, or to a list of everything that is wrong with it, in one pass."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment, AlignmentError
from vaiphy.alphabets import Alphabet
from vaiphy.formats.limits import too_many_characters
from vaiphy.formats.matrix import Matrix, Problem, Record, resolved
from vaiphy.formats.names import turning
from vaiphy.formats.remarks import remarks


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


def problems_of(matrix: Matrix) -> list[Problem]:
    """Everything that keeps the matrix from being an alignment."""
    records, problems = matrix.records, list(matrix.problems)
    if not records:
        return problems or [(0, "no sequences found")]
    if matrix.n_taxa is not None and len(records) != matrix.n_taxa:
        problems.append((0, f"{_count(len(records), 'taxon', 'taxa')} found, {matrix.n_taxa} announced"))
    elif len(records) < 3:
        problems.append((0, f"{_count(len(records), 'taxon', 'taxa')} found; a tree needs at least 3, an analysis 4"))
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
                (record.line, f"taxon {record.name!r}: {character} reverses the text that follows it; rename the taxon")
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
