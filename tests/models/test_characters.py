"""Frequencies counted in the data, and characters grouped by their number of states."""

import numpy as np
import pytest

from vaiphy.alphabets import DNA, MORPH
from vaiphy.models.alphabets import frequencies_of, group_by_states, narrowed


def test_frequencies_share_ambiguities_out():
    codes = np.stack([DNA.encode("AAC-R"), DNA.encode("GCC--")])
    counts = np.array([1.0, 1.0, 1.0, 5.0, 1.0])
    a, c, g, t = frequencies_of(codes, counts, DNA)
    # A 2, C 3, G 1 and one R, which is A or G in the proportion of their frequencies, two to one.
    assert (a, c, g, t) == pytest.approx(((2 + 2 / 3) / 7, 3 / 7, (1 + 1 / 3) / 7, 0), abs=1e-9)
    assert frequencies_of(codes[:, 3:4], counts[:1], DNA).tolist() == [0.25] * 4


def test_characters_by_their_number_of_states():
    rows = ["0120?", "01?1?", "00{13}0?"]
    alphabet = MORPH(10)
    codes = np.stack([alphabet.encode(row) for row in rows])
    groups = group_by_states(codes, alphabet)
    assert {k: v.tolist() for k, v in groups.items()} == {2: [0, 1, 3, 4], 4: [2]}
    assert narrowed(codes[:, groups[4]], 4).ravel().tolist() == [4, 15, 0b1010]
    assert (narrowed(codes[:, groups[2]], 2)[:, 3] == 3).all()
