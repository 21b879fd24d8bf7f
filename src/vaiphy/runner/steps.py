"""The steps of a method one after another, with checkpoints between them, until it is done or its time is up."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods import Method, NotYet, method_of
from vaiphy.methods.outcome import Outcome, Progress
from vaiphy.methods.settings import Settings
from vaiphy.workers.spread import LostWorkers, Workers

#: Seconds between two checkpoints, at least.
SAVE_EVERY = 1.0
#: Seconds of a time limit that are kept back for summaries and files.
RESERVE = 2.0


@dataclass(frozen=True)
class Stopped:
    """Where the steps of a method ended."""

    outcome: Outcome
    complete: bool
    state: dict[str, NDArray]
    timings: dict[str, float]


Save = Callable[[dict[str, NDArray], dict[str, float]], None]


def with_workers(tell: Callable[[Progress], None], workers: Workers) -> Callable[[Progress], None]:
    """Tell, and say how many workers there are if they are not threads of this process."""
    if isinstance(workers, int):
        return tell
    return lambda progress: tell(replace(progress, message=f"{progress.message}, {workers.words()}".removeprefix(", ")))


class Interrupted(KeyboardInterrupt):
    """The user stopped the run; `saved` says whether a checkpoint is there to go on from."""

    def __init__(self, saved: bool) -> None:
        super().__init__()
        self.saved = saved


def is_interrupt(problem: BaseException) -> bool:
    """Whether this is Ctrl-C or a polite kill. One that falls into a call of compiled code comes out as a SystemError."""
    if isinstance(problem, SystemError):
        return isinstance(problem.__cause__ or problem.__context__, KeyboardInterrupt)
    return isinstance(problem, KeyboardInterrupt)


def run_steps(
    patterns: SitePatterns,
    settings: Settings,
    *,
    threads: Workers = 1,
    state: dict[str, NDArray] | None = None,
    timings: dict[str, float] | None = None,
    time_limit: float | None = None,
    save: Save | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
    method: Method | None = None,
) -> Stopped:
    """Step after step until the method is done or the time is up; `save` is called between steps now and then.

    `state` (arrays of an earlier state) goes on where it was saved. How often is saved depends on the clock, what is
    saved does not: any saved state leads to the same outcome. `method` is the one that the settings name, unless given.
    """
    began = saved_at = clock()
    method = method or method_of(settings)
    seconds = dict(timings or {})
    now: Any = None
    save_took = 0.0
    fresh = True  # whether the present state is newer than the last one saved
    held: Any = None  # the state before it was hurried: a later run goes on from there
    try:
        now = method.initialise(patterns, settings) if state is None else method.from_arrays(state, patterns, settings)
        while not method.is_done(now):
            if time_limit is not None and clock() - began > time_limit - RESERVE:
                try:
                    outcome = method.outcome(now)
                except NotYet:  # nothing honest to report yet: go the quickest way until there is
                    if held is None:
                        with suppress(NotYet):
                            held, now = now, method.hurried(now)
                else:
                    return Stopped(outcome, False, method.to_arrays(now if held is None else held), seconds)
            step_began = clock()
            now, progress = method.step(now, threads)
            if time_limit is not None and clock() - began > time_limit:
                progress = replace(
                    progress, message=f"{progress.message} (past the time limit, there is no result to report yet)"
                )
            fresh = True
            seconds[progress.stage] = seconds.get(progress.stage, 0.0) + clock() - step_began
            tell(progress)
            if save is not None and held is None and clock() - saved_at > max(SAVE_EVERY, 20 * save_took):
                saved_at = clock()
                save(method.to_arrays(now), seconds)
                save_took, fresh = clock() - saved_at, False
        return Stopped(method.outcome(now), held is None, method.to_arrays(now if held is None else held), seconds)
    except (KeyboardInterrupt, SystemError) as stop:
        if not is_interrupt(stop):
            raise
        if save is not None and now is not None and fresh:
            save(method.to_arrays(now if held is None else held), seconds)
        raise Interrupted(save is not None and now is not None) from None
    except LostWorkers as problem:
        if save is None or now is None:
            raise
        if fresh:
            save(method.to_arrays(now if held is None else held), seconds)
        raise LostWorkers(f"{problem}; the same command (without --redo) continues from the checkpoint") from None
