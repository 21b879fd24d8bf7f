"""How much a reader takes in before it refuses: a file that unpacks to a thousand times its size must not fill the memory.

A file may also be harmless in bytes and yet a hundred times as large once it is taken apart: lines and vertices are counted too,
before that happens. All limits can be set by environment variables, which the messages name.
"""

import os

from vaiphy.errors import InputError

#: Environment variable -> default: megabytes (10^6 bytes) of text, unpacked; its lines; characters (taxa x sites) of an
#: alignment; vertices of all trees of a file, of which one tree may have a tenth.
MAX_MB, MAX_LINES = "VAIPHY_MAX_MB", "VAIPHY_MAX_LINES"
MAX_CHARACTERS, MAX_VERTICES = "VAIPHY_MAX_CHARACTERS", "VAIPHY_MAX_VERTICES"
DEFAULTS = {MAX_MB: 500, MAX_LINES: 4_000_000, MAX_CHARACTERS: 200_000_000, MAX_VERTICES: 50_000_000}
#: A tree counts as so many vertices at least, since the smallest one takes memory too.
SMALLEST_TREE = 50


def limit(name: str) -> int:
    """The limit in force; a variable that does not hold a positive whole number is an error."""
    text = os.environ.get(name, "").strip()
    if not text:
        return DEFAULTS[name]
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 15 and int(text) > 0):
        raise InputError(f"the environment variable {name} is {text!r}; it must be a positive whole number")
    return int(text)


def max_bytes() -> int:
    """Bytes of text that a reader takes."""
    return 1_000_000 * limit(MAX_MB)


def too_long(source: str, packed: bool = False) -> str:
    """What is said of a text that is too long."""
    what = "unpacks to more than" if packed else "is larger than"
    return f"{source}: the file {what} {limit(MAX_MB):,} MB; if it is meant to be that large, set {MAX_MB} to a larger number"


def too_many_lines(text: str) -> str:
    """What is said of a text with too many lines, nothing if there are not too many."""
    most = limit(MAX_LINES)
    if text.count("\n") <= most:
        return ""
    return f"the file has more than {most:,} lines; if there is enough memory, set {MAX_LINES} to a larger number"


class VertexCount:
    """The vertices of the trees of a file, counted before each is taken apart."""

    def __init__(self) -> None:
        self._most = limit(MAX_VERTICES)
        self._seen = 0

    def add(self, newick: str) -> str:
        """Count one tree: what is said if it is too large, or if the trees are too many, else nothing.

        Each vertex but the root has a parenthesis or a comma before it; commas inside comments count as well.
        """
        found = newick.count("(") + newick.count(",")
        self._seen += max(found, SMALLEST_TREE)
        remedy = f"if there is enough memory, set {MAX_VERTICES} to a larger number"
        if found > self._most // 10:
            return f"a tree of more than {self._most // 10:,} vertices; {remedy} (one tree may have a tenth of it)"
        if self._seen > self._most:
            return f"the trees have more than {self._most:,} vertices in all (each {SMALLEST_TREE} at least); {remedy}"
        return ""


def too_many_characters(n_taxa: int, n_sites: int) -> str:
    """What is said of too large an alignment, nothing if it is not too large."""
    most = limit(MAX_CHARACTERS)
    if n_taxa * n_sites <= most:
        return ""
    return (
        f"{n_taxa:,} {'taxon' if n_taxa == 1 else 'taxa'} x {n_sites:,} sites are more than {most:,} characters; "
        f"if there is enough memory, set {MAX_CHARACTERS} to a larger number"
    )
