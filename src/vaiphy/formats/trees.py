"""Trees from files, Newick or NEXUS, found from their content."""

from collections.abc import Sequence
from pathlib import Path

from vaiphy.formats import newick, nexus
from vaiphy.formats.files import read_text
from vaiphy.formats.nexus import TreeEntry
from vaiphy.formats.nexus_blocks import is_nexus
from vaiphy.trees.tree import TreeError


def read_trees(path: str | Path, taxa: Sequence[str] | None = None) -> list[TreeEntry]:
    """All trees of a Newick or NEXUS file (also gzipped; "-" is standard input), taxa numbered as in `taxa` if given.

    Raises `TreeError` that names the file, the line and the tree.
    """
    source = "standard input" if str(path) == "-" else str(path)
    text = read_text(path, TreeError)
    try:
        return parse_trees(text, taxa)
    except TreeError as error:
        places = (", " if problem.startswith("line ") else ": " for problem in error.problems)
        raise TreeError(*(source + place + problem for place, problem in zip(places, error.problems))) from None


def parse_trees(text: str, taxa: Sequence[str] | None = None) -> list[TreeEntry]:
    """All trees of a Newick or NEXUS text."""
    if is_nexus(text):
        return nexus.read_trees(text, taxa)
    trees = newick.read_trees(text, taxa)
    if not trees:
        raise TreeError("no tree found")
    return [TreeEntry(tree) for tree in trees]
