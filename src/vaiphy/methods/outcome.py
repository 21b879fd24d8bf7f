"""What a method hands over: estimates, weighted trees, and whether the computation converged; as values and as plain arrays."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

from vaiphy.trees.augmented import LabelledSample
from vaiphy.trees.sample import TreeSample

#: What a method's marginal likelihood (evidence) is that of.
UNROOTED = "unrooted binary trees, uniform topology prior"
AUGMENTED = "labelled trees of the augmented space, uniform prior; a lower bound in expectation"


@dataclass(frozen=True)
class Progress:
    """How far a run is: stage, share of the whole (0 to 1; NaN: as before), the estimate so far (NaN if none), a few words."""

    stage: str
    progress: float
    log_evidence: float = float("nan")
    std_error: float = float("nan")
    message: str = ""


@dataclass(frozen=True)
class Estimate:
    """A log-evidence with its standard error (NaN if there is none), its target, and the diagnostics of its weights.

    `runs` are the estimates of the independent runs that it is made of, and `run_errors` their standard errors, where known.
    """

    log_evidence: float
    std_error: float
    target: str
    n_samples: int
    ess: float
    pareto_k: float
    runs: tuple[float, ...] = ()
    run_errors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Trace:
    """One point of a curve to plot: an estimate or bound after a round of a stage."""

    stage: str
    round: int
    value: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a method. `sample` holds binary trees or `labelled` trees of the augmented space, or there are none.

    `tuning` are the numbers by which the method is tuned, beyond what the user has set, as they were in this run.
    """

    estimates: Mapping[str, Estimate]
    trust_ok: bool
    reasons: tuple[str, ...]
    sample: TreeSample | None = None
    labelled: LabelledSample | None = None
    elbo: float = float("nan")
    trace: tuple[Trace, ...] = ()
    bounds: Mapping[str, float] = field(default_factory=dict)
    diagnostics: Mapping[str, list[float]] = field(default_factory=dict)
    tuning: Mapping[str, Any] = field(default_factory=dict)

    @property
    def main(self) -> str:
        """Name of the estimate that the run was for."""
        return next(iter(self.estimates))


def accuracy_reason(std_error: float, accuracy: float) -> tuple[str, ...]:
    """The reason that the standard error, the one that is reported, is too large; nothing if it is not."""
    if std_error <= accuracy:
        return ()
    return (f"the standard error of the log marginal likelihood is {std_error:.3f}, above the {accuracy:g} asked for",)


def exceeding(value: float, limit: float) -> str:
    """A value that is above its limit, with as many digits as it takes to see that.

    >>> exceeding(0.83, 0.7), exceeding(0.7004, 0.7)
    ('0.83, above 0.7', '0.7004, above 0.7')
    """
    digits = next((d for d in range(2, 9) if not round(value, d) <= limit), 9)
    return f"{value:.{digits}f}, above {limit:g}"


def to_arrays(outcome: Outcome) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """An outcome as a JSON-able header and arrays."""
    header = {
        "estimates": {name: asdict(value) for name, value in outcome.estimates.items()},
        "order": list(outcome.estimates),
        "trust_ok": outcome.trust_ok,
        "reasons": list(outcome.reasons),
        "elbo": outcome.elbo,
        "bounds": dict(outcome.bounds),
        "diagnostics": dict(outcome.diagnostics),
        "trace": [[point.stage, point.round, point.value] for point in outcome.trace],
        "tuning": dict(outcome.tuning),
    }
    arrays: dict[str, NDArray] = {}
    if outcome.sample is not None:
        arrays |= {f"sample/{name}": array for name, array in outcome.sample.to_arrays().items()}
    if outcome.labelled is not None:
        arrays |= {f"labelled/{name}": array for name, array in outcome.labelled.to_arrays().items()}
    return header, arrays


def _estimate(values: Mapping[str, Any]) -> Estimate:
    plain: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    return Estimate(**plain)


def from_arrays(taxa: tuple[str, ...], header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Outcome:
    """The inverse of `to_arrays`."""

    def group(prefix: str) -> dict[str, NDArray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    sample, labelled = group("sample/"), group("labelled/")
    estimates = {name: _estimate(header["estimates"][name]) for name in header["order"]}
    return Outcome(
        estimates,
        header["trust_ok"],
        tuple(header["reasons"]),
        TreeSample.from_arrays(taxa, sample) if sample else None,
        LabelledSample.from_arrays(taxa, labelled) if labelled else None,
        header["elbo"],
        tuple(Trace(*point) for point in header["trace"]),
        header["bounds"],
        header["diagnostics"],
        header["tuning"],
    )
