"""Kinds of sites, missing data, composition and duplicates, counted by hand."""

from dataclasses import replace

import numpy as np
import pytest

from vaiphy.alignment import compress
from vaiphy.formats import parse_alignment
from vaiphy.summary.description import describe

# Columns: constant; constant with R and gap; informative; singleton; empty; variable by ambiguity only; three bases.
DATA = parse_alignment(">a\nAACA-RA\n>b\nAACA-YC\n>c\nARGA-AA\n>d\nA-GT-CG\n>e\nA-GT-CG\n")


@pytest.mark.parametrize("data", [DATA, compress(DATA)], ids=["alignment", "patterns"])
def test_counts(data):
    found = describe(data)
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


def test_a_pattern_that_repeats_counts_as_often_as_it_does():
    twice = replace(DATA, sites=np.concatenate([DATA.sites, DATA.sites[:, ::-1]], axis=1))
    once, found = describe(DATA), describe(twice)
    assert (found.n_sites, found.n_patterns) == (14, 7)
    for name in ("n_constant", "n_informative", "n_singleton", "n_empty", "n_ambiguous"):
        assert getattr(found, name) == 2 * getattr(once, name)
    for name in ("missing", "gc", "composition"):
        assert getattr(found, name).tolist() == getattr(once, name).tolist()
