"""Published amino-acid matrices: exchangeabilities and frequencies, in the order ARNDCQEGHILKMFPSTWYV.

Each file in `data/` names its paper, has the exchangeabilities below the diagonal, row by row, and the frequencies last.
"""

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

N_STATES = 20


@cache
def matrix(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Exchangeabilities (190,) of the pairs i < j, row by row of the upper triangle, and frequencies (20,)."""
    text = files("vaiphy.models").joinpath("data", f"{name}.txt").read_text(encoding="ascii")
    numbers = np.array([float(word) for line in text.splitlines() if not line.startswith("#") for word in line.split()])
    full = np.zeros((N_STATES, N_STATES))
    full[np.tril_indices(N_STATES, k=-1)] = numbers[:-N_STATES]
    frequencies = numbers[-N_STATES:]
    return full.T[np.triu_indices(N_STATES, k=1)], frequencies / frequencies.sum()
