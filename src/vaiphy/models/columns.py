"""Parameters under the names that MrBayes gives them in its .p files, so that Tracer and `sump` know them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vaiphy.alphabets import Alphabet

Floats = NDArray[np.float64]
_THREE_LETTERS = (
    "Ala", "Arg", "Asn", "Asp", "Cys", "Gln", "Glu", "Gly", "His", "Ile",
    "Leu", "Lys", "Met", "Phe", "Pro", "Ser", "Thr", "Trp", "Tyr", "Val",
)  # fmt: skip
#: Transversions one rate, transitions the other: one number, kappa, says it all.
_KAPPA = (0, 1, 0, 0, 1, 0)


def rate_columns(rates: Floats, classes: NDArray[np.int64], alphabet: Alphabet) -> dict[str, Floats]:
    """kappa where there are only transitions and transversions, else r(A<->C), ..., which sum to one; `rates` (N, classes)."""
    if tuple(classes) == _KAPPA:
        return {"kappa": rates[:, 1] / np.maximum(rates[:, 0], 1e-300)}
    each = rates[:, classes]
    each = each / each.sum(axis=1, keepdims=True)
    return {name: each[:, k] for k, name in enumerate(_rate_names(alphabet))}


def rates_from(columns: Mapping[str, Floats], classes: NDArray[np.int64], alphabet: Alphabet) -> Floats:
    """The inverse of `rate_columns`: distinct rates (N, classes), which sum to one."""
    if tuple(classes) == _KAPPA:
        rates = np.stack([np.ones_like(columns["kappa"]), columns["kappa"]], axis=1)
    else:
        each = np.stack([columns[name] for name in _rate_names(alphabet)], axis=1)
        rates = np.stack([each[:, classes == k].mean(axis=1) for k in range(int(classes.max()) + 1)], axis=1)
    return rates / rates.sum(axis=1, keepdims=True)


def frequencies_from(columns: Mapping[str, Floats], alphabet: Alphabet) -> Floats:
    """The inverse of `frequency_columns`: (N, S)."""
    return np.stack([columns[f"pi({name})"] for name in state_names(alphabet)], axis=1)


def _rate_names(alphabet: Alphabet) -> list[str]:
    return [f"r({alphabet.states[i]}<->{alphabet.states[j]})" for i, j in zip(*np.triu_indices(alphabet.n_states, k=1))]


def frequency_columns(frequencies: Floats, alphabet: Alphabet) -> dict[str, Floats]:
    """pi(A), ...; amino acids by their three letters."""
    return {f"pi({name})": frequencies[:, k] for k, name in enumerate(state_names(alphabet))}


def state_names(alphabet: Alphabet) -> tuple[str, ...]:
    """What the states are called in tables: letters, or three letters for amino acids."""
    return _THREE_LETTERS if alphabet.name == "AA" else tuple(alphabet.states)
