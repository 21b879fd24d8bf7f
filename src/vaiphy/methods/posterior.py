"""`--method posterior`: adaptive importance sampling over unrooted binary trees (`vaiphy.refine`)."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods.method import NotYet
from vaiphy.outcome import UNROOTED, Estimate, Outcome, Progress, Trace
from vaiphy.settings import Settings


class PosteriorMethod:
    """Adaptive importance sampling over unrooted binary trees (`vaiphy.refine`)."""

    def __init__(self) -> None:
        self.refine = import_module("vaiphy.refine")

    def _settings(self, settings: Settings) -> Any:
        return self.refine.Settings(replicates=settings.replicates, accuracy=settings.accuracy, prior_rate=settings.prior_rate)

    def initialise(self, patterns: SitePatterns, settings: Settings) -> Any:
        return self.refine.initialise(patterns, self._settings(settings), settings.seed)

    def step(self, state: Any, threads: int) -> tuple[Any, Progress]:
        state, info = self.refine.step(state, threads=threads)
        return state, Progress(info.stage, info.progress, info.log_evidence, info.std_error, info.message)

    def hurried(self, state: Any) -> Any:
        try:
            return self.refine.hurried(state)
        except ValueError as problem:
            raise NotYet(str(problem)) from None

    def is_done(self, state: Any) -> bool:
        return bool(state.done)

    def to_arrays(self, state: Any) -> dict[str, NDArray]:
        return state.to_arrays()

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> Any:
        return self.refine.from_arrays(arrays, patterns, self._settings(settings))

    def outcome(self, state: Any) -> Outcome:
        try:
            found = self.refine.result(state)
        except (RuntimeError, ValueError) as problem:
            raise NotYet(str(problem)) from None
        estimate = Estimate(
            found.log_evidence,
            found.std_error,
            UNROOTED,
            found.n_samples,
            found.ess,
            found.pareto_k,
            tuple(np.asarray(found.replicate_log_evidence, dtype=np.float64).tolist()),
        )
        trace = tuple(Trace(f"replicate {r + 1}", int(round_), float(value)) for r, round_, value, *_ in found.trace)
        return Outcome({"posterior": estimate}, found.trust_ok, tuple(found.reasons), found.sample, elbo=found.elbo, trace=trace)
