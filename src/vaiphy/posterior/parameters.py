"""Moves of the model parameters z with the trees held fixed: random walks shaped by what the particles look like.

Two kinds alternate, both with the covariance of the particles (measured when the ladder was found, then fixed): steps
towards the mean that keep part of the old value (an autoregression, reversible for a normal distribution, whose density is
divided out), and plain random walks over several scales, which reach bent and long tails.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import sweep
from vaiphy.kernels.families import Data
from vaiphy.parallel import chunks
from vaiphy.posterior.proposal import Proposal, moments
from vaiphy.workers.spread import Workers, spread

if TYPE_CHECKING:
    from vaiphy.posterior.bridge import Particles

Floats = NDArray[np.float64]
#: What an autoregressive step keeps of the old value, and draws' worth of a diagonal in the covariance.
KEPT, PSEUDO = 0.5, 10.0
PIECE = 8


@dataclass(frozen=True, eq=False)
class Walk:
    """Mean and Cholesky factor of the covariance of z."""

    mean: Floats
    factor: Floats


def walk_of(z: Floats, weights: Floats) -> Walk | None:
    """The walk that fits weighted particles; None without parameters."""
    if not z.shape[1]:
        return None
    return Walk(*moments(z, weights, float(1.0 / np.square(weights).sum()), PSEUDO))


def walked(
    proposal: Proposal, particles: "Particles", beta: float, walk: Walk | None, n_walks: int, seed: tuple[int, ...],
    threads: Workers,
) -> tuple["Particles", float]:  # fmt: skip
    """Particles after `n_walks` moves of their parameters, and the share accepted."""
    if walk is None or not n_walks:
        return particles, 0.0
    from dataclasses import replace

    target = proposal.target
    rng = np.random.default_rng([*seed, 0])
    z, likelihood = particles.z, particles.log_likelihood
    density = proposal.parameters.log_density(z)
    trees = particles.log_proposal - density
    accepted = 0

    def log_target(z: Floats, likelihood: Floats, density: Floats) -> Floats:
        return beta * (likelihood + target.log_parameter_prior(z)) + (1.0 - beta) * density

    now = log_target(z, likelihood, density)
    for k in range(n_walks):
        new, ratio = proposed(walk, z, k, rng)
        new_likelihood = log_likelihoods(proposal, particles, new, threads)
        new_density = proposal.parameters.log_density(new)
        then = log_target(new, new_likelihood, new_density)
        taken = np.log(rng.random(len(z))) < then - now + ratio
        accepted += int(taken.sum())
        z = np.where(taken[:, None], new, z)
        likelihood, density, now = (
            np.where(taken, a, b) for a, b in ((new_likelihood, likelihood), (new_density, density), (then, now))
        )
    moved = replace(particles, z=z, log_likelihood=likelihood, log_proposal=trees + density)
    return moved, accepted / (n_walks * len(z))


def proposed(walk: Walk, z: Floats, kind: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """New points and the log-ratio of proposal densities, log q(old | new) - log q(new | old)."""
    n, d = z.shape
    step = rng.standard_normal((n, d)) @ walk.factor.T
    if kind % 2:
        scale = 2.4 / np.sqrt(d) * np.exp(rng.normal(0.0, 1.0, size=(n, 1)) - 0.7)
        return z + scale * step, np.zeros(n)
    new = walk.mean + KEPT * (z - walk.mean) + np.sqrt(1.0 - KEPT**2) * step
    old_size = (np.linalg.solve(walk.factor, (z - walk.mean).T) ** 2).sum(axis=0)
    new_size = (np.linalg.solve(walk.factor, (new - walk.mean).T) ** 2).sum(axis=0)
    # The autoregression is reversible for the normal distribution: its ratio is that of the normal densities.
    return new, 0.5 * (new_size - old_size)


def log_likelihoods(proposal: Proposal, particles: "Particles", z: Floats, threads: Workers) -> Floats:
    """Log-likelihoods of the particles' trees at parameters z."""
    family, p = proposal.target.family(z), particles
    pieces = [(*at_points(family, part), p.children[part], p.lengths[part], p.tops[part]) for part in chunks(len(z), PIECE)]
    return np.concatenate(spread(weigh_piece, (proposal.target.shared,), pieces, threads))


def at_points(family: Any, part: slice) -> tuple[Any, NDArray[np.int64]]:
    """The models of some of the particles, and which of these each has; where all share one model, that one."""
    if len(family.pi) == 1:
        return family, np.zeros(part.stop - part.start, dtype=np.int64)
    return type(family)(*(array[part] for array in family)), np.arange(part.stop - part.start)


def weigh_piece(
    data: Data, prior: Floats, family: Any, points: NDArray[np.int64], children: NDArray[np.int64], lengths: Floats,
    tops: NDArray[np.int64],
) -> Floats:  # fmt: skip
    """Log-likelihoods of a few trees."""
    out = np.empty(len(tops))
    sweep.log_likelihoods(family, points, data, children, lengths, tops, out)
    return out
