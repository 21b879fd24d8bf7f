"""PHYLIP: a line with the numbers of taxa and sites, then names with their sequences.

Names are ten columns wide (strict) or end at the first white space (relaxed); sequences follow one after the other
(sequential) or in blocks (interleaved). Nothing in a file says which: all four readings are tried, and one must fit.
"""

import re
import string
from itertools import product

from vaiphy.alphabets import DNA
from vaiphy.formats.matrix import Matrix, Problem, Splitter, interleaved, sequential
from vaiphy.formats.names import unbroken_names
from vaiphy.formats.validation import problems_of

NAMES = ("relaxed", "strict")
LAYOUTS = ("interleaved", "sequential")
STRICT_WIDTH = 10
DOT_HINT = (
    "can mean 'as in the first sequence' or missing data in PHYLIP; say which with --matchchar . or --missing . "
    "(in Python: matchchar='.' or missing='.')"
)
ANYTHING = string.ascii_uppercase + string.digits + "?-*"
HEADER = re.compile(r"\s*([0-9]{1,9})[\s,]+([0-9]{1,9})(\s+[A-Za-z ]*)?\s*$")


def read(text: str, variant: str = "", missing: str = "", matchchar: str = "", seqtype: str = "") -> Matrix:
    """The records of PHYLIP text; a `variant` (one of NAMES or LAYOUTS) narrows the readings tried.

    Words that cannot be nucleotides are taken for names; only if no reading fits, any word may be sequence.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    header = HEADER.match(lines[0][1]) if lines else None
    if header is None:
        return Matrix([], problems=[(1, "the first line of a PHYLIP file holds the numbers of taxa and sites, such as '12 898'")])
    n_taxa, n_sites = int(header[1]), int(header[2])
    readings: list[list[Matrix]] = []
    for letters in ("".join(DNA.codes), ANYTHING) if seqtype in ("", "DNA", "RNA") else (ANYTHING,):
        readings.append([])
        for names, layout in product(NAMES, LAYOUTS):
            if variant in ("", names, layout):
                split = Splitter(missing + matchchar, width=STRICT_WIDTH if names == "strict" else 0, letters=letters)
                records, problems = sequential(lines[1:], n_taxa, n_sites, split), list[Problem]()
                if layout == "interleaved" and len(lines) - 1 > n_taxa:
                    records, problems = interleaved(lines[1:], n_taxa, split)
                readings[-1].append(Matrix(records, n_taxa, n_sites, missing, matchchar, DOT_HINT, seqtype, problems=problems))
        if any(matrix.fits for matrix in readings[-1]):
            return _choose(readings[-1])
    return _choose(readings[0])


def write(taxa: tuple[str, ...], sequences: list[str]) -> str:
    """Relaxed sequential PHYLIP text; white space in names becomes underscores."""
    names = unbroken_names(taxa)
    width = max(map(len, names)) + 2
    rows = [f"{name:<{width}}{sequence}\n" for name, sequence in zip(names, sequences)]
    return f"{len(taxa)} {len(sequences[0])}\n" + "".join(rows)


def _choose(readings: list[Matrix]) -> Matrix:
    """The one reading that fits; else the one with the fewest problems; two different ones that fit are a problem."""
    fitting = [matrix for matrix in readings if matrix.fits]
    sound = [matrix for matrix in fitting if not problems_of(matrix)] if len(fitting) > 1 else fitting
    if not sound:
        return min(fitting or readings, key=lambda matrix: len(problems_of(matrix)))
    contents = [[(record.name, record.sequence) for record in matrix.records] for matrix in sound]
    if any(content != contents[0] for content in contents[1:]):
        message = "this can be read in more than one way; say --format phylip-interleaved or --format phylip-sequential"
        sound[0].problems.append((0, message))
    return sound[0]
