"""What models ask of characters: frequencies of states, and groups by number of states. Alphabets are in `vaiphy.alphabets`."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA, Alphabet, alphabet_named

__all__ = ["AA", "BIN", "DNA", "MORPH", "RNA", "Alphabet", "alphabet_named", "frequencies_of", "group_by_states", "narrowed"]


def frequencies_of(codes: NDArray, counts: NDArray[np.float64], alphabet: Alphabet) -> NDArray[np.float64]:
    """Frequencies of the states in the data, (S,); `codes` (n_taxa, P), `counts` (P,). Missing data are left out.

    An ambiguity code counts as its states in proportion to their frequencies, repeated until these settle.
    """
    totals: dict[int, float] = {}
    for row in np.asarray(codes):
        for code, weight in zip(*_weighted(row, counts)):
            totals[code] = totals.get(code, 0.0) + weight
    totals.pop(alphabet.everything, None)
    sets = alphabet.indicators(np.array(list(totals), dtype=np.uint64))  # (S, n_codes)
    weights = np.array(list(totals.values()))
    frequencies = np.full(alphabet.n_states, 1.0 / alphabet.n_states)
    if not weights.sum() > 0:
        return frequencies
    for _ in range(100):
        shares = sets * frequencies[:, None]
        inside = shares.sum(axis=0)
        shares /= np.where(inside > 0, inside, 1.0)
        updated = shares @ weights / weights.sum()
        settled = np.abs(updated - frequencies).max() < 1e-12
        frequencies = updated
        if settled:
            break
    return frequencies


def _weighted(row: NDArray, counts: NDArray[np.float64]) -> tuple[list[int], list[float]]:
    distinct, place = np.unique(row, return_inverse=True)
    return distinct.tolist(), np.bincount(place.ravel(), weights=counts, minlength=len(distinct)).tolist()


def group_by_states(codes: NDArray, alphabet: Alphabet) -> dict[int, NDArray[np.int64]]:
    """Characters by their number of states, MrBayes's convention: the highest label seen plus one, at least two.

    `codes` (n_taxa, n_characters); the value is the indices of the characters. Missing data do not count, sets of states
    do. Each group is one part with the model Mk of that many states; `narrowed` gives its codes.
    """
    informative = np.where(codes == alphabet.everything, 0, codes).astype(np.uint64)
    union = np.bitwise_or.reduce(informative, axis=0).tolist() if codes.shape[0] else [0] * codes.shape[1]
    n_states = np.array([max(2, int(bits).bit_length()) for bits in union], dtype=np.int64)
    return {int(k): np.flatnonzero(n_states == k) for k in np.unique(n_states)}


def narrowed(codes: NDArray, n_states: int) -> NDArray:
    """Codes in the alphabet of the first `n_states` states: missing data mean these states only."""
    target = MORPH(n_states)
    return (codes.astype(np.uint64) & np.uint64(target.everything)).astype(target.dtype)
