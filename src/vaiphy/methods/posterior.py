"""`--method posterior`: trees, lengths and parameters bridged from learned proposals to the posterior (`vaiphy.posterior`)."""

from dataclasses import asdict, replace
from math import sqrt
from typing import Any

from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods.method import NotYet
from vaiphy.methods.outcome import UNROOTED, Estimate, Outcome, Progress, Trace
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import target_for
from vaiphy.posterior import progress, results, states
from vaiphy.posterior.settings import Settings as Tuning
from vaiphy.posterior.settings import tuned_to
from vaiphy.target import Target
from vaiphy.workers.spread import Workers


class PosteriorMethod:
    """The posterior over unrooted binary trees, branch lengths and model parameters."""

    def initialise(self, patterns: SitePatterns, settings: Settings) -> Any:
        target = target_for(patterns, settings)
        return states.initialise(target, tuning_for(settings, target), settings.seed)

    def step(self, state: Any, threads: Workers) -> tuple[Any, Progress]:
        state = states.step(state, threads)
        info = progress.describe(state)
        return state, Progress(info.stage, info.share, info.log_evidence, info.std_error, info.message)

    def hurried(self, state: Any) -> Any:
        try:
            return states.hurried(state)
        except ValueError as problem:
            raise NotYet(str(problem)) from None

    def is_done(self, state: Any) -> bool:
        return bool(state.done)

    def to_arrays(self, state: Any) -> dict[str, NDArray]:
        return states.to_arrays(state)

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> Any:
        target = target_for(patterns, settings)
        return states.from_arrays(arrays, target, tuning_for(settings, target))

    def outcome(self, state: Any) -> Outcome:
        try:
            found = results.result(state)
        except ValueError as problem:
            raise NotYet(str(problem)) from None
        estimate = Estimate(
            found.log_evidence, found.std_error, UNROOTED, found.sample.n_samples, found.effective, float("nan"),
            tuple(found.bridges.tolist()), tuple(sqrt(one.variance) for one in state.drawing.drawn),
        )  # fmt: skip
        trace = tuple(
            Trace(f"replicate {replicate.index + 1}", k + 1, level)
            for replicate in state.replicates
            for k, level in enumerate(replicate.levels[:, 0].tolist())
        )
        return Outcome(
            {"posterior": estimate}, found.converged, found.reasons, found.sample, elbo=found.bounds["LB-1"], trace=trace,
            bounds=found.bounds, diagnostics=found.diagnostics, tuning=asdict(state.settings),
        )  # fmt: skip


def tuning_for(settings: Settings, target: Target) -> Tuning:
    """The sampler's numbers with what the settings ask for."""
    tuning = tuned_to(target, Tuning(replicates=settings.replicates, accuracy=settings.accuracy, bridges=settings.bridges))
    if settings.particles is None:
        return tuning
    return replace(tuning, min_particles=settings.particles, max_particles=settings.particles)
