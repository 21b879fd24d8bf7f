"""The sample that is reported: bridges from one frozen proposal over one frozen ladder, and the trees at their ends."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.posterior import bridge
from vaiphy.posterior.agreement import SplitFrequencies, Supports, frequencies, supports, wanted_trees
from vaiphy.posterior.bridge import Bridge
from vaiphy.posterior.ladder import Ladder
from vaiphy.posterior.particles import Particles, joined, moved_on
from vaiphy.posterior.proposal import Proposal, fit
from vaiphy.posterior.settings import Settings
from vaiphy.weights import log_sum_exp, normalised
from vaiphy.workers.spread import Workers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A finished bridge, and its particles after each of some more sweeps at the posterior (particles[0] as it ended).

    `log_weights` belong to the particles, which keep their places; `shares`: of the weight, by surviving ancestor.
    """

    log_evidence: float
    variance: float
    n_ancestors: int
    shares: Floats
    effective: tuple[float, ...]
    accepted: tuple[float, ...]
    plain: Floats
    log_weights: Floats
    particles: tuple[Particles, ...]

    @cached_property
    def splits(self) -> SplitFrequencies:
        return frequencies(self.particles, self.log_weights)


@dataclass(frozen=True, eq=False)
class Drawing:
    """The final sample on its way.

    `learned`: particles that learning ended with, and their weights. `pilots`: temperatures that each pilot needed, the proposal
    being refitted between them. `spent`: what learning and pilots cost, in rounds of moves of a particle.

    `first`, `stride`: of all bridges, these are number first, first + stride, ... (others may be drawn elsewhere). `restarts`:
    how often bridges were given up, for a proposal that is fitted to them.
    """

    proposal: Proposal
    learned: Particles
    learned_weights: Floats
    pilots: tuple[int, ...] = ()
    spent: float = 0.0
    ladder: Ladder | None = None
    n_particles: int = 0
    oversampling: int = 0
    bridge: Bridge | None = None
    swept: tuple[Particles, ...] = ()
    drawn: tuple[Drawn, ...] = ()
    first: int = 0
    stride: int = 1
    restarts: int = 0

    @property
    def log_estimates(self) -> Floats:
        return np.array([one.log_evidence for one in self.drawn])


def advance(drawing: Drawing, settings: Settings, seed: int, threads: Workers) -> Drawing:
    """One step: particles drawn, one temperature further, one sweep more, or a bridge put away."""
    now, pilot = drawing.bridge, drawing.ladder is None
    if now is None:
        # A proposal fitted to all bridges is tried by a smaller pilot than the one before.
        n = _pilot_size(len(drawing.pilots) - 2 * drawing.restarts, settings) if pilot else drawing.n_particles
        index = len(drawing.pilots) if pilot else drawing.first + drawing.stride * len(drawing.drawn)
        key = (seed, 2 if pilot else 3, index, drawing.restarts)
        draws = settings.oversampling if pilot else drawing.oversampling
        return replace(
            drawing, bridge=bridge.initialise(drawing.proposal, n, key, draws, drawing.ladder, threads, settings.reach)
        )
    if not now.done:
        size = settings.first_pilot_size if settings.max_refits and not drawing.pilots else settings.pilot_size
        return replace(drawing, bridge=bridge.step(now, drawing.proposal, settings.moves, size, threads, reach=settings.reach))
    swept = drawing.swept or (now.particles,)
    if len(swept) <= (_pilot_sweeps(drawing, now, settings) if pilot else n_sweeps(drawing, settings)):
        last = now.walks[-1]
        more = moved_on(drawing.proposal, swept[-1], settings.moves, last, (*now.seed, 3, len(swept)), threads)
        return replace(drawing, swept=(*swept, more))
    if pilot:
        return _piloted(drawing, now, swept, settings)
    rates = np.mean([stage.accepted for stage in now.stages], axis=0)
    effective = tuple(stage.effective for stage in now.stages)
    one = Drawn(
        now.estimate, now.variance, now.n_ancestors, now.ancestor_shares, effective, tuple(rates.tolist()), now.plain,
        now.log_weights, swept,
    )  # fmt: skip
    drawing = replace(drawing, bridge=None, swept=(), drawn=(*drawing.drawn, one))
    return _restarted(drawing, settings) if _is_surprised(drawing, settings) else drawing


