"""Equal-input models at one point of their parameters, all sites alike: JC69, F81 and others of four states.

At rate beta a base is replaced by one drawn from the frequencies pi, perhaps by itself. Along a branch of length b a base is
spared with probability u = exp(-beta b), so that P(b) = u I + (1 - u) 1 pi', and beta = 1 / (1 - sum pi^2) makes b the expected
number of substitutions per site. This is all that the likelihood of one tree, the search and CSMC know of a model.
"""

from typing import NamedTuple

import numpy as np

from vaiphy.errors import InputError
from vaiphy.models.arrays import EqualInput
from vaiphy.models.blocks import Floats
from vaiphy.models.substitution import Model

#: Branch lengths are kept inside this range by every optimiser (substitutions per site).
MIN_LENGTH, MAX_LENGTH = 1e-8, 20.0


class Replacement(NamedTuple):
    """A model as the kernels read it.

    `pi` (4,); `weights` are the same four numbers, or None if they are equal (`kernels.frequencies`). `spacing` = 1 / beta is the
    mean length between two replacements; `u_low` and `u_high` are u of the longest and the shortest branch.
    """

    pi: Floats
    weights: tuple[float, float, float, float] | None
    beta: float
    spacing: float
    u_low: float
    u_high: float

    @property
    def exchangeable(self) -> bool:
        """Whether all states are alike, so that their names may be permuted."""
        return self.weights is None

    def decay(self, length: Floats | float) -> Floats:
        """u of branch lengths."""
        return np.exp(-self.beta * np.asarray(length, dtype=np.float64))

    def length(self, decay: Floats) -> Floats:
        """Branch lengths of u."""
        return -self.spacing * np.log(decay)


def replacement(pi: Floats, beta: float) -> Replacement:
    """The model with these frequencies and this rate of replacement."""
    a, c, g, t = pi.tolist()
    weights = None if a == c == g == t else (a, c, g, t)
    u_low, u_high = np.exp(-beta * np.array([MAX_LENGTH, MIN_LENGTH])).tolist()
    return Replacement(pi, weights, beta, 1.0 / beta, u_low, u_high)


def replacement_of(model: Model) -> Replacement:
    """A model without free parameters that belongs here; an error says why another one does not.

    >>> from vaiphy.alphabets import DNA
    >>> from vaiphy.models.substitution import model_of
    >>> replacement_of(model_of("F81+F{0.1,0.2,0.3,0.4}", DNA)).beta.__round__(4)
    1.4286
    """
    if reason := obstacle(model):
        raise InputError(f"model '{model.name}': {reason}; use JC, or F81 with fixed frequencies (F81+F)")
    arrays = model.arrays(np.zeros((1, 0)))
    assert isinstance(arrays, EqualInput)
    return replacement(arrays.pi[0], float(arrays.beta[0]))


def obstacle(model: Model) -> str:
    """Why a model does not belong here, nothing if it does.

    >>> from vaiphy.alphabets import DNA
    >>> from vaiphy.models.substitution import model_of
    >>> obstacle(model_of("JC+G4", DNA))
    'it has free parameters'
    """
    reasons = {
        "it has free parameters": model.n_parameters,
        "its sites have different rates": model.n_categories > 1 or model.invariable,
        "it leaves constant sites out": model.ascertained,
        f"it has {model.n_states} states": model.n_states != 4,
        "its changes are not equally likely": model.family != "equal_input",
    }
    return next((reason for reason, holds in reasons.items() if holds), "")
