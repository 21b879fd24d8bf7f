"""Alphabets: codes as sets of states, text both ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaiphy import alignment
from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA, alphabet_named
from vaiphy.errors import InputError

ALPHABETS = [DNA, RNA, AA, BIN, MORPH(3), MORPH(10), MORPH(36)]


def test_nucleotides_are_coded_as_in_alignments():
    assert DNA.codes == alignment.IUPAC
    text = "ACGTUMRWSYKVHDBNXO?-acgtz\u00e9"
    assert DNA.encode(text).tolist() == alignment.encode(text).tolist()
    assert RNA.codes == DNA.codes
    assert (DNA.decode(DNA.encode("ACGU")), RNA.decode(RNA.encode("ACGT"))) == ("ACGT", "ACGU")


@pytest.mark.parametrize("alphabet", ALPHABETS, ids=lambda a: f"{a.name}{a.n_states}")
@given(data=st.data())
def test_text_and_back(alphabet, data):
    codes = data.draw(st.lists(st.integers(1, alphabet.everything), max_size=30))
    encoded = alphabet.encode(alphabet.decode(np.array(codes, dtype=alphabet.dtype)))
    assert encoded.tolist() == codes
    assert encoded.dtype == alphabet.dtype


def test_integers_are_as_small_as_they_can_be():
    assert [a.dtype.itemsize for a in ALPHABETS] == [1, 1, 4, 1, 1, 4, 8]


def test_sets_of_states_and_what_is_none():
    assert MORPH(4).encode("0{1 3}(0,2)?-4").tolist() == [1, 0b1010, 0b101, 15, 15, 0]
    assert AA.encode("bzjx*")[:3].tolist() == [0b1100, 0b1100000, (1 << 9) | (1 << 10)]
    assert (AA.encode("x*?-") == AA.everything).all()
    assert BIN.encode("01?{}{2}(1").tolist() == [1, 2, 3, 0, 0, 0, 2]


def test_indicators():
    assert DNA.indicators(DNA.encode("AR-")).tolist() == [[1, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 1]]
    assert AA.indicators(np.full((2, 5), AA.everything)).sum() == 2 * 20 * 5
    assert MORPH(36).indicators(MORPH(36).encode("Z"))[35, 0] == 1


def test_unknown_sequence_type():
    assert alphabet_named("aa") is AA
    with pytest.raises(InputError, match="sequence type 'CODON' is unknown; known are DNA, RNA, AA, BIN, MORPH"):
        alphabet_named("CODON")
    with pytest.raises(InputError, match="1 states"):
        MORPH(1)
