"""Particles: trees with lengths and parameters, what is known of them, and how they are moved."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import sweep
from vaiphy.kernels.families import Data
from vaiphy.kernels.mixtures import Mixture
from vaiphy.parallel import chunks
from vaiphy.posterior.mixing import NO_GUARD, densities
from vaiphy.posterior.parameters import Walk, at_points, log_likelihoods, walked
from vaiphy.posterior.proposal import GuardedDraws, Proposal
from vaiphy.posterior.tree_law import TreeLaw
from vaiphy.workers.spread import Workers, spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Particles in one piece of work, and draws that are only evaluated.
PIECE, DRAWS = 8, 64


@dataclass(frozen=True)
class Moves:
    """What is done to each particle at each stage: regraftings, tours, the width of changes of the total length (log scale), and
    moves of the parameters.
    """

    regrafts: int = 1
    tours: int = 1
    stretch: float = 0.3
    walks: int = 6


@dataclass(frozen=True, eq=False)
class Particles:
    """Trees with lengths and parameters, their log-likelihoods, and log-densities (n, laws) under each law of the proposal."""

    children: Ints
    lengths: Floats
    tops: Ints
    z: Floats
    log_likelihood: Floats
    log_laws: Floats

    def __len__(self) -> int:
        return len(self.tops)

    def take(self, which: Ints) -> "Particles":
        return Particles(*(getattr(self, name)[which] for name in self.__dataclass_fields__))


def joined(parts: Sequence[Particles]) -> Particles:
    """Several sets of particles as one; their densities, under whatever proposals, are left out."""
    kept = [replace(p, log_laws=np.zeros((len(p), 0))) for p in parts]
    return Particles(*(np.concatenate([getattr(p, name) for p in kept]) for name in Particles.__dataclass_fields__))


def log_posterior(proposal: Proposal, particles: Particles) -> Floats:
    """Log of likelihood times prior."""
    target = proposal.target
    lengths = target.log_length_prior(particles.lengths, particles.tops)
    return particles.log_likelihood + lengths + target.log_topology_prior + target.log_parameter_prior(particles.z)


def moved_on(
    proposal: Proposal, particles: Particles, moves: Moves, walk: Walk | None, seed: tuple[int, ...], threads: Workers = 1
) -> Particles:
    """Particles after one more round of moves that leave the posterior itself invariant."""
    particles, _ = walked(proposal, particles, 1.0, walk, moves.walks, seed, threads)
    return moved(proposal, particles, 1.0, moves, seed, threads)[0]


def evaluated(proposal: Proposal, children: Ints, lengths: Floats, tops: Ints, z: Floats, threads: Workers = 1) -> Particles:
    """Trees as particles: with their log-likelihoods and log-densities."""
    return _evaluated(proposal, (children, lengths, tops, z), proposal.log_laws(children, lengths, tops, threads), threads)


def evaluated_draws(proposal: Proposal, draws: GuardedDraws, threads: Workers = 1) -> tuple[Particles, Floats, Floats]:
    """Guarded draws as particles; the log-densities that they are drawn from, and those of draws without a wide length."""
    trees = (draws.children, draws.lengths, draws.tops, draws.z)
    guarded, plain, log_laws = proposal.log_guarded(*trees, threads)
    parameters = proposal.parameters.log_density(draws.z)
    return _evaluated(proposal, trees, log_laws, threads), guarded + parameters, plain + parameters


def _evaluated(proposal: Proposal, trees: tuple[Ints, Floats, Ints, Floats], log_laws: Floats, threads: Workers) -> Particles:
    z = trees[3]
    particles = Particles(*trees, np.zeros(len(z)), log_laws + proposal.parameters.log_density(z)[:, None])
    return replace(particles, log_likelihood=log_likelihoods(proposal, particles, z, threads, DRAWS))


def moved(
    proposal: Proposal, particles: Particles, beta: float, moves: Moves, seed: tuple[int, ...], threads: Workers
) -> tuple[Particles, tuple[float, ...]]:
    """Particles after their moves, each under a law that it is drawn for, and the share accepted of each kind."""
    laws = proposal.choose_laws(particles.log_laws, beta, np.random.default_rng([*seed, 4]))
    target, p = proposal.target, particles
    family = target.family(p.z if target.n_parameters else p.z[:1])
    own = [np.flatnonzero(laws == law) for law in range(len(proposal.laws))]
    parts = [(law, which[part]) for law, which in enumerate(own) for part in chunks(len(which), PIECE)]
    numbers = (beta, moves.regrafts, moves.tours, moves.stretch)
    pieces = [
        (law, *at_points(family, part), *numbers, p.children[part], p.lengths[part], p.tops[part], (*seed, 1, i))
        for i, (law, part) in enumerate(parts)
    ]
    done = spread(move_piece, (target.shared, proposal.shared), pieces, threads)
    back = np.argsort(np.concatenate([part for _, part in parts]), kind="stable")
    children, lengths, tops, likelihood, trees = (np.concatenate(column)[back] for column in list(zip(*done))[:5])
    log_laws = trees + proposal.parameters.log_density(p.z)[:, None]
    total = np.sum([piece[5] for piece in done], axis=0)
    with np.errstate(invalid="ignore"):
        rates = tuple((total[:, 0] / np.maximum(total[:, 1], 1.0)).tolist())
    return Particles(children, lengths, tops, p.z, likelihood, log_laws), rates


def move_piece(
    data: Data, prior: Floats, laws: tuple[TreeLaw, ...], mixture: Mixture, keys: NDArray[np.uint64], law: int, family: Any,
    points: Ints, beta: float, regrafts: int, tours: int, stretch: float, children: Ints, lengths: Floats, tops: Ints,
    seed: tuple[int, ...],
) -> tuple[NDArray, ...]:  # fmt: skip
    """A few trees after their moves, their log-likelihoods and log-densities under each law, and counts of moves."""
    children, lengths, tops = children.copy(), lengths.copy(), tops.copy()
    likelihood, density, counts = np.empty(len(tops)), np.empty(len(tops)), np.zeros((sweep.N_COUNTS, 2))
    rng = np.random.default_rng(seed)
    sweep.move(
        family, points, data, laws[law].clades, keys, beta, prior, regrafts, tours, stretch, children, lengths, tops, rng,
        likelihood, density, counts,
    )  # fmt: skip
    if len(laws) == 1:
        return children, lengths, tops, likelihood, density[:, None], counts
    log_laws = densities(mixture, keys, NO_GUARD, np.ones(len(tops)), children, lengths, tops)[0]
    return children, lengths, tops, likelihood, log_laws, counts
