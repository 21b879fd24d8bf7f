"""What a method hands over: estimates, weighted trees, and whether they can be trusted; as values and as plain arrays."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.tree import Tree
from vaiphy.treesample import TreeSample

#: What the evidence of a method is the evidence of.
UNROOTED = "unrooted binary trees, uniform topology prior"
ROOTED = "rooted binary trees, uniform topology prior"
AUGMENTED = "labelled trees of the augmented space, uniform prior; a lower bound in expectation"


@dataclass(frozen=True)
class Progress:
    """How far a run is: stage, share of the whole (0 to 1), the estimate so far (NaN if none) and a few words."""

    stage: str
    progress: float
    log_evidence: float = float("nan")
    std_error: float = float("nan")
    message: str = ""


@dataclass(frozen=True)
class Estimate:
    """A log-evidence with its standard error (NaN if there is none), its target, and the diagnostics of its weights."""

    log_evidence: float
    std_error: float
    target: str
    n_samples: int
    ess: float
    pareto_k: float
    replicates: tuple[float, ...] = ()


@dataclass(frozen=True)
class Trace:
    """One point of a curve to plot: an estimate or bound after a round of a stage."""

    stage: str
    round: int
    value: float


@dataclass(frozen=True, eq=False)
class LabelledSample:
    """Weighted trees whose internal vertices are the same in all trees, with the states at those vertices.

    `parents` and `lengths` are (n_samples, n_vertices), taxa first; `states` is (n_internal, 4, n_patterns).
    """

    taxa: tuple[str, ...]
    parents: NDArray[np.int32]
    lengths: NDArray[np.float64]
    log_weights: NDArray[np.float64]
    states: NDArray[np.float64]

    @property
    def n_samples(self) -> int:
        return len(self.parents)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the vertices: none for taxa, which carry their own, then V1, V2, ..."""
        n = len(self.taxa)
        return ("",) * n + tuple(f"V{k + 1}" for k in range(self.parents.shape[1] - n))

    @property
    def weights(self) -> NDArray[np.float64]:
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    def tree(self, sample: int) -> Tree:
        """One tree, all its vertices named; dangling vertices and those of degree two are still there."""
        return Tree(self.taxa, self.parents[sample], self.lengths[sample], self.labels)


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a method. `sample` holds binary trees or `labelled` trees of the augmented space, or there are none."""

    estimates: Mapping[str, Estimate]
    trust_ok: bool
    reasons: tuple[str, ...]
    sample: TreeSample | None = None
    labelled: LabelledSample | None = None
    elbo: float = float("nan")
    trace: tuple[Trace, ...] = ()

    @property
    def main(self) -> str:
        """Name of the estimate that the run was for."""
        return next(iter(self.estimates))


def to_arrays(outcome: Outcome) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """An outcome as a JSON-able header and arrays."""
    header = {
        "estimates": {name: asdict(value) for name, value in outcome.estimates.items()},
        "order": list(outcome.estimates),
        "trust_ok": outcome.trust_ok,
        "reasons": list(outcome.reasons),
        "elbo": outcome.elbo,
        "trace": [[point.stage, point.round, point.value] for point in outcome.trace],
    }
    arrays: dict[str, NDArray] = {}
    if outcome.sample is not None:
        arrays |= {f"sample/{name}": array for name, array in outcome.sample.to_arrays().items()}
    if outcome.labelled is not None:
        names = ("parents", "lengths", "log_weights", "states")
        arrays |= {f"labelled/{name}": getattr(outcome.labelled, name) for name in names}
    return header, arrays


def from_arrays(taxa: tuple[str, ...], header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> Outcome:
    """The inverse of `to_arrays`."""

    def group(prefix: str) -> dict[str, NDArray]:
        return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}

    sample, labelled = group("sample/"), group("labelled/")
    estimates = {
        name: Estimate(**{**header["estimates"][name], "replicates": tuple(header["estimates"][name]["replicates"])})
        for name in header["order"]
    }
    return Outcome(
        estimates,
        header["trust_ok"],
        tuple(header["reasons"]),
        TreeSample.from_arrays(taxa, sample) if sample else None,
        LabelledSample(taxa, **labelled) if labelled else None,
        header["elbo"],
        tuple(Trace(*point) for point in header["trace"]),
    )
