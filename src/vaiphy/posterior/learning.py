"""One replicate's way to a proposal: bridge to the posterior, refit, bridge again, until the bridge is as short as it gets."""

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.posterior import bridge
from vaiphy.posterior.bridge import Bridge, Particles, joined
from vaiphy.posterior.proposal import Fitting, Proposal, fit
from vaiphy.posterior.settings import Settings
from vaiphy.posterior.starts import GivenTrees, start
from vaiphy.target import Target
from vaiphy.weights import normalised, tempered
from vaiphy.workers.spread import Workers

Floats = NDArray[np.float64]
#: Shares of what replicates found: weighed by their evidences; what their first rounds found (the rest: last rounds, equally).
BY_EVIDENCE, FIRST_ROUNDS = 0.5, 0.2
#: Weights are flattened until this share of the particles counts: small islands of trees would otherwise be lost by chance.
LINEAGES = 0.3


@dataclass(frozen=True)
class Round:
    """What a round of learning found: its log evidence with a standard error, stages, and ancestors that survived."""

    log_evidence: float
    std_error: float
    n_stages: int
    n_ancestors: int


@dataclass(frozen=True, eq=False)
class Replicate:
    """A search of its own: the proposal it has, the bridge it is on (None between rounds), and what its rounds found.

    `annealed`: particles that the first round ended with, and their weights, before anything was fitted to them.
    """

    index: int
    kind: str
    proposal: Proposal
    bridge: Bridge | None = None
    annealed: Particles | None = None
    annealed_weights: Floats = field(default_factory=lambda: np.zeros(0))
    rounds: tuple[Round, ...] = ()
    ready: bool = False


def begin(target: Target, settings: Settings, seed: int, index: int, given: GivenTrees | None = None) -> Replicate:
    kind = settings.kinds[index % len(settings.kinds)]
    return Replicate(index, kind, start(target, kind, np.random.default_rng([seed, 0, index]), given))


def advance(replicate: Replicate, settings: Settings, seed: int, threads: Workers) -> Replicate:
    """One step: particles drawn, one temperature further, or the end of a round."""
    now = replicate.bridge
    k = len(replicate.rounds)
    if now is None:
        # Picking the best of many draws from the prior would only narrow the search.
        oversampling = settings.oversampling if k else 1
        key = (seed, 1, replicate.index, k)
        n = settings.first_particles if k == 0 and replicate.kind == "prior" else settings.learn_particles
        return replace(replicate, bridge=bridge.initialise(replicate.proposal, n, key, oversampling, threads=threads))
    if not now.done:
        size, moves = (settings.refine_size, settings.moves) if k else (settings.learn_size, settings.learn_moves)
        growth = settings.growth if k == 0 and replicate.kind == "prior" else ()
        apart = settings.apart if k == 0 else 2.0
        return replace(replicate, bridge=bridge.step(now, replicate.proposal, moves, size, threads, growth, apart))
    if k == 0:
        replicate = replace(replicate, annealed=now.particles, annealed_weights=tempered(now.log_weights, LINEAGES * now.size))
    rounds = (*replicate.rounds, Round(now.estimate, now.std_error, len(now.stages), now.n_ancestors))
    if enough(rounds, settings):
        return replace(replicate, rounds=rounds, ready=True)
    proposal = refitted((replicate,), replicate.proposal.target, settings.fitting)
    return replace(replicate, proposal=proposal, bridge=None, rounds=rounds)


def enough(rounds: tuple[Round, ...], settings: Settings) -> bool:
    """Whether another round would hardly be shorter. The first refitted round is compared with none: its ladder is finer."""
    if len(rounds) < settings.min_rounds:
        return False
    if len(rounds) >= settings.max_rounds:
        return True
    last = rounds[-1]
    return last.n_ancestors >= settings.learn_particles // 4 or (
        len(rounds) > 2 and last.n_stages >= settings.shorter * rounds[-2].n_stages
    )


def refitted(replicates: tuple[Replicate, ...], target: Target, fitting: Fitting) -> Proposal:
    """The proposal fitted to what the replicates found."""
    particles, weights = found(replicates)
    return fit(target, particles.children, particles.lengths, particles.tops, particles.z, weights, fitting)


def found(replicates: tuple[Replicate, ...]) -> tuple[Particles, Floats]:
    """Particles of all finished bridges, weighed partly by the evidence of their replicate and partly equally, and those that
    first rounds ended with.

    By evidence alone the best replicate would silence the others, and with them islands of trees that only they have found: a
    small bridge from a poor proposal may be several log units low. A proposal in turn may silence what first rounds had found.
    """
    done = [r for r in replicates if r.bridge is not None and r.bridge.done]
    bridges = [r.bridge for r in done if r.bridge is not None]
    first = [r for r in done if r.annealed is not None and r.rounds]
    early = FIRST_ROUNDS if first else 0.0
    share = BY_EVIDENCE * normalised(np.array([b.estimate for b in bridges])) + (1.0 - BY_EVIDENCE - early) / len(done)
    weights = [s * tempered(b.log_weights, LINEAGES * b.size) for s, b in zip(share, bridges)]
    weights += [early / len(first) * r.annealed_weights for r in first]
    return joined([b.particles for b in bridges] + [r.annealed for r in first if r.annealed is not None]), np.concatenate(weights)
