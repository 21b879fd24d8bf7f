"""Files in and out: alignments (FASTA, PHYLIP, NEXUS), trees (Newick, NEXUS) and result files.

Alignments: `read_alignment`, `parse_alignment`, `write_alignment`. Trees: the modules `newick` and `nexus`, and
`read_trees`, which finds out which of the two a file is.
"""

from vaiphy.formats.alignments import FORMATS, parse_alignment, read_alignment, write_alignment
from vaiphy.formats.nexus import TreeEntry
from vaiphy.formats.trees import parse_trees, read_trees

__all__ = [
    "FORMATS",
    "TreeEntry",
    "parse_alignment",
    "parse_trees",
    "read_alignment",
    "read_trees",
    "write_alignment",
]
