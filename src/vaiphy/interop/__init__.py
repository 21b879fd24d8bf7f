"""Results as objects of other libraries: one module for each library, which it imports only when it is asked to convert.

`Analysis.to_dendropy()` and its like lead here. Alignments come from other libraries through `formats.objects`.
"""

from vaiphy.interop import arviz, biopython, cogent3, dendropy, ete, pandas, toytree

__all__ = ["arviz", "biopython", "cogent3", "dendropy", "ete", "pandas", "toytree"]
