"""The posterior and its evidence as a sequence of bounded steps.

Replicates learn proposals on their own (`learning`); their particles are pooled into one proposal, which is frozen together
with a ladder of temperatures found for it; bridges from there give all that is reported (`drawing`), until the accuracy asked for
is reached. Each bridge's evidence is unbiased, so bridges are pooled by their evidences, and their scatter is the error.

Use: `state = initialise(...)`, then `state = step(state)` until `state.done`, then `result(state)`. States are values; one that
was saved between steps and restored goes on to the same numbers, to the last bit, on any number of threads.
"""

from dataclasses import dataclass, replace

from numpy.typing import NDArray

from vaiphy.posterior import drawing as drawings
from vaiphy.posterior import learning, saving
from vaiphy.posterior.agreement import split_deviation, split_error
from vaiphy.posterior.drawing import Drawing
from vaiphy.posterior.learning import Replicate
from vaiphy.posterior.settings import Settings
from vaiphy.posterior.starts import GivenTrees
from vaiphy.target import Target
from vaiphy.workers.spread import Workers, each


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
    usable = tuple(r for r in state.replicates if r.arrived)
    if not usable:
        raise ValueError("no replicate has reached the posterior yet")
    hasty = replace(
        state.settings, max_refits=0, max_restarts=0, pilot_particles=min(state.settings.pilot_particles, state.settings.hasty)
    )
    return begin_drawing(replace(state, settings=hasty), usable)


def begin_drawing(state: State, replicates: tuple[Replicate, ...]) -> State:
    """Fit a proposal to what the replicates have found."""
    proposal = learning.refitted(replicates, state.target, state.settings)
    spent = float(sum(learning.cost(replicate) for replicate in replicates))
    return replace(state, drawing=Drawing(proposal, *learning.found(replicates, state.settings), spent=spent))


def to_arrays(state: State) -> dict[str, NDArray]:
    """Everything but target and settings as plain arrays."""
    return saving.to_arrays(state, (Target, Settings))


def from_arrays(arrays: dict[str, NDArray], target: Target, settings: Settings) -> State:
    """The state that `to_arrays` described."""
    state: State = saving.from_arrays(State, arrays, {Target: target, Settings: settings})
    return state


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
    error = split_error(found, settings.reach.known)
    if split_deviation(found) > settings.max_deviation or error > settings.max_split_error:
        return False
    return error <= settings.fine_split_error or drawings.cost_drawn(drawing, settings) >= settings.balance * drawing.spent
