"""Bit sets, compression and the folding of states."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vaiphy.alignment import IUPAC, Alignment, bit_planes, compress, decode, encode, fold_states

SITES = st.tuples(st.integers(1, 6), st.integers(0, 30)).flatmap(
    lambda shape: arrays(np.uint8, shape, elements=st.integers(1, 15))
)


def aligned(sites):
    return Alignment(tuple(f"t{k}" for k in range(len(sites))), sites)


def test_codes():
    for letter, bits in IUPAC.items():
        assert encode(letter + letter.lower()).tolist() == [bits, bits]
    assert encode("Z*é→").tolist() == [0, 0, 0, 0]
    assert decode(encode("ACGTMRWSYKVHDBN")) == "ACGTMRWSYKVHDB-"


@given(SITES)
def test_compression_loses_nothing(sites):
    patterns = compress(aligned(sites))
    assert np.array_equal(patterns.codes[:, patterns.site_pattern], sites)
    assert patterns.counts.sum() == sites.shape[1]
    assert np.array_equal(np.bincount(patterns.site_pattern, minlength=patterns.n_patterns), patterns.counts)
    columns = {column.tobytes() for column in sites.T}
    assert patterns.n_patterns == len(columns)


@given(SITES, st.permutations(range(4)))
def test_folding_ignores_the_names_of_states(sites, order):
    table = np.array([sum(1 << order[b] for b in range(4) if code >> b & 1) for code in range(16)], dtype=np.uint8)
    mixed = np.where(np.arange(sites.shape[1]) % 2, sites, table[sites])
    first, second = fold_states(compress(aligned(sites))), fold_states(compress(aligned(mixed)))
    assert first.n_patterns == second.n_patterns
    assert np.array_equal(first.codes[:, first.site_pattern], second.codes[:, second.site_pattern])
    assert first.counts.sum() == sites.shape[1]


@pytest.mark.parametrize("code", range(16))
def test_bit_planes(code):
    planes = bit_planes(np.array([[code]], dtype=np.uint8))
    assert planes.shape == (1, 4, 1)
    assert sum(int(planes[0, base, 0]) << base for base in range(4)) == code
