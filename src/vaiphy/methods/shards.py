"""The posterior method divided into shards, for job arrays: each learns from one replicate, then draws its share of the bridges.

Replicates know nothing of each other while they learn, and final bridges differ in their random numbers alone, so shard i of n
learns replicate i and, from what all have learned, draws bridges i, i + n, i + 2n, ... Put together (`merged`) they are the
state in which one run of n replicates and that many bridges ends.
"""

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods.outcome import Outcome, Progress
from vaiphy.methods.posterior import PosteriorMethod, tuning_for
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import target_for
from vaiphy.posterior import learning, states
from vaiphy.posterior.learning import Replicate
from vaiphy.posterior.progress import learned
from vaiphy.posterior.states import State
from vaiphy.target import Target
from vaiphy.workers.spread import Workers


class ShardMethod(PosteriorMethod):
    """Part of the posterior method, which alone has nothing to report: what counts is the state it ends in."""

    def outcome(self, state: Any) -> Outcome:
        return Outcome({}, False, ())


class LearningShard(ShardMethod):
    """Replicate `index` (from 0) until it is ready."""

    def __init__(self, index: int) -> None:
        self._index = index

    def initialise(self, patterns: SitePatterns, settings: Settings) -> Any:
        target = target_for(patterns, settings)
        tuning = tuning_for(settings, target)
        return State(target, tuning, settings.seed, (learning.begin(target, tuning, settings.seed, self._index),))

    def step(self, state: Any, threads: Workers) -> tuple[Any, Progress]:
        (replicate,) = state.replicates
        replicate = learning.advance(replicate, state.settings, state.seed, threads)
        message = f"at {0.0 if replicate.bridge is None else replicate.bridge.beta:.3f} of the way to the posterior"
        if replicate.arrived:
            message = f"settling, {len(replicate.levels)} sweeps so far"
        return replace(state, replicates=(replicate,)), Progress("learn", learned(replicate, state.settings), message=message)

    def is_done(self, state: Any) -> bool:
        return bool(state.replicates[0].ready)


class DrawingShard(ShardMethod):
    """Bridges `index`, `index` + n, ... (from 0) of those that settings ask for, from what n `replicates` have learned."""

    def __init__(self, index: int, replicates: tuple[Replicate, ...]) -> None:
        self._index, self._replicates = index, replicates

    def initialise(self, patterns: SitePatterns, settings: Settings) -> Any:
        target, n = target_for(patterns, settings), settings.replicates
        begun = State(target, self._tuning(settings, target), settings.seed, self._replicates)
        state = states.begin_drawing(begun, self._replicates)
        # What was learned is in the proposal now; the replicates themselves are in the shards they came from.
        assert state.drawing is not None
        return replace(state, replicates=(), drawing=replace(state.drawing, first=self._index, stride=n))

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> Any:
        target = target_for(patterns, settings)
        return states.from_arrays(arrays, target, self._tuning(settings, target))

    def _tuning(self, settings: Settings, target: Target) -> Any:
        own = range(self._index, n_bridges(settings), settings.replicates)
        return replace(tuning_for(settings, target), bridges=len(own))


def n_bridges(settings: Settings) -> int:
    """Bridges of all shards together: as many as there are shards, unless more are asked for."""
    return settings.bridges or settings.replicates


def merged(learned: list[State], drawn: list[State], settings: Settings) -> State:
    """The state in which one run of all replicates and bridges ends."""
    first = drawn[0].drawing
    assert first is not None
    n = len(drawn)
    parts = [state.drawing.drawn for state in drawn if state.drawing is not None]
    every = tuple(parts[b % n][b // n] for b in range(n_bridges(settings)))
    replicates = tuple(state.replicates[0] for state in learned)
    drawing = replace(first, drawn=every, first=0, stride=1)
    target = first.proposal.target
    return State(target, tuning_for(settings, target), settings.seed, replicates, drawing, True)
