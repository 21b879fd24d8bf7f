"""FASTA: a line `>name description`, then the sequence over any number of lines."""

from vaiphy.formats.matrix import Matrix, Record
from vaiphy.formats.names import unbroken_names


def read(text: str) -> Matrix:
    """The records of FASTA text.

    A name is the first word behind `>`; where first words are not unique but whole lines are, the whole line with
    underscores for spaces. Lines that begin with `;` are comments. `.` is missing data.
    """
    matrix = Matrix([], missing=".")
    headers = []
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if content.startswith(">"):
            words = content[1:].split()
            headers.append("_".join(words))
            matrix.records.append(Record(words[0] if words else "", number))
        elif content and not content.startswith(";"):
            if matrix.records:
                matrix.records[-1].pieces.append((number, "".join(content.split())))
            elif not matrix.problems:
                matrix.problems.append((number, "text before the first '>'"))
    names = {record.name for record in matrix.records}
    if len(names) < len(matrix.records) == len(set(headers)):
        for record, header in zip(matrix.records, headers):
            record.name = header
        matrix.warnings.append((0, "the first words behind '>' are not unique, so whole lines are taken as names"))
    for record in matrix.records:
        if dotted := next((line for line, piece in record.pieces if "." in piece), 0):
            matrix.warnings.append((dotted, "'.' is read as missing data"))
            break
    return matrix


def write(taxa: tuple[str, ...], sequences: list[str]) -> str:
    """FASTA text, one line a sequence; white space in names becomes underscores, since a name ends at the first blank."""
    return "".join(f">{name}\n{sequence}\n" for name, sequence in zip(unbroken_names(taxa), sequences))
