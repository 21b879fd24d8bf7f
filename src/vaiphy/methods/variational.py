"""`--method vaiphy`: coordinate ascent in the augmented space (`vaiphy.vi`), then IWELBO and MISELBO from fresh samples.

Replicates start from BIONJ (the first) and from bootstrapped distances (the others). The one with the best bound gives the
IWELBO and the trees; all together give the MISELBO.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy import vi
from vaiphy.alignment import SitePatterns
from vaiphy.errors import InputError
from vaiphy.methods.method import NotYet
from vaiphy.methods.outcome import AUGMENTED, Estimate, Outcome, Progress, Trace, exceeding
from vaiphy.methods.settings import Settings
from vaiphy.models.jc69 import JC69
from vaiphy.summary.evidence import Evidence, evidence_of
from vaiphy.trees.augmented import LabelledSample

#: Iterations in one step; draws in one repeat of a bound, and repeats; trees handed over.
CHUNK, N_SAMPLES, REPEATS, N_TREES = 10, 1000, 10, 1000
_STATE = ("iteration", "ancestral", "log_weights", "edge_probability", "sensitivity", "elbo", "score")
_FIT, _BOUND, _MIXTURE, _TREES = range(4)  # what a random stream is for


@dataclass(frozen=True, eq=False)
class VariationalState:
    """Fits that are finished, the one being made (its present and best iteration and its trace), and bounds so far."""

    patterns: SitePatterns
    settings: Settings
    options: vi.Settings
    fits: tuple[vi.Fit, ...] = ()
    present: vi.State | None = None
    best: vi.State | None = None
    trace: tuple[vi.Info, ...] = ()
    bounds: tuple[NDArray[np.float64], ...] = ()
    mixtures: tuple[NDArray[np.float64], ...] = ()

    @property
    def winner(self) -> vi.Fit:
        """The fit with the best bound."""
        return max(self.fits, key=lambda fit: max(info.score for info in fit.trace))


class VariationalMethod:
    """Fits one replicate after another in chunks of iterations, then draws the repeats of the two bounds."""

    def initialise(self, patterns: SitePatterns, settings: Settings) -> VariationalState:
        options: dict[str, Any] = {"tree_law": settings.tree_law} if settings.tree_law else {}
        if settings.iterations is not None:
            options["iterations"] = settings.iterations
        try:
            return VariationalState(patterns, settings, vi.Settings(prior_rate=settings.prior_rate, **options))
        except ValueError as problem:
            raise InputError(str(problem)) from None

    def step(self, state: VariationalState, threads: int) -> tuple[VariationalState, Progress]:
        if len(state.fits) < state.settings.replicates:
            state = _advance(state, threads)
        elif len(state.bounds) < REPEATS:
            log_weights = state.winner.sample_log_weights(N_SAMPLES, _stream(state, _BOUND, len(state.bounds)), threads)
            state = replace(state, bounds=(*state.bounds, log_weights))
        else:
            share = N_SAMPLES // len(state.fits)
            streams = _stream(state, _MIXTURE, len(state.mixtures)).spawn(len(state.fits))
            parts = [fit.sample_mixture_log_weights(state.fits, share, rng, threads) for fit, rng in zip(state.fits, streams)]
            state = replace(state, mixtures=(*state.mixtures, np.concatenate(parts)))
        return state, _progress(state)

    def hurried(self, state: VariationalState) -> VariationalState:
        return state

    def is_done(self, state: VariationalState) -> bool:
        return len(state.mixtures) == REPEATS

    def to_arrays(self, state: VariationalState) -> dict[str, NDArray]:
        arrays: dict[str, NDArray] = {}
        for k, fit in enumerate(state.fits):
            arrays |= {f"fit{k}.{name}": array for name, array in fit.to_arrays().items()}
        for label, value in (("present", state.present), ("best", state.best)):
            if value is not None:
                arrays |= {f"{label}.{name}": np.asarray(getattr(value, name)) for name in _STATE}
        arrays["trace"] = np.array([[i.iteration, i.elbo, i.score, i.change, i.effective_trees] for i in state.trace]).reshape(
            -1, 5
        )
        arrays["bounds"] = np.array(state.bounds)
        arrays["mixtures"] = np.array(state.mixtures)
        return arrays

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> VariationalState:
        def group(label: str) -> dict[str, NDArray]:
            return {name.removeprefix(label): array for name, array in arrays.items() if name.startswith(label)}

        def inner(label: str) -> vi.State | None:
            found: dict[str, Any] = group(label)
            if not found:
                return None
            return vi.State(
                **found | {"iteration": int(found["iteration"]), "elbo": float(found["elbo"]), "score": float(found["score"])}
            )

        fits: list[vi.Fit] = []
        while found := group(f"fit{len(fits)}."):
            fits.append(vi.Fit.from_arrays(patterns, found))
        return replace(
            self.initialise(patterns, settings),
            fits=tuple(fits),
            present=inner("present."),
            best=inner("best."),
            trace=tuple(vi.Info(int(row[0]), *map(float, row[1:])) for row in arrays["trace"]),
            bounds=tuple(arrays["bounds"]),
            mixtures=tuple(arrays["mixtures"]),
        )

    def outcome(self, state: VariationalState) -> Outcome:
        if not state.bounds:
            raise NotYet("the bound has not been computed yet")
        single = evidence_of(np.stack(state.bounds))
        estimates = {"vaiphy_iwelbo": _estimate(single)}
        if state.mixtures:
            estimates["vaiphy_miselbo"] = _estimate(evidence_of(np.stack(state.mixtures)))
        fit = state.winner
        trace = [
            Trace(f"replicate {k + 1}", info.iteration, info.elbo) for k, other in enumerate(state.fits) for info in other.trace
        ]
        return Outcome(
            estimates,
            single.trustworthy,
            _reasons(single),
            labelled=_trees(state, fit),
            elbo=fit.elbo,
            trace=tuple(trace),
            tuning={"samples": N_SAMPLES, "repeats": REPEATS, "trees": N_TREES, **asdict(state.options)},
        )


def _advance(state: VariationalState, threads: int) -> VariationalState:
    """Some iterations of the replicate being fitted; when it is finished it joins the fits."""
    k, options = len(state.fits), state.options
    now, best, trace = state.present, state.best, list(state.trace)
    if now is None:
        start = "bionj" if k == 0 else "bootstrap"
        now = vi.initialise(state.patterns, options, initial=start, rng=_stream(state, _FIT, k, 0), threads=threads)
        best, trace = now, [vi.Info(now.iteration, now.elbo, now.score, np.inf, np.nan)]
    data = vi.columns(state.patterns)
    finished = now.iteration >= options.iterations
    for _ in range(CHUNK):
        if finished:
            break
        now, info = vi.step(now, data, options, rng=_stream(state, _FIT, k, now.iteration + 1), threads=threads)
        trace.append(info)
        assert best is not None
        if now.score >= best.score or not np.isfinite(best.score):
            best = now
        settled = not options.sampled_score and abs(info.change) < options.tolerance * options.step_size
        finished = settled or now.iteration >= options.iterations
    if not finished:
        return replace(state, present=now, best=best, trace=tuple(trace))
    assert best is not None
    fit = vi.Fit(state.patterns, options, best.ancestral, best.iteration, tuple(trace))
    return replace(state, fits=(*state.fits, fit), present=None, best=None, trace=())


def _stream(state: VariationalState, *place: int) -> np.random.Generator:
    return np.random.default_rng([state.settings.seed, 10, *place])


def _progress(state: VariationalState) -> Progress:
    replicates = state.settings.replicates
    if len(state.fits) < replicates:
        present = state.present
        inside = 0.0 if present is None else present.iteration / (present.iteration + 20.0)
        bound = state.trace[-1].elbo if state.trace else state.fits[-1].elbo
        message = f"replicate {min(len(state.fits) + 1, replicates)} of {replicates}, ELBO {bound:.2f}"
        return Progress("fit", 0.7 * (len(state.fits) + inside) / replicates, message=message)
    done = len(state.bounds) + len(state.mixtures)
    name, rows = ("IWELBO", state.bounds) if not state.mixtures else ("MISELBO", state.mixtures)
    if not rows:
        return Progress("bound", 0.7)
    found = evidence_of(np.stack(rows))
    return Progress("bound", 0.7 + 0.3 * done / (2 * REPEATS), found.mean, found.standard_error, name)


def _estimate(found: Evidence) -> Estimate:
    return Estimate(
        found.mean,
        found.standard_error,
        AUGMENTED,
        found.n_samples * len(found.log_estimates),
        found.effective_sample_size,
        found.pareto_k,
        tuple(found.log_estimates.tolist()),
    )


def _reasons(found: Evidence) -> tuple[str, ...]:
    if found.trustworthy:
        return ()
    return (
        f"Pareto k is {exceeding(found.pareto_k, 0.7)}: the figure is, in expectation, a lower bound of the log marginal "
        "likelihood, not an estimate of it",
    )


def _trees(state: VariationalState, fit: vi.Fit) -> LabelledSample:
    """Draws from the fitted distribution with equal weights, and the mean-field states.

    Columns that it does not use keep the frequencies of the model.
    """
    drawn = fit.sample_trees(N_TREES, _stream(state, _TREES))
    states = np.tile(JC69.pi[:, None], (state.patterns.n_taxa - 2, 1, state.patterns.n_patterns))
    states[:, :, fit.columns.kept] = fit.ancestral
    return LabelledSample(drawn, np.full(N_TREES, -np.log(N_TREES)), states)
