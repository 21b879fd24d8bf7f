"""Kinds of sites, missing data, composition and duplicates, counted by hand."""

import numpy as np

from vaiphy.description import describe
from vaiphy.formats import parse_alignment

# Columns: constant; constant with R and gap; informative; singleton; empty; variable by ambiguity only; three bases.
DATA = parse_alignment(">a\nAACA-RA\n>b\nAACA-YC\n>c\nARGA-AA\n>d\nA-GT-CG\n>e\nA-GT-CG\n")


def test_counts():
    found = describe(DATA)
    assert (found.n_taxa, found.n_sites, found.n_patterns) == (5, 7, 7)
    assert found.n_constant == 3
    assert found.n_empty == 1
    assert found.n_informative == 3  # columns 3, 4 and 7
    assert found.n_singleton == 1
    assert found.n_ambiguous == 3
    assert found.identical == (("d", "e"),)
    assert np.allclose(found.missing, [1 / 7, 1 / 7, 1 / 7, 2 / 7, 2 / 7])
    assert np.allclose(found.composition, [0.52, 0.2, 0.2, 0.08])
    assert np.allclose(found.gc, [1 / 5, 2 / 5, 1 / 5, 3 / 5, 3 / 5])
    assert np.isclose(found.missing_fraction, 7 / 35)
