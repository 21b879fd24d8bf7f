"""The family of one-dimensional branch-length distributions that JC69 gives rise to; see `kernels.lengths` for its density.

A distribution is a row [a, d, s1, s2, s3]: a for the prior on the length, d changed sites, s_k sites at which a leaf's set of
k possible bases holds the ancestor's base (s1: unchanged sites). `optimal` and `jc_sampler` make such rows; what can
be done with them is here.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import lengths as kernels
from vaiphy.parallel import chunks, map_threads, streams

Floats = NDArray[np.float64]
#: Sizes of chunks of edges and trees; the latter is part of what a seed means.
EDGE_CHUNK, TREE_CHUNK = 256, 256


@dataclass(frozen=True, eq=False)
class Moments:
    """Expectations under distributions of any leading shape, with v = 1 - exp(-4b/3).

    `log_norm` is the log normaliser in v, `log_changed` E log v, `log_same` E log(1 - 3v/4), `log_within_2` E log(1 -
    v/2), `log_within_3` E log(1 - v/4), `length` E b. The last two logarithms are left at 0 where s2 = s3 = 0.
    """

    log_norm: Floats
    log_changed: Floats
    log_same: Floats
    log_within_2: Floats
    log_within_3: Floats
    length: Floats


def moments(rows: Floats, threads: int = 1) -> Moments:
    """Moments of distributions (..., 5) by quadrature, to about 1e-11."""
    flat = np.ascontiguousarray(rows, dtype=np.float64).reshape(-1, 5)
    out = np.empty((len(flat), kernels.N_MOMENTS))
    map_threads(lambda part: kernels.moments(flat[part], out[part]), chunks(len(flat), EDGE_CHUNK), threads)
    shaped = out.reshape(*rows.shape[:-1], kernels.N_MOMENTS)
    return Moments(*(shaped[..., k] for k in range(kernels.N_MOMENTS)))


@dataclass(frozen=True, eq=False)
class LengthLaw:
    """Independent branch lengths: `rows` (..., 5) with their `log_norm` (...).

    With `prior_share` > 0 each length comes from Exp(prior_rate) with that probability, and densities are those of the
    mixture; this bounds importance weights against that prior.
    """

    rows: Floats
    log_norm: Floats
    prior_share: float = 0.0
    prior_rate: float = 10.0

    def __post_init__(self) -> None:
        if (self.rows[..., 0] < 1.0).any() or (self.rows[..., 1:] < 0.0).any():
            raise ValueError("sampling needs a >= 1 (a prior rate of at least 4/3) and counts that are not negative")
        if not 0.0 <= self.prior_share < 1.0:
            raise ValueError("prior_share must be in [0, 1)")

    def sample(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """One length (substitutions per site) from every distribution, with its log-density."""
        rows, norms = self._flat()
        lengths, log_density = np.empty(len(rows)), np.empty(len(rows))
        kernels.sample(rows, norms, rng, self.prior_share, self.prior_rate, lengths, log_density)
        return lengths.reshape(self.log_norm.shape), log_density.reshape(self.log_norm.shape)

    def log_density(self, lengths: Floats) -> Floats:
        """Log-density of one length for every distribution."""
        rows, norms = self._flat()
        out = np.empty(len(rows))
        flat = np.broadcast_to(lengths, self.log_norm.shape).astype(np.float64).ravel()
        kernels.log_densities(rows, norms, flat, self.prior_share, self.prior_rate, out)
        return out.reshape(self.log_norm.shape)

    def sample_trees(self, parents: NDArray[np.int32], rng: np.random.Generator, threads: int = 1) -> tuple[Floats, Floats]:
        """Lengths (T, N) for trees of the augmented space, and the sums of their log-densities (T,).

        Needs distributions of shape (N, N - n_taxa): vertex by internal vertex.
        """
        lengths, log_density = np.empty(parents.shape), np.empty(len(parents))
        parts = chunks(len(parents), TREE_CHUNK)

        def run(item: tuple[slice, np.random.Generator]) -> None:
            part, stream = item
            shared = (self.prior_share, self.prior_rate, lengths[part], log_density[part])
            kernels.sample_trees(parents[part], self.rows, self.log_norm, stream, *shared)

        map_threads(run, list(zip(parts, streams(rng, len(parts)))), threads)
        return lengths, log_density

    def log_density_of_trees(self, parents: NDArray[np.int32], lengths: Floats) -> Floats:
        """Sums over branches of the log-densities (T,); for distributions as in `sample_trees`."""
        out = np.empty(len(parents))
        kernels.log_densities_of_trees(parents, self.rows, self.log_norm, self.prior_share, self.prior_rate, lengths, out)
        return out

    def _flat(self) -> tuple[Floats, Floats]:
        return np.ascontiguousarray(self.rows).reshape(-1, 5), np.ascontiguousarray(self.log_norm).ravel()
