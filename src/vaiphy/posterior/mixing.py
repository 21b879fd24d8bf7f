"""The tables of several laws of trees put together, for densities under all of them at once (`kernels.mixtures`)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import mixtures
from vaiphy.kernels.clades import Clades
from vaiphy.kernels.mixtures import (
    ABSENT,
    ANYWAY,
    COLUMNS,
    CONSTANT,
    CUBE,
    DRAWN,
    LOG_GAMMA,
    LOG_RATE,
    LOG_SHAPE,
    OTHER,
    PARENT,
    RATE,
    SHAPE,
    SISTER,
    Mixture,
)
from vaiphy.posterior.length_response import no_response
from vaiphy.posterior.split_law import placed
from vaiphy.posterior.tree_law import TreeLaw

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: For densities under each law alone: lengths are not drawn more widely, and do not respond.
NO_GUARD = np.zeros(7)


def mixture_of(laws: Sequence[TreeLaw]) -> Mixture:
    """All that is known of splits and places, a column for each law."""
    split_key, at = _together([law.clades.split_key for law in laws])
    split_value = np.full((len(split_key), len(laws)), 2.0 * ABSENT)
    place_key, where = _together([law.clades.place_key for law in laws])
    place_value = np.zeros((len(place_key), len(laws), COLUMNS))
    place_value[:, :, OTHER] = 1.0
    general = np.empty((2, len(laws), COLUMNS))
    for k, law in enumerate(laws):
        clades = law.clades
        split_value[at[k], k] = clades.split_value[clades.split_key != 0]
        used = clades.place_key != 0
        place_value[where[k], k] = _columns(clades.place_value[used], law.draws.response[used])
        general[:, k] = _general(clades)
    return Mixture(split_key, split_value, place_key, place_value, general, laws[0].clades.log_trees, laws[0].clades.rules)


def densities(
    mixture: Mixture, keys: NDArray[np.uint64], guard: Floats, scales: Floats, children: Ints, lengths: Floats, tops: Ints
) -> tuple[Floats, Floats, Floats]:
    """As `kernels.mixtures.log_densities` has them, (trees, laws) each."""
    shape = (len(children), mixture.split_value.shape[1])
    out, guarded, plain = np.empty(shape), np.zeros(shape), np.zeros(shape)
    mixtures.log_densities(mixture, keys, guard, scales, children, lengths, tops, out, guarded, plain)
    return out, guarded, plain


def _together(keys: Sequence[NDArray[np.uint64]]) -> tuple[NDArray[np.uint64], list[Ints]]:
    """A table of all keys, and where those of each law are."""
    own = [key[key != 0] for key in keys]
    names = np.unique(np.concatenate(own))
    table, place = placed(names)
    return table, [place[np.searchsorted(names, key)] for key in own]


def _columns(gammas: Floats, response: Floats) -> Floats:
    """The columns of `kernels.mixtures`, from places as `clades` and responses as `clade_draws` have them."""
    out = np.zeros((len(gammas), COLUMNS))
    out[:, [SHAPE, RATE, OTHER, CONSTANT]] = gammas
    known = gammas[:, 0] > 0.0
    shape, rate = gammas[known, 0], gammas[known, 1]
    factor = response[known, 0]
    out[known, CUBE] = np.cbrt(rate / shape)
    out[known, DRAWN], out[known, LOG_RATE] = shape * factor, np.log(rate * factor)
    out[known, LOG_GAMMA], out[known, LOG_SHAPE] = response[known, 4], np.log(shape * factor)
    out[:, [ANYWAY, PARENT, SISTER]] = response[:, 1:4]
    return out


def _general(clades: Clades) -> Floats:
    """The columns of inner and outer branches of unknown clades."""
    numbers = clades.numbers.reshape(2, 3)
    gammas = np.stack([numbers[:, 0], numbers[:, 1], np.ones(2), numbers[:, 2]], axis=1)
    return _columns(gammas, no_response(numbers[:, 0]))
