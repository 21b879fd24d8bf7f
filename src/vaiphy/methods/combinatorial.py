"""`--method csmc` and `--method phi-csmc`: combinatorial sequential Monte Carlo over unrooted trees (`vaiphy.csmc`).

csmc is the plain sampler: uniform mergers, branch lengths from the prior. phi-csmc first fits VaiPhy's distribution and makes a
guide from its trees; the guide is then fixed, and a run with it is unbiased. Each replicate makes a guide of its own: runs with
one guide agree with each other on what the guide has missed. `--proposal` names other ways to propose: those of the paper, or
what its authors ran (`csmc.authors`), whose bias is reported apart.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy import csmc, vi
from vaiphy.alignment import SitePatterns
from vaiphy.csmc.proposals import AnyProposal
from vaiphy.csmc.runs import GUIDE_TREES
from vaiphy.methods.method import NotYet
from vaiphy.methods.outcome import UNROOTED, Estimate, Outcome, Progress, accuracy_reason, exceeding
from vaiphy.methods.settings import Settings
from vaiphy.summary.posterior import split_table
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.splits import from_sample
from vaiphy.weights import asdsf, effective_sample_size, log_mean_exp, log_sum_exp, pareto_k

PARTICLES = 2048
#: Replicates whose log-estimates scatter more than this are too few to be averaged.
SPREAD_LIMIT = 1.0
#: Average standard deviation of split frequencies between replicates, at most.
ASDSF_LIMIT = 0.02
_FIT, _TREES, _GUIDE, _RUN = range(4)  # what a random stream is for


@dataclass(frozen=True, eq=False)
class CombinatorialState:
    """The guide of the next run (None before it is made, and for csmc), and the particles of the runs so far."""

    patterns: SitePatterns
    settings: Settings
    reference: csmc.Reference | None = None
    log_evidences: tuple[float, ...] = ()
    children: tuple[NDArray[np.int32], ...] = ()
    lengths: tuple[NDArray[np.float64], ...] = ()
    log_weights: tuple[NDArray[np.float64], ...] = ()

    @property
    def guided(self) -> bool:
        return self.named == "guided"

    @property
    def named(self) -> csmc.Name:
        """The proposal by its name."""
        return "vanilla" if self.settings.method == "csmc" else self.settings.proposal or "guided"  # type: ignore[return-value]

    @property
    def target(self) -> csmc.Target:
        return csmc.Target("unrooted", self.settings.prior_rate)


class CombinatorialMethod:
    """For each replicate one step makes the guide and one runs."""

    def initialise(self, patterns: SitePatterns, settings: Settings) -> CombinatorialState:
        return CombinatorialState(patterns, settings)

    def step(self, state: CombinatorialState, threads: int) -> tuple[CombinatorialState, Progress]:
        if state.guided and state.reference is None:
            state = _prepare(state, threads)
            return state, _progress(state, "guide")
        found = csmc.run(
            state.patterns,
            rng=_stream(state, _RUN, len(state.log_evidences)),
            proposal=_proposal(state, threads),
            n_particles=state.settings.particles or PARTICLES,
            prior_rate=state.settings.prior_rate,
            threads=threads,
        )
        children, lengths = found.unrooted
        state = replace(
            state,
            reference=None,
            log_evidences=(*state.log_evidences, found.log_evidence),
            children=(*state.children, children),
            lengths=(*state.lengths, lengths),
            log_weights=(*state.log_weights, found.log_weights),
        )
        return state, _progress(state, "run")

    def hurried(self, state: CombinatorialState) -> CombinatorialState:
        return state

    def is_done(self, state: CombinatorialState) -> bool:
        return len(state.log_evidences) >= state.settings.replicates

    def to_arrays(self, state: CombinatorialState) -> dict[str, NDArray]:
        arrays: dict[str, NDArray] = {"log_evidences": np.array(state.log_evidences, dtype=np.float64)}
        if state.reference is not None:
            names = ("children", "lengths", "weights", "scores")
            arrays |= {f"reference.{name}": getattr(state.reference, name) for name in names}
        for name in ("children", "lengths", "log_weights"):
            arrays |= {f"{name}.{k}": array for k, array in enumerate(getattr(state, name))}
        return arrays

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> CombinatorialState:
        runs = range(len(arrays["log_evidences"]))
        reference = {name.removeprefix("reference."): array for name, array in arrays.items() if name.startswith("reference.")}
        return CombinatorialState(
            patterns,
            settings,
            csmc.Reference(**reference) if reference else None,
            tuple(arrays["log_evidences"].tolist()),
            *(tuple(arrays[f"{name}.{k}"] for k in runs) for name in ("children", "lengths", "log_weights")),
        )

    def outcome(self, state: CombinatorialState) -> Outcome:
        if not state.log_evidences:
            raise NotYet("no run is finished yet")
        sample = _sample(state)
        combined, error = _combined(state)
        k = pareto_k(sample.log_weights)
        ess = effective_sample_size(sample.log_weights)
        name = "csmc" if state.named == "vanilla" else "phi_csmc"
        estimate = Estimate(combined, error, UNROOTED, sample.n_samples, ess, k, state.log_evidences)
        reasons = _reasons(state, sample, error, k)
        return Outcome({name: estimate}, not reasons, reasons, sample, bounds=_printed(state, combined), tuning=_tuning(state))


def _printed(state: CombinatorialState, combined: float) -> dict[str, float]:
    """What the authors' program would print, and by how much that is too high; nothing for other proposals."""
    if state.named != "authors":
        return {}
    bias = csmc.authors_bias(state.settings.particles or PARTICLES, state.patterns.n_taxa)
    return {"as printed": combined + bias, "bias": bias}


