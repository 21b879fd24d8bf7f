"""JC69 (Jukes and Cantor 1969), the model of the paper: all bases and all changes equally likely.

A branch of length b (expected substitutions per site) keeps a base with probability (1 + 3u)/4 and changes it to each particular
other base with probability (1 - u)/4, where u = exp(-4b/3).
"""

from math import log

import numpy as np
from numpy.typing import NDArray

from vaiphy.models.replacement import replacement

LOG_4 = log(4.0)
JC69 = replacement(np.full(4, 0.25), 4.0 / 3.0)


def length_of_same(p_same: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """f(p) = -3/4 log((4p - 1)/3): the branch length at which a base is kept with probability p > 1/4."""
    return -0.75 * np.log((4.0 * np.asarray(p_same, dtype=np.float64) - 1.0) / 3.0)
