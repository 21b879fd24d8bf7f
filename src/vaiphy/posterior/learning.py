"""One replicate's way to trees that a proposal can be fitted to: anneal from where it starts, then settle at the posterior.

Particles are annealed coarsely, past a warm temperature without resampling, and then moved at the posterior itself until they no
longer get better: so each settles in the island of trees that it came to, and none is lost for being poor on arrival.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.posterior import bridge
from vaiphy.posterior.bridge import Bridge
from vaiphy.posterior.particles import Particles, joined, log_posterior, moved_on
from vaiphy.posterior.proposal import Proposal, fit
from vaiphy.posterior.settings import Settings
from vaiphy.posterior.starts import GivenTrees, start
from vaiphy.target import Target
from vaiphy.weights import normalised, tempered
from vaiphy.workers.spread import Workers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Replicate:
    """A search of its own: the proposal it starts from, the bridge it is on, and its particles after each of the last sweeps.

    `levels`: median and standard deviation of the particles' log-posteriors after each sweep.
    """

    index: int
    kind: str
    proposal: Proposal
    bridge: Bridge | None = None
    settled: tuple[Particles, ...] = ()
    levels: Floats = field(default_factory=lambda: np.zeros((0, 2)))
    ready: bool = False

    @property
    def arrived(self) -> bool:
        """Whether its particles are at the posterior, settled or not."""
        return self.bridge is not None and self.bridge.done


def begin(target: Target, settings: Settings, seed: int, index: int, given: GivenTrees | None = None) -> Replicate:
    kind = settings.kinds[index % len(settings.kinds)]
    return Replicate(index, kind, start(target, kind, np.random.default_rng([seed, 0, index]), given))


def advance(replicate: Replicate, settings: Settings, seed: int, threads: Workers) -> Replicate:
    """One step: particles drawn, one temperature further, or one sweep more."""
    now, proposal, is_prior = replicate.bridge, replicate.proposal, replicate.kind == "prior"
    if now is None:
        n = settings.first_particles if is_prior else settings.learn_particles
        # Picking the best of many draws would only narrow the search.
        return replace(
            replicate, bridge=bridge.initialise(proposal, n, (seed, 1, replicate.index), 1, None, threads, settings.reach)
        )
    if not now.done:
        growth = settings.growth if is_prior else ()
        step = bridge.step(
            now, proposal, settings.learn_moves, settings.learn_size, threads, growth, settings.apart, settings.reach
        )
        return replace(replicate, bridge=step)
    last = replicate.settled[-1] if replicate.settled else now.particles
    key = (*now.seed, 3, len(replicate.levels))
    swept = moved_on(proposal, last, settings.learn_moves, now.walks[-1], key, threads)
    values = log_posterior(proposal, swept)
    levels = np.concatenate([replicate.levels, [[np.median(values), np.std(values)]]])
    kept = (*replicate.settled, swept)[-settings.window :]
    return replace(
        replicate, settled=kept, levels=levels, ready=is_settled(levels, settings.most_settling, settings.window, settings.rise)
    )


def is_settled(levels: Floats, most: int, window: int, rise: float) -> bool:
    """Whether more sweeps would hardly make the particles better."""
    if len(levels) >= most:
        return True
    if len(levels) < 2 * window:
        return False
    earlier, later = levels[-2 * window : -window, 0].mean(), levels[-window:, 0].mean()
    return bool(later - earlier < rise * levels[-1, 1])


def cost(replicate: Replicate) -> float:
    """About what it has cost, in rounds of moves of a particle."""
    stages = 0 if replicate.bridge is None else len(replicate.bridge.stages)
    return float((stages + len(replicate.levels)) * (0 if replicate.bridge is None else replicate.bridge.size))


def refitted(replicates: tuple[Replicate, ...], target: Target, settings: Settings) -> Proposal:
    """The proposal fitted to what the replicates found."""
    particles, weights = found(replicates, settings)
    return fit(target, particles.children, particles.lengths, particles.tops, particles.z, weights, settings.fitting)


def found(replicates: tuple[Replicate, ...], settings: Settings) -> tuple[Particles, Floats]:
    """Particles of all replicates that have arrived, weighed partly by the evidence of their replicate and partly equally.

    By evidence alone the best replicate would silence the others, and with them islands of trees that only they have found: a
    small bridge from a poor proposal may be many log units low.
    """
    arrived = [(r, r.bridge) for r in replicates if r.bridge is not None and r.bridge.done]
    by_evidence = normalised(np.array([b.estimate for _, b in arrived]))
    share = settings.by_evidence * by_evidence + (1.0 - settings.by_evidence) / len(arrived)
    particles: list[Particles] = []
    weights: list[Floats] = []
    for part, (replicate, own) in zip(share, arrived):
        trees = replicate.settled or (own.particles,)
        particles += trees
        weights += [part / len(trees) * tempered(own.log_weights, settings.lineages * own.size)] * len(trees)
    return joined(particles), np.concatenate(weights)
