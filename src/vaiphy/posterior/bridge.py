"""An SMC sampler from a proposal q to the posterior p, along pi_beta proportional to q_beta p^beta.

Where q is one law, q_beta = q^(1-beta); for a mixture see `proposal.Proposal`.

Many more draws than particles are made from q, since a draw costs a small part of what moving a particle does: the first
temperature is the furthest to which they carry (where q is good, nearly the posterior itself: the bridge is then little more than
importance sampling, and its last step moves the few draws whose weights would be enormous), and the particles are resampled from
them. From there on particles are weighed from one beta to the next, resampled when few of them count, and moved by transitions
that leave pi_beta invariant (`kernels.sweep`, `parameters`). If everything that was tuned is fixed beforehand (a `Ladder`), the
product of mean weights estimates the evidence without bias. Without a ladder one is found on the way, which is for learning only.

Use: `state = initialise(...)`, then `state = step(state, ...)` until `state.done`. States are values: a step leaves the old one
as it was, and the same state always leads to the same end, whatever the number of threads.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import sweep
from vaiphy.posterior.ladder import REACH, Ladder, Reach, furthest, next_beta
from vaiphy.posterior.ordering import by_splits
from vaiphy.posterior.parameters import Walk, walk_of, walked
from vaiphy.posterior.particles import Moves, Particles, evaluated_draws, log_posterior, moved
from vaiphy.posterior.proposal import Proposal
from vaiphy.posterior.tree_law import splits_in
from vaiphy.weights import effective_sample_size, log_sum_exp, normalised, pareto_k, pareto_k_and_error, systematic
from vaiphy.workers.spread import Workers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Stage:
    """What a stage did: beta, particles (or draws) that count before resampling, whether it resampled, acceptance by move."""

    beta: float
    effective: float
    resampled: bool
    accepted: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Bridge:
    """A bridge on its way: `log_weights` since the last resampling, `log_evidence` up to there, `ancestors` of the particles.

    `first`: log-weights of all draws, which the `size` particles come from; `tail`: how heavy the tail of those is (Pareto's k),
    of the law where it is heaviest; `plain`: log-weights of those in which no length is drawn more widely.
    `drawn_variance`: variance of the evidence's factor
    from the first temperature, relative to its square.
    """

    seed: tuple[int, ...]
    size: int
    particles: Particles
    log_weights: Floats
    ancestors: Ints
    ladder: Ladder | None
    first: Floats
    plain: Floats
    tail: float
    beta: float = 0.0
    log_evidence: float = 0.0
    drawn_variance: float = 0.0
    stages: tuple[Stage, ...] = ()
    walks: tuple[Walk | None, ...] = field(default=())

    @property
    def done(self) -> bool:
        return self.beta >= 1.0

    @property
    def estimate(self) -> float:
        """Log evidence, once done."""
        return self.log_evidence + log_sum_exp(self.log_weights) - float(np.log(len(self.log_weights)))

    @property
    def ancestor_shares(self) -> Floats:
        """Share of the weight that descends from each surviving ancestor."""
        weights = np.exp(self.log_weights - log_sum_exp(self.log_weights))
        return np.bincount(np.unique(self.ancestors, return_inverse=True)[1].ravel(), weights=weights).astype(np.float64)

    @property
    def worth(self) -> float:
        """Effective number of independent draws that the particles descend from, for each particle."""
        return 1.0 / float(np.square(self.ancestor_shares).sum()) / self.size

    @property
    def variance(self) -> float:
        """Estimated variance of the evidence relative to its square, from the genealogy alone (Lee and Whiteley 2018)."""
        n, drawn = self.size, len(self.first)
        resamplings = sum(stage.resampled for stage in self.stages)
        apart = 1.0 - float(np.square(self.ancestor_shares).sum())
        estimate = 1.0 - drawn / (drawn - 1.0) * (n / (n - 1.0)) ** resamplings * apart
        later = max((1.0 / stage.effective - 1.0 / n for stage in self.stages[1:]), default=0.0)
        return max(estimate, self.drawn_variance + later, 0.0)

    @property
    def std_error(self) -> float:
        """Standard error of the log evidence by `variance`."""
        return float(np.sqrt(self.variance))

    @property
    def found(self) -> Ladder:
        """The ladder that this bridge went over."""
        return Ladder(tuple(stage.beta for stage in self.stages), self.walks)

    @property
    def n_ancestors(self) -> int:
        return len(np.unique(self.ancestors))


def initialise(
    proposal: Proposal, n: int, seed: tuple[int, ...], oversampling: int = 1, ladder: Ladder | None = None, threads: Workers = 1,
    reach: Reach = REACH,
) -> Bridge:  # fmt: skip
    """`oversampling` draws from the proposal for each of n particles."""
    drawn = n * oversampling
    draws = proposal.guarded_sample(drawn, [*seed, 0], threads)
    particles, guarded, unguarded = evaluated_draws(proposal, draws, threads)
    log_density = proposal.log_path(particles.log_laws, 0.0)
    posterior = log_posterior(proposal, particles)
    posterior[proposal.is_forbidden(draws.children, draws.tops)] = -np.inf
    first, plain = posterior - guarded, (posterior - unguarded)[draws.n_wide == 0]
    tail = max(pareto_k(first[own]) for own in _counting(first, draws.laws, reach))
    if drawn > n:
        tail = max(tail, reach.steady / reach.finite * _tail_by_split(first, particles, reach))
    return Bridge(seed, n, particles, log_density - guarded, np.arange(drawn), ladder, first, plain, tail)


def _counting(log_weights: Floats, laws: Ints, reach: Reach = REACH) -> list[Ints]:
    """All draws, and those of each law that are enough to say something and have some of the weight.

    An island whose law is poor shows in the weights of its own draws, among all others it would not be seen.
    """
    weights = np.exp(log_weights - log_weights.max())
    own = [np.flatnonzero(laws == law) for law in range(int(laws.max()) + 1)]
    return [np.arange(len(laws))] + [o for o in own if len(o) >= reach.few and weights[o].sum() > reach.nothing * weights.sum()]


def _tail_by_split(log_weights: Floats, particles: Particles, reach: Reach = REACH) -> float:
    """How heavy the tail of the weights is among trees with a split, or without it, where it is heaviest.

    Draws may be good where most of the probability is and poor on a small island, which is then found too rarely: among all
    weights that does not show. Of many splits one has a heavy tail by chance, so what chance may do is taken off.
    """
    n_taxa = particles.children.shape[1] + 2
    which = splits_in(particles.children, particles.tops)[1]
    share = np.bincount(which.ravel(), weights=np.repeat(normalised(log_weights), n_taxa - 2))
    heaviest = 0.0
    for split in np.flatnonzero((share > reach.known) & (share < 1.0 - reach.known)):
        has = (which == split).any(axis=1)
        for own in (has, ~has):
            if own.sum() >= reach.few:
                k, error = pareto_k_and_error(log_weights[own])
                heaviest = max(heaviest, k - reach.chance * error)
    return heaviest


def step(
    state: Bridge, proposal: Proposal, moves: Moves, conditional_size: float = 0.9, threads: Workers = 1,
    growth: tuple[tuple[float, int], ...] = (), apart: float = 2.0, reach: Reach = REACH,
) -> Bridge:  # fmt: skip
    """One temperature further: weigh, resample if fewer than half of the particles count, move.

    Particles resampled from many more draws that reach the posterior at once are hardly ever the same: they stay as they are.

    `growth`: temperatures, rising, from which on there are so many particles; `apart`: that from which on none is resampled.
    """
    k, n, drawn = len(state.stages), state.size, len(state.log_weights)
    posterior, here = log_posterior(proposal, state.particles), proposal.log_path(state.particles.log_laws, state.beta)
    forbidden = np.isneginf(state.first) if k == 0 else np.zeros(drawn, dtype=bool)

    def gain(beta: float) -> Floats:
        change = (beta - state.beta) * posterior + proposal.log_path(state.particles.log_laws, beta) - here
        return np.where(forbidden, -np.inf, change)

    if state.ladder:
        beta = state.ladder.betas[k]
    elif k == 0 and drawn > n:
        most = float(np.clip(reach.steady / max(state.tail, 1e-3), reach.safe, 1.0))

        def effective_at(beta: float) -> float:
            return effective_sample_size(state.log_weights + gain(beta))

        # At beta = 0 already, draws whose lengths know each other have weights.
        wanted = min(2.0 * n, drawn / 2, reach.reached * effective_at(0.0))
        beta = furthest(effective_at, wanted, most)
        beta = 1.0 if beta > reach.nearly else beta
    else:
        beta = next_beta(state.beta, gain, state.log_weights, conditional_size, reach.bolder)
    log_weights = state.log_weights + gain(beta)
    n = max([n, *(size for begin, size in growth if begin <= beta)])
    particles, ancestors, log_evidence = state.particles, state.ancestors, state.log_evidence
    effective = effective_sample_size(log_weights)
    drawn_variance = 1.0 / effective - 1.0 / drawn if k == 0 else state.drawn_variance
    # Draws of no weight (forbidden trees) are never moved.
    few = effective < 0.5 * n and beta < apart
    resampled = drawn != n or few or np.isneginf(log_weights).any()
    if resampled:
        total = log_sum_exp(log_weights)
        uniform = np.random.default_rng([*state.seed, 1, k]).random()
        weights = np.exp(log_weights - total)
        order = by_splits(particles, weights)
        chosen = order[systematic(weights[order], n, uniform)]
        particles, ancestors = particles.take(chosen), ancestors[chosen]
        log_evidence += total - float(np.log(drawn))
        log_weights = np.zeros(n)
    walk = state.ladder.walks[k] if state.ladder else walk_of(particles, normalised(log_weights))
    seed = (*state.seed, 2, k)
    rates = tuple([0.0] * (sweep.N_COUNTS + 1))
    if beta < 1.0 or k > 0 or drawn == n:
        particles, walk_rate = walked(proposal, particles, beta, walk, moves.walks, seed, threads)
        particles, by_kind = moved(proposal, particles, beta, moves, seed, threads)
        rates = (*by_kind, walk_rate)
    stage = Stage(beta, float(effective), bool(resampled), rates)
    return replace(
        state, size=n, particles=particles, log_weights=log_weights, ancestors=ancestors, beta=beta, log_evidence=log_evidence,
        drawn_variance=float(drawn_variance), stages=(*state.stages, stage), walks=(*state.walks, walk),
    )  # fmt: skip
