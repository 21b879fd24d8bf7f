"""Files in and out: alignments (FASTA, PHYLIP, NEXUS), trees (Newick, NEXUS) and result files.

Alignments: `read_alignment`, `parse_alignment`, `write_alignment`. Trees: the modules `newick` and `nexus`, and
`read_trees`, which finds out which of the two a file is.
"""

from vaiphy.formats.alignments import FORMATS, parse_alignment, read_alignment, write_alignment

__all__ = ["FORMATS", "parse_alignment", "read_alignment", "write_alignment"]
