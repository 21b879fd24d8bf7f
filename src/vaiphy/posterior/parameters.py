"""Moves of the model parameters z: random walks shaped by what the particles look like.

The topology is held fixed. The lengths are all scaled by one factor that goes with the change of the parameters as the tree
length does among the particles: rates that differ more between sites need longer trees.

Four kinds take turns (`KINDS`). Three have the covariance of the particles (measured when the ladder is found, then fixed): steps
towards the mean that keep part of the old value (an autoregression, reversible for a normal distribution, whose density is
divided out), random walks of all parameters together, and wide steps of a single one, alone or with the others following as they
do among the particles: those reach bent and long tails. The fourth draws from the proposal's own distribution.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import sweep
from vaiphy.kernels.branch import MAX_LENGTH, MIN_LENGTH
from vaiphy.kernels.families import Data
from vaiphy.parallel import chunks
from vaiphy.posterior.parameter_law import length_scaling
from vaiphy.posterior.proposal import Proposal
from vaiphy.workers.spread import Workers, spread

if TYPE_CHECKING:
    from vaiphy.posterior.particles import Particles

Floats = NDArray[np.float64]
#: What an autoregressive step keeps of the old value, and draws' worth of a diagonal in the covariance.
KEPT, PSEUDO = 0.5, 10.0
#: Which kind of move is made when; the sequence begins anew after the last.
KINDS = ("towards the mean", "single", "from the proposal", "together", "single", "single")
#: Trees evaluated in one piece of work: few enough for two workers to have one each of the smallest set of particles.
PIECE = 16


@dataclass(frozen=True, eq=False)
class Walk:
    """Mean and Cholesky factor of the covariance of z, and how the logarithm of the tree length goes with z (d slopes)."""

    mean: Floats
    factor: Floats
    slopes: Floats


def walk_of(particles: "Particles", weights: Floats) -> Walk | None:
    """The walk that fits weighted particles; None without parameters."""
    z = particles.z
    if not z.shape[1]:
        return None
    scaling, factor = length_scaling(z, particles.lengths, weights, PSEUDO)
    return Walk(scaling.mean, factor, scaling.slopes)


def walked(
    proposal: Proposal, particles: "Particles", beta: float, walk: Walk | None, n_walks: int, seed: tuple[int, ...],
    threads: Workers,
) -> tuple["Particles", float]:  # fmt: skip
    """Particles after `n_walks` moves of their parameters, and the share accepted."""
    if walk is None or not n_walks:
        return particles, 0.0
    rng = np.random.default_rng([*seed, 0])
    now = _Point(proposal, particles, proposal.parameters.log_density(particles.z))
    accepted = 0
    for k in range(n_walks):
        old = now.particles
        kind = KINDS[k % len(KINDS)]
        if kind == "from the proposal":
            z, ratio = proposal.parameters.sample(len(old), rng), now.density
        else:
            z, ratio = proposed(walk, old.z, kind, rng)
        # All lengths are scaled as the tree length goes with the parameters; the Jacobian has a factor for each branch.
        log_scale = ((z - old.z) * walk.slopes).sum(axis=1)
        lengths = old.lengths * np.exp(log_scale)[:, None]
        ratio = ratio + (lengths.shape[1] - 1) * log_scale
        inner = lengths[:, 1:]
        inside = (inner.min(axis=1) >= MIN_LENGTH) & (inner.max(axis=1) <= MAX_LENGTH)
        lengths[~inside] = old.lengths[~inside]
        new = _Point(proposal, *_evaluated(proposal, old, lengths, z, threads))
        if kind == "from the proposal":
            ratio = ratio - new.density
        taken = inside & (np.log(rng.random(len(z))) < new.log_target(beta) - now.log_target(beta) + ratio)
        accepted += int(taken.sum())
        now = now.with_those_of(new, taken)
    return now.particles, accepted / (n_walks * len(particles))


@dataclass(frozen=True, eq=False)
class _Point:
    """Particles and the log-density of their parameters under the proposal."""

    proposal: Proposal
    particles: "Particles"
    density: Floats

    def log_target(self, beta: float) -> Floats:
        """Log of pi_beta, up to what does not change with lengths and parameters."""
        target, p = self.proposal.target, self.particles
        posterior = p.log_likelihood + target.log_length_prior(p.lengths, p.tops) + target.log_parameter_prior(p.z)
        return beta * posterior + self.proposal.log_path(p.log_laws, beta)

    def with_those_of(self, new: "_Point", taken: NDArray[np.bool_]) -> "_Point":
        """These particles, with some replaced."""
        one, other = self.particles, new.particles
        particles = replace(
            one,
            lengths=np.where(taken[:, None], other.lengths, one.lengths),
            z=np.where(taken[:, None], other.z, one.z),
            log_likelihood=np.where(taken, other.log_likelihood, one.log_likelihood),
            log_laws=np.where(taken[:, None], other.log_laws, one.log_laws),
        )
        return _Point(self.proposal, particles, np.where(taken, new.density, self.density))


def _evaluated(
    proposal: Proposal, particles: "Particles", lengths: Floats, z: Floats, threads: Workers
) -> tuple["Particles", Floats]:
    """The particles at other lengths and parameters, and the log-density of these parameters."""
    density = proposal.parameters.log_density(z)
    trees = proposal.log_laws(particles.children, lengths, particles.tops, threads)
    moved = replace(particles, lengths=lengths, z=z, log_laws=trees + density[:, None])
    return replace(moved, log_likelihood=log_likelihoods(proposal, moved, z, threads)), density


def proposed(walk: Walk, z: Floats, kind: str, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """New points and the log-ratio of proposal densities, log q(old | new) - log q(new | old)."""
    n, d = z.shape
    if kind == "single":
        covariance = walk.factor @ walk.factor.T
        deviation = np.sqrt(np.diag(covariance))
        which = rng.integers(d, size=n)
        direction = np.where(rng.random((n, 1)) < 0.5, np.eye(d)[which], (covariance / np.diag(covariance)[:, None])[which])
        step = rng.standard_normal(n) * np.exp(rng.normal(0.0, 1.0, size=n)) * deviation[which]
        return z + step[:, None] * direction, np.zeros(n)
    step = rng.standard_normal((n, d)) @ walk.factor.T
    if kind == "together":
        scale = 2.4 / np.sqrt(d) * np.exp(rng.normal(0.0, 1.0, size=(n, 1)) - 0.7)
        return z + scale * step, np.zeros(n)
    new = walk.mean + KEPT * (z - walk.mean) + np.sqrt(1.0 - KEPT**2) * step
    old_size = (np.linalg.solve(walk.factor, (z - walk.mean).T) ** 2).sum(axis=0)
    new_size = (np.linalg.solve(walk.factor, (new - walk.mean).T) ** 2).sum(axis=0)
    # The autoregression is reversible for the normal distribution: its ratio is that of the normal densities.
    return new, 0.5 * (new_size - old_size)


def log_likelihoods(proposal: Proposal, particles: "Particles", z: Floats, threads: Workers, size: int = PIECE) -> Floats:
    """Log-likelihoods of the particles' trees at parameters z, `size` of them in one piece of work."""
    p, target = particles, proposal.target
    family = target.family(z if target.n_parameters else z[:1])
    every = np.arange(len(p))
    pieces = [(*at_points(family, every[part]), p.children[part], p.lengths[part], p.tops[part]) for part in chunks(len(p), size)]
    return np.concatenate(spread(weigh_piece, (proposal.target.shared,), pieces, threads))


def at_points(family: Any, which: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64]]:
    """The models of some of the particles, and which of these each has; where all share one model, that one."""
    if len(family.pi) == 1:
        return family, np.zeros(len(which), dtype=np.int64)
    return type(family)(*(array[which] for array in family)), np.arange(len(which))


def weigh_piece(
    data: Data, prior: Floats, family: Any, points: NDArray[np.int64], children: NDArray[np.int64], lengths: Floats,
    tops: NDArray[np.int64],
) -> Floats:  # fmt: skip
    """Log-likelihoods of a few trees."""
    out = np.empty(len(tops))
    sweep.log_likelihoods(family, points, data, children, lengths, tops, out)
    return out