def _tuning(state: CombinatorialState) -> dict[str, Any]:
    own = {"particles": state.settings.particles or PARTICLES, "proposal": state.named}
    return own | {"guide_trees": GUIDE_TREES, **asdict(csmc.Effort())} if state.guided else own


def _prepare(state: CombinatorialState, threads: int) -> CombinatorialState:
    """A guide from a fit of its own."""
    k = len(state.log_evidences)
    trees = _fit(state, threads).sample_binary(GUIDE_TREES, _stream(state, _TREES, k), threads).children
    reference = csmc.prepare(state.patterns, state.target, _stream(state, _GUIDE, k), trees, threads=threads)
    return replace(state, reference=reference)


def _progress(state: CombinatorialState, stage: str) -> Progress:
    done, all_ = len(state.log_evidences), state.settings.replicates
    if not done:
        return Progress(stage, 0.7 / all_, message="mergers and branch lengths of replicate 1 learned")
    extra = 0.7 if state.reference is not None else 0.0
    combined, error = _combined(state)
    shown = error if done > 2 else float("nan")  # two values say little about their scatter
    return Progress(stage, (done + extra) / all_, combined, shown, f"{done} of {all_} replicates")


def _proposal(state: CombinatorialState, threads: int) -> AnyProposal | csmc.JoinThree:
    """The proposal of the next run; all but the guided one are made here, from a fit of their own."""
    if state.reference is not None:
        return csmc.guided_proposal(state.patterns, state.reference, state.target, threads)
    fit = None if state.named == "vanilla" else _fit(state, threads)
    rng = _stream(state, _GUIDE, len(state.log_evidences)) if fit else _stream(state, _GUIDE)
    return csmc.make_proposal(state.named, state.patterns, state.target, rng, fit, threads=threads)


def _fit(state: CombinatorialState, threads: int) -> vi.Fit:
    """VaiPhy's distribution: the first replicate starts from BIONJ, the others from bootstrapped distances."""
    k = len(state.log_evidences)
    return vi.fit(
        state.patterns,
        initial="bootstrap" if k else "bionj",
        rng=_stream(state, _FIT, k),
        threads=threads,
        prior_rate=state.settings.prior_rate,
    )


def _stream(state: CombinatorialState, *place: int) -> np.random.Generator:
    return np.random.default_rng([state.settings.seed, 20, *place])


def _combined(state: CombinatorialState) -> tuple[float, float]:
    """Log of the mean of the unbiased estimates, and its standard error from their scatter (delta method)."""
    values = np.array(state.log_evidences)
    combined = log_mean_exp(values)
    if len(values) < 2:
        return combined, float("nan")
    return combined, float(np.exp(values - combined).std(ddof=1) / np.sqrt(len(values)))


def _sample(state: CombinatorialState) -> TreeSample:
    """All particles, each run with the weight of its estimate."""
    sizes = [len(weights) for weights in state.log_weights]
    own = np.concatenate(state.log_weights)
    pooled = own + np.repeat(state.log_evidences, sizes)
    children = np.concatenate(state.children)
    distinct, topology = np.unique(children.reshape(len(children), -1), axis=0, return_inverse=True)
    return TreeSample(
        state.patterns.taxa,
        distinct.reshape(-1, *children.shape[1:]).astype(np.int32),
        topology.ravel().astype(np.int32),
        np.concatenate(state.lengths),
        pooled - log_sum_exp(pooled),
        np.repeat(np.arange(len(sizes), dtype=np.int32), sizes),
        own,
    )


def _reasons(state: CombinatorialState, sample: TreeSample, error: float, k: float) -> tuple[str, ...]:
    reasons = []
    table = split_table(from_sample(sample))
    disagreement = asdsf(table.replicate_support[:, table.n_trivial :])
    spread = float(np.std(state.log_evidences, ddof=1)) if len(state.log_evidences) > 1 else float("nan")
    if not spread <= SPREAD_LIMIT:
        reasons.append(
            f"the log-estimates of the runs scatter by {spread:.2f} (standard deviation): most likely they are all too low; "
            "more particles are needed"
        )
    if not disagreement <= ASDSF_LIMIT:
        reasons.append(
            f"split frequencies differ between runs: average standard deviation {disagreement:.3f}, above {ASDSF_LIMIT}"
        )
    if not k <= 0.7:
        reasons.append(f"Pareto k of the particles' weights is {exceeding(k, 0.7)}: a few trees carry the posterior")
    return (*reasons, *accuracy_reason(error, state.settings.accuracy))