def _is_surprised(drawing: Drawing, settings: Settings) -> bool:
    """Whether a bridge came upon trees that the proposal hardly knows, so that there may be an island that most bridges miss.

    Its evidence is then made by few draws and has a variance of its own genealogy that others do not have.
    """
    if settings.bridges or drawing.restarts >= settings.max_restarts or len(drawing.drawn) < settings.least_compared:
        return False
    variances = [one.variance for one in drawing.drawn]
    lucky = max(float(one.shares.max()) for one in drawing.drawn)
    return lucky > settings.lucky and max(variances) > settings.surprise * float(np.median(variances))


def _restarted(drawing: Drawing, settings: Settings) -> Drawing:
    """All begun anew with a proposal that is fitted to the particles of the bridges, weighed by their evidences."""
    log_own = log_weights(drawing)
    begin = np.cumsum([0, *(len(one.log_weights) for one in drawing.drawn)])
    weights = [
        np.exp(log_own[at:end] - np.log(len(one.particles)))
        for one, at, end in zip(drawing.drawn, begin, begin[1:])
        for _ in one.particles
    ]
    found = joined([particles for one in drawing.drawn for particles in one.particles])
    kept = settings.kept_share
    everything = joined([found, drawing.learned])
    shares = np.concatenate([(1.0 - kept) * np.concatenate(weights), kept * drawing.learned_weights])
    proposal = _fitted(drawing, everything, shares, settings)
    return replace(
        drawing, proposal=proposal, learned=everything, learned_weights=shares, ladder=None, drawn=(),
        restarts=drawing.restarts + 1,
    )  # fmt: skip


def _fitted(drawing: Drawing, particles: Particles, weights: Floats, settings: Settings) -> Proposal:
    target = drawing.proposal.target
    return fit(target, particles.children, particles.lengths, particles.tops, particles.z, weights, settings.fitting)


def _pilot_size(index: int, settings: Settings) -> int:
    """Particles of a pilot: twice as many from the third one on, and so on."""
    return min(settings.pilot_particles * 2 ** max(index - 1, 0), settings.most_pilot_particles)


def _pilot_sweeps(drawing: Drawing, pilot: Bridge, settings: Settings) -> int:
    """Sweeps give a refitted proposal more trees, and such as it did not know; none where it stays as it is."""
    return settings.pilot_sweeps if _is_refitted(drawing, pilot, settings) else 0


def _piloted(drawing: Drawing, pilot: Bridge, swept: tuple[Particles, ...], settings: Settings) -> Drawing:
    """What follows from a pilot: a proposal fitted to its particles, to be tried with more of them, or the reported bridges."""
    pilots = (*drawing.pilots, len(pilot.stages))
    spent = drawing.spent + _cost(pilot.size, settings.oversampling, len(pilot.stages), len(swept) - 1, settings)
    if _is_refitted(drawing, pilot, settings):
        weights = np.tile(normalised(pilot.log_weights) / len(swept), len(swept))
        # What learning has found stays, so that no island of trees is lost for being rare among the pilot's particles.
        particles, kept = joined((*swept, drawing.learned)), settings.kept_share
        weights = np.concatenate([(1.0 - kept) * weights, kept * drawing.learned_weights])
        proposal = _fitted(drawing, particles, weights, settings)
        return replace(drawing, proposal=proposal, pilots=pilots, spent=spent, bridge=None, swept=())
    wanted = 8 * np.ceil(_particles_wanted(drawing, pilot, settings) / settings.replicates / 8)
    return replace(
        drawing, ladder=pilot.found, n_particles=int(np.clip(wanted, settings.min_particles, settings.max_particles)),
        oversampling=_oversampling(pilot, settings), pilots=pilots, spent=spent, bridge=None, swept=(),
    )  # fmt: skip


def _is_refitted(drawing: Drawing, pilot: Bridge, settings: Settings) -> bool:
    """Whether to fit the proposal to the pilot's particles and try it: while the rest would cost more than the next pilot."""
    tried = len(drawing.pilots)
    if tried >= settings.max_refits:
        return False
    if tried < settings.least_refits:
        return True
    size = _pilot_size(tried + 1, settings)
    next_pilot = _cost(size, settings.oversampling, len(pilot.stages), settings.pilot_sweeps, settings)
    needed = _needed(pilot, settings.max_split_error, settings)
    return needed * _cost_apiece(pilot, settings) > settings.refit_worth * next_pilot


def _cost(particles: float, draws: float, stages: int, sweeps: int, settings: Settings) -> float:
    """About what bridges cost, in rounds of moves of a particle; draws that reach the posterior at once are not moved."""
    return particles * (draws * settings.draw_cost + (stages if stages > 1 else 0) + sweeps)


