"""How the lengths of drawn trees respond to each other: regressions, one for each place (`kernels.clade_draws`).

The mean of a branch's Gamma is multiplied by exp(c + p * parent + s * sister), where `parent` and `sister` say how long those
branches turned out (the sister's only where it is drawn first), on a scale on which Gammas are nearly normal. The coefficients
are those of one step of a Gamma regression with a logarithmic link, shrunk towards 0.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from vaiphy.kernels import clade_draws
from vaiphy.kernels.clade_draws import MOST_CHANGE
from vaiphy.kernels.clades import Clades

if TYPE_CHECKING:
    from vaiphy.posterior.tree_law import Trees

Floats = NDArray[np.float64]
#: A length counts as at most so many times what is expected: one outlier must not decide.
MOST_RATIO = 5.0


@dataclass(frozen=True)
class ResponseFitting:
    """How far regressions are trusted.

    `spread`, `offset`: standard deviations of slopes and constants before anything is seen; `pseudo`: draws' worth of no response
    in the gain in precision; `most_gain`: no shape is raised by more.
    """

    spread: float = 0.7
    offset: float = 0.2
    pseudo: float = 15.0
    most_gain: float = 3.0


def no_response(shapes: Floats) -> Floats:
    """That of places with Gammas of these shapes (0: unknown)."""
    return _with_constants(np.tile([1.0, 0.0, 0.0, 0.0], (len(shapes), 1)), shapes)


def _with_constants(response: Floats, shapes: Floats) -> Floats:
    """With the logarithm of the Gamma function at the shapes that lengths are drawn with."""
    return np.concatenate([response, gammaln(np.where(shapes > 0.0, shapes * response[:, 0], 1.0))[:, None]], axis=1)


def fit_response(
    law: Clades, keys: NDArray[np.uint64], trees: "Trees", scales: Floats, counts: Floats, fitting: ResponseFitting
) -> Floats:
    """The response at each place, from trees of which each is worth so many draws (`counts`)."""
    shape = trees.lengths.shape
    place, ratio = np.empty(shape, dtype=np.int64), np.empty(shape)
    above, sister = np.empty(shape), np.empty(shape)
    clade_draws.describe_lengths(law, keys, scales, *trees, place, ratio, above, sister)
    known = place >= 0
    n, at = len(law.place_key), place[known]
    w = np.broadcast_to(counts[:, None], shape)[known]
    y = np.minimum(ratio[known], MOST_RATIO) - 1.0
    x = np.stack([np.ones(len(y)), above[known], sister[known]])
    noise = 1.0 / np.maximum(law.place_value[:, 0], 0.1)
    products, answers = np.zeros((n, 3, 3)), np.zeros((n, 3))
    for i in range(3):
        answers[:, i] = np.bincount(at, weights=w * x[i] * y, minlength=n)
        for j in range(i, 3):
            products[:, i, j] = products[:, j, i] = np.bincount(at, weights=w * x[i] * x[j], minlength=n)
    prior = np.array([fitting.offset, fitting.spread, fitting.spread]) ** -2.0
    products += noise[:, None, None] * np.diag(prior)
    slopes = np.linalg.solve(products, answers[:, :, None])[:, :, 0]
    change = np.clip((slopes[at] * x.T).sum(axis=1), -MOST_CHANGE, MOST_CHANGE)
    left = np.minimum(ratio[known] * np.exp(-change), MOST_RATIO) - 1.0
    before, after = (np.bincount(at, weights=w * column**2, minlength=n) for column in (y, left))
    # Three numbers were fitted: what is left looks smaller by three draws' worth than it is.
    gain = (before + fitting.pseudo * noise) / (after + (fitting.pseudo + 3.0) * noise)
    response = np.concatenate([np.clip(gain, 1.0, fitting.most_gain)[:, None], slopes], axis=1)
    seen = np.bincount(at, minlength=n) > 0
    response[~seen] = [1.0, 0.0, 0.0, 0.0]
    return _with_constants(response, law.place_value[:, 0])
