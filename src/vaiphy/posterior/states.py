"""The posterior and its evidence as a sequence of bounded steps.

Replicates learn proposals on their own (`learning`); their particles are pooled into one proposal, which is frozen together
with a ladder of temperatures found for it; bridges from there give all that is reported (`drawing`), until the accuracy asked for
is reached. Each bridge's evidence is unbiased, so bridges are pooled by their evidences, and their scatter is the error.

Use: `state = initialise(...)`, then `state = step(state)` until `state.done`, then `result(state)`. States are values; one that
was saved between steps and restored goes on to the same numbers, to the last bit, on any number of threads.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.posterior import drawing as drawings
from vaiphy.posterior import learning, saving
from vaiphy.posterior.agreement import split_deviation, split_error
from vaiphy.posterior.drawing import Drawing
from vaiphy.posterior.learning import Replicate
from vaiphy.posterior.proposal import prior_proposal
from vaiphy.posterior.settings import Settings
from vaiphy.posterior.starts import GivenTrees
from vaiphy.target import Target
from vaiphy.workers.spread import Workers, each

#: First rounds from the prior must find this much more (log units) than later ones for the prior to be kept as proposal.
MARGIN = 1.0


@dataclass(frozen=True, eq=False)
class State:
    """Between steps: the replicates, and once they are ready the final sample."""

    target: Target
    settings: Settings
    seed: int
    replicates: tuple[Replicate, ...]
    drawing: Drawing | None = None
    done: bool = False


def initialise(target: Target, settings: Settings, seed: int, given: GivenTrees | None = None) -> State:
    """The state before the first step; `given` are trees for replicates of the kind "given"."""
    if target.n_taxa < 3:
        raise ValueError("a tree needs at least 3 taxa")
    replicates = tuple(learning.begin(target, settings, seed, index, given) for index in range(settings.replicates))
    return State(target, settings, seed, replicates)


def step(state: State, threads: Workers = 1) -> State:
    """One bounded piece of work: a stage of every replicate that is not ready, or of the final sample."""
    if state.done:
        return state
    settings = state.settings
    if state.drawing is None:

        def advanced(replicate: Replicate) -> Replicate:
            return replicate if replicate.ready else learning.advance(replicate, settings, state.seed, threads)

        replicates = tuple(each(advanced, state.replicates, threads))
        state = replace(state, replicates=replicates)
        return begin_drawing(state, replicates) if all(r.ready for r in replicates) else state
    drawing = drawings.advance(state.drawing, settings, state.seed, threads)
    return replace(state, drawing=drawing, done=_enough(drawing, settings))


def hurried(state: State) -> State:
    """The state with learning ended here, for a run whose time is up: drawing starts from the replicates that are furthest."""
    if state.drawing is not None:
        return state
    usable = tuple(r for r in state.replicates if r.rounds or (r.bridge is not None and r.bridge.done))
    if not usable:
        raise ValueError("no replicate has reached the posterior yet")
    return begin_drawing(state, usable)


def begin_drawing(state: State, replicates: tuple[Replicate, ...]) -> State:
    """Freeze a proposal: the pooled one, or the prior where bridges from it find more than those from what was learned."""
    if _prior_is_better(replicates):
        return replace(state, drawing=Drawing(prior_proposal(state.target), True, None, np.zeros(0)))
    finished = tuple(r for r in replicates if r.bridge is not None and r.bridge.done)
    if not finished:  # all are between two rounds: the one that found most
        best = max(replicates, key=lambda r: r.rounds[-1].log_evidence)
        return replace(state, drawing=Drawing(best.proposal, False, None, np.zeros(0)))
    proposal = learning.refitted(finished, state.target, state.settings.fitting)
    return replace(state, drawing=Drawing(proposal, False, *learning.found(finished)))


def to_arrays(state: State) -> dict[str, NDArray]:
    """Everything but target and settings as plain arrays."""
    return saving.to_arrays(state, (Target, Settings))


def from_arrays(arrays: dict[str, NDArray], target: Target, settings: Settings) -> State:
    """The state that `to_arrays` described."""
    state: State = saving.from_arrays(State, arrays, {Target: target, Settings: settings})
    return state


def _prior_is_better(replicates: tuple[Replicate, ...]) -> bool:
    """Whether first rounds from the prior found more evidence than refitted ones.

    Proposals blend islands of trees: a region of very many poor trees (an "entropic island") may hold most of the probability,
    is found from the prior, and is lost when a proposal is fitted. Estimates that miss something are low.
    """
    first = [r.rounds[0].log_evidence for r in replicates if r.kind == "prior" and len(r.rounds) > 1]
    later = [max(round_.log_evidence for round_ in r.rounds[1:]) for r in replicates if len(r.rounds) > 1]
    return bool(first) and float(np.median(first)) > float(np.median(later)) + MARGIN


def _enough(drawing: Drawing, settings: Settings) -> bool:
    if drawing.bridge is not None or len(drawing.drawn) < (settings.bridges or settings.replicates):
        return False
    if settings.bridges:
        return True
    if len(drawing.drawn) >= settings.max_bridges:
        return True
    if drawings.evidence(drawing)[1] > settings.accuracy or drawings.effective_trees(drawing) < settings.min_effective:
        return False
    found = drawings.agreement(drawing)
    return split_deviation(found) <= settings.max_deviation and split_error(found) <= settings.max_split_error