def _cost_apiece(pilot: Bridge, settings: Settings) -> float:
    """What a particle of the final bridges would cost, if they were like this pilot."""
    stages = len(pilot.stages)
    return _cost(1.0, _oversampling(pilot, settings), stages, _sweeps_after(stages, settings), settings)


def cost_drawn(drawing: Drawing, settings: Settings) -> float:
    """About what the reported bridges have cost so far."""
    if drawing.ladder is None:
        return 0.0
    stages = len(drawing.ladder.betas)
    one = _cost(drawing.n_particles, drawing.oversampling, stages, n_sweeps(drawing, settings), settings)
    return len(drawing.drawn) * one


def n_sweeps(drawing: Drawing, settings: Settings) -> int:
    """Sweeps at the end of each bridge: a fixed share of its cost."""
    return _sweeps_after(len(drawing.ladder.betas), settings) if drawing.ladder else 0


def _sweeps_after(stages: int, settings: Settings) -> int:
    return round(settings.sweep_share * stages)


def _particles_wanted(drawing: Drawing, pilot: Bridge, settings: Settings) -> float:
    """Particles of all bridges together: what is asked for likely reached, and better than that where it costs little."""
    least, most = (_needed(pilot, error, settings) for error in (settings.max_split_error, settings.fine_split_error))
    return max(least, min(most, settings.balance * drawing.spent / _cost_apiece(pilot, settings)))


def _needed(pilot: Bridge, error: float, settings: Settings) -> float:
    """Particles, of all bridges together, by which frequencies of splits have this standard error, and log Z has its own."""
    for_evidence = pilot.variance * pilot.size / settings.accuracy**2
    seen = supports([frequencies((pilot.particles,), pilot.log_weights)], np.zeros(1))
    trees = max(settings.min_effective, wanted_trees(seen, error, settings.reach.known))
    # Particles of one ancestor have been moved at every temperature since: they are worth more than their ancestors say.
    return float(max(for_evidence, trees / max(pilot.worth, settings.least_worth)))


def _oversampling(pilot: Bridge, settings: Settings) -> int:
    """Draws for each particle: enough for most particles to differ, or for `ample` to count at a first temperature."""
    wanted = settings.apiece if len(pilot.stages) == 1 else settings.ample
    return int(np.clip(np.ceil(wanted * len(pilot.first) / pilot.stages[0].effective), 2, settings.oversampling))


def evidence(drawing: Drawing) -> tuple[float, float]:
    """Log of the mean of the bridges' estimates, and its standard error.

    The error combines the scatter of the bridges with what their genealogies say; the larger counts if they disagree.
    """
    estimates = drawing.log_estimates
    n = len(estimates)
    pooled = log_sum_exp(estimates) - float(np.log(n))
    within = float(np.mean([one.variance for one in drawing.drawn]))
    if n < 2:
        return pooled, float(np.sqrt(within))
    between = float(np.var(np.exp(estimates - pooled), ddof=1))
    freedom = 8.0
    blended = (freedom * within + (n - 1) * between) / (freedom + n - 1)
    return pooled, float(np.sqrt(max(blended, between if between > 4.0 * within else 0.0) / n))


def log_weights(drawing: Drawing) -> Floats:
    """Normalised log-weights of all particles of all bridges (of each sweep the same, together counted once)."""
    total = np.concatenate([one.log_weights - np.log(len(one.log_weights)) for one in drawing.drawn])
    offset = np.concatenate([np.full(len(one.log_weights), one.log_evidence - _inner(one)) for one in drawing.drawn])
    total = total + offset
    return total - log_sum_exp(total)


def _inner(one: Drawn) -> float:
    """Log of the mean weight since the last resampling: what is already part of the bridge's evidence."""
    return log_sum_exp(one.log_weights) - float(np.log(len(one.log_weights)))


def effective_trees(drawing: Drawing) -> float:
    """Effective number of independent draws that the particles descend from, all bridges together."""
    estimates = drawing.log_estimates
    share = np.exp(estimates - log_sum_exp(estimates))
    return 1.0 / sum(float(np.square(s * one.shares).sum()) for s, one in zip(share, drawing.drawn))


def mean_bridged(drawing: Drawing) -> float:
    """Mean log-weight of a bridged particle: the lower bound that a single one gives, on average."""
    values = [one.log_evidence + float(np.mean(one.log_weights)) - _inner(one) for one in drawing.drawn]
    return float(np.mean(values))


def agreement(drawing: Drawing) -> Supports:
    """Frequencies of splits in each bridge."""
    return supports([one.splits for one in drawing.drawn], drawing.log_estimates)
