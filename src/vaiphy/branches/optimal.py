"""The optimal mean-field distribution of one branch length (paper, Eq. 8).

q*(b) is proportional to Exp(rate)(b) * p_same(b)^same * p_diff(b)^different: the prior times the expected likelihood
of the two sequences. There is no edge-probability factor, because branch lengths belong to the tree's own edges.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def optimal_rows(statistics: Floats, rate: float = 10.0) -> Floats:
    """Distributions (..., 5) from expected counts `statistics` (..., 4) = [d, s1, s2, s3] under the prior Exp(rate)."""
    rows = np.empty((*statistics.shape[:-1], 5))
    rows[..., 0] = 0.75 * rate
    rows[..., 1:] = statistics
    return rows
