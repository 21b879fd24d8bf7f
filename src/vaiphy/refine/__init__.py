"""The posterior over unrooted binary trees and its evidence, by adaptive importance sampling.

Each replicate, on its own, finds topologies (`explore`) and then in rounds draws topologies from a subsplit law, weighs them
by their mass, and refits the law, until rounds stop learning (`adapt`). Then all laws are frozen, and fresh draws give all
reported figures (`sample`): every draw is weighed under the mixture of all replicates' laws, so that an island that one
replicate found is not lost; each replicate's own estimate is kept beside the pooled one, and their disagreement is reported.

Use: `state = initialise(...)`, then `state, info = step(state)` until `state.done`, then `result(state)`. A state can be
saved between steps and restored (`State.to_arrays`, `from_arrays`): the steps that follow give the same numbers to the last
bit, on any number of threads.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns, fold_states
from vaiphy.branches.gamma import Correction
from vaiphy.parallel import map_threads
from vaiphy.rearrange import Problem
from vaiphy.refine import adapt, sample
from vaiphy.refine.adapt import Replicate, Round
from vaiphy.refine.explore import Archive
from vaiphy.refine.sample import Draws, Frozen, Refinement
from vaiphy.topology.subsplit import SubsplitLaw

__all__ = ["Info", "Refinement", "Settings", "State", "from_arrays", "hurried", "initialise", "result", "step"]

CALIBRATIONS = 2
#: Effective trees are waited for while draws are cheap: for no more than `DIFFUSE_BATCHES` where over this share of the draws are
#: topologies of their own (each costs a fit), and else for as many as `PATIENCE` / (taxa x patterns), if that is more.
DIFFUSE_SHARE, DIFFUSE_BATCHES, PATIENCE = 0.05, 8, 6e5


@dataclass(frozen=True)
class Settings:
    """What is asked for: `accuracy` is the standard error of the log evidence, `min_ess` the effective number of trees.

    Sampling stops when both are reached, or after `max_batches`, but never before `min_batches`; where draws rarely repeat a
    topology, `min_ess` is not waited for so long. `starts` are the kinds of trees that each replicate climbs from
    (`explore.KINDS`). `guard` is mixed into the branch laws (`branches.gamma.draw`): it keeps the variance of the weights finite
    where a Gamma vanishes and the posterior does not.
    """

    replicates: int = 4
    accuracy: float = 0.05
    prior_rate: float = 10.0
    min_ess: float = 10000.0
    min_batches: int = 3
    max_batches: int = 32
    starts: tuple[str, ...] = ("bootstrap",) * 4 + ("random",) * 2
    guard: float = 0.01


@dataclass(frozen=True)
class Info:
    """What a step did: the stage, overall progress from 0 to 1, the estimate so far (NaN if none) and a line to show."""

    stage: str
    progress: float
    log_evidence: float
    std_error: float
    message: str


@dataclass(frozen=True)
class State:
    """Between steps: the replicates; once they are ready, the frozen laws; the draws so far (in batches over all replicates)."""

    problem: Problem
    taxa: tuple[str, ...]
    settings: Settings
    seed: int
    replicates: tuple[Replicate, ...]
    trace: tuple[tuple[int, int, float, float], ...] = ()
    frozen: Frozen | None = None
    n_calibrations: int = 0
    draws: Draws | None = None
    n_batches: int = 0
    done: bool = False

    def to_arrays(self) -> dict[str, NDArray]:
        """Everything but patterns and settings as plain arrays."""
        arrays: dict[str, NDArray] = {
            "seed": np.array([self.seed], dtype=np.int64),
            "counters": np.array([self.n_calibrations, self.n_batches, int(self.done), len(self.replicates)]),
            "trace": np.array(self.trace, dtype=np.float64).reshape(-1, 4),
        }
        if self.frozen is None:
            for r in self.replicates:
                arrays.update(_prefixed(f"replicate{r.index}", _replicate_arrays(r)))
        else:
            starts = self.frozen.starts.to_arrays()
            arrays.update(_prefixed("starts", {key: starts[key] for key in ("split_keys", "split_lengths")}))
            arrays.update(_prefixed("correction", {f.name: getattr(self.frozen.correction, f.name) for f in fields(Correction)}))
            for i, law in enumerate(self.frozen.laws):
                arrays.update(_prefixed(f"law{i}", law.to_arrays()))
        if self.draws is not None:
            arrays.update(_prefixed("draws", {f.name: getattr(self.draws, f.name) for f in fields(Draws)}))
        return arrays


def initialise(patterns: SitePatterns, settings: Settings, seed: int) -> State:
    """The state before the first step."""
    if patterns.n_taxa < 3:
        raise ValueError("a tree needs at least 3 taxa")
    problem = Problem(fold_states(patterns), settings.prior_rate)
    replicates = tuple(Replicate(i, Archive(problem)) for i in range(settings.replicates))
    return State(problem, patterns.taxa, settings, seed, replicates)


def step(state: State, threads: int = 1) -> tuple[State, Info]:
    """One bounded piece of work: a move of every replicate that is not ready, a calibration, or a batch of final draws."""
    if state.done:
        return state, _info(state)
    if state.frozen is None:
        state = _advance_replicates(state, threads)
    elif state.n_calibrations < CALIBRATIONS:
        rng = np.random.default_rng([state.seed, 2, state.n_calibrations])
        state = replace(state, frozen=sample.calibrate(state.frozen, rng, threads), n_calibrations=state.n_calibrations + 1)
    else:
        state = _draw_batch(state, threads)
    return state, _info(state)


def hurried(state: State) -> State:
    """The same state with the search ended here: its laws are frozen as they are, and the next step draws from them.

    For a run whose time is up. Each replicate must have found at least one tree, so at least one step must have been made.
    """
    if state.frozen is not None:
        return replace(state, n_calibrations=CALIBRATIONS)
    if not all(len(r.archive) for r in state.replicates):
        raise ValueError("no tree has been found yet")
    for replicate in state.replicates:
        adapt.end_here(replicate)
    frozen = sample.freeze(list(state.replicates), state.settings.guard)
    return replace(state, frozen=frozen, n_calibrations=CALIBRATIONS)


def result(state: State) -> Refinement:
    """The best honest answer so far. Raises ValueError before the first batch of final draws."""
    if state.draws is None:
        raise ValueError("there is no final sample yet")
    notes = () if state.done else ("the run was ended before the accuracy asked for was reached",)
    return sample.summarise(state.draws, state.taxa, state.settings.accuracy, state.trace, notes)


def from_arrays(arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> State:
    """The state that `State.to_arrays` described."""
    state = initialise(patterns, settings, int(arrays["seed"][0]))
    n_calibrations, n_batches, done, _ = (int(x) for x in arrays["counters"])
    trace = tuple((int(r), int(k), e, s) for r, k, e, s in arrays["trace"].tolist())
    state = replace(state, trace=trace, n_calibrations=n_calibrations, n_batches=n_batches, done=bool(done))
    if "correction.keys" in arrays:
        starts = _unprefixed("starts", arrays)
        lengths = dict(zip(starts["split_keys"].tolist(), starts["split_lengths"].tolist()))
        frozen = Frozen(
            state.problem,
            tuple(SubsplitLaw.from_arrays(_unprefixed(f"law{i}", arrays)) for i in range(settings.replicates)),
            Archive(state.problem, split_length=lengths),
            Correction(**_unprefixed("correction", arrays)),
            settings.guard,
        )
        state = replace(state, frozen=frozen)
    else:
        replicates = (_replicate(r, state.problem, arrays) for r in range(settings.replicates))
        state = replace(state, replicates=tuple(replicates))
    if "draws.lengths" in arrays:
        state = replace(state, draws=Draws(**_unprefixed("draws", arrays)))
    return state


def _advance_replicates(state: State, threads: int) -> State:
    waiting = [r for r in state.replicates if not r.ready]
    inner = max(1, threads // len(waiting))
    before = {r.index: len(r.trace) for r in waiting}
    map_threads(lambda r: adapt.advance(r, state.seed, state.settings.starts, inner), waiting, threads)
    news = tuple((r.index, len(r.trace), *r.trace[-1]) for r in waiting if len(r.trace) > before[r.index])
    state = replace(state, trace=state.trace + news)
    if all(r.ready for r in state.replicates):
        state = replace(state, frozen=sample.freeze(list(state.replicates), state.settings.guard))
    return state


def _draw_batch(state: State, threads: int) -> State:
    assert state.frozen is not None
    frozen, n = state.frozen, len(state.frozen.laws)
    inner = max(1, threads // n)

    def draw(r: int) -> Draws:
        return sample.draw(frozen, r, np.random.default_rng([state.seed, 3, state.n_batches, r]), inner)

    batches = map_threads(draw, range(n), threads)
    draws = sample.join(([] if state.draws is None else [state.draws]) + batches)
    n_batches = state.n_batches + 1
    _, error, log_weights = sample.evidence(draws, len(state.taxa))
    settings = state.settings
    many = sample.effective_sample_size(log_weights) >= settings.min_ess
    patience = float(DIFFUSE_BATCHES)
    if sample.n_distinct(draws) <= DIFFUSE_SHARE * len(log_weights):
        patience = max(patience, PATIENCE / (frozen.problem.n_taxa * frozen.problem.patterns.n_patterns))
    enough = many or n_batches >= patience
    reached = error <= settings.accuracy and enough
    done = n_batches >= settings.min_batches and (reached or n_batches >= settings.max_batches)
    return replace(state, draws=draws, n_batches=n_batches, done=done)


def _info(state: State) -> Info:
    if state.draws is not None:
        pooled, error, log_weights = sample.evidence(state.draws, len(state.taxa))
        ess = sample.effective_sample_size(log_weights)
        settings = state.settings
        share = min((settings.accuracy / error) ** 2 if error > 0 else 1.0, ess / settings.min_ess, 1.0)
        progress = 1.0 if state.done else 0.6 + 0.4 * max(share, state.n_batches / settings.max_batches)
        message = f"{len(log_weights)} trees drawn, effective {ess:.0f}"
        return Info("sample", min(progress, 1.0), pooled, error, message)
    if state.frozen is not None:
        return Info(
            "sample", 0.6, float("nan"), float("nan"), f"branch-length laws corrected ({state.n_calibrations} of {CALIBRATIONS})"
        )
    known = sum(len(r.archive) for r in state.replicates)
    rounds = min(len(r.trace) for r in state.replicates)
    n_steps = min(r.n_steps for r in state.replicates)
    if rounds == 0:
        progress = 0.3 * n_steps / (len(state.settings.starts) + adapt.EXPANSIONS // adapt.EXPANSIONS_PER_STEP)
        best = max((max(r.archive.masses) for r in state.replicates if len(r.archive)), default=float("nan"))
        return Info("explore", progress, float("nan"), float("nan"), f"{known} topologies found, best log mass {best:.2f}")
    shares = [r.trace[-1][1] for r in state.replicates]
    progress = 0.3 + 0.3 * min(1.0, rounds / (rounds + 5.0))
    message = f"round {rounds}, {known} topologies found, effective share {min(shares):.2f}"
    return Info("adapt", progress, float("nan"), float("nan"), message)


def _replicate_arrays(replicate: Replicate) -> dict[str, NDArray]:
    arrays: dict[str, NDArray] = {
        "counters": np.array([replicate.n_steps, int(replicate.ready), len(replicate.rounds)]),
        "trace": np.array(replicate.trace, dtype=np.float64).reshape(-1, 2),
        **_prefixed("archive", replicate.archive.to_arrays()),
    }
    if replicate.law is not None:
        arrays.update(_prefixed("law", replicate.law.to_arrays()))
    for k, past in enumerate(replicate.rounds):
        arrays.update(_prefixed(f"round{k}", {"places": past.places, **past.law.to_arrays()}))
    return arrays


def _replicate(index: int, problem: Problem, arrays: dict[str, NDArray]) -> Replicate:
    mine = _unprefixed(f"replicate{index}", arrays)
    n_steps, ready, n_rounds = (int(x) for x in mine["counters"])
    law = SubsplitLaw.from_arrays(_unprefixed("law", mine)) if "law.size" in mine else None
    rounds = []
    for k in range(n_rounds):
        past = _unprefixed(f"round{k}", mine)
        rounds.append(Round(SubsplitLaw.from_arrays(past), past["places"]))
    trace = [(estimate, share) for estimate, share in mine["trace"].tolist()]
    return Replicate(index, Archive.from_arrays(problem, _unprefixed("archive", mine)), n_steps, law, rounds, trace, bool(ready))


def _prefixed(prefix: str, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
    return {f"{prefix}.{key}": value for key, value in arrays.items()}


def _unprefixed(prefix: str, arrays: dict[str, NDArray]) -> dict[str, NDArray]:
    start = prefix + "."
    return {key[len(start) :]: value for key, value in arrays.items() if key.startswith(start)}
