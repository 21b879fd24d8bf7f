"""`--method vbpi`: variational Bayesian phylogenetic inference (`vaiphy.vbpi`), with `--flow` normalising flows.

Bootstrap trees give the support of the tree distribution, training fits it together with the branch lengths, and fresh
samples give lower bounds and the evidence. One distribution is trained: how wrong it is shows in its weights.
"""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods.method import NotYet
from vaiphy.methods.outcome import UNROOTED, Estimate, Outcome, Progress, Trace, accuracy_reason, exceeding
from vaiphy.methods.settings import Settings
from vaiphy.summary.evidence import evidence_of
from vaiphy.trees.sample import TreeSample
from vaiphy.vbpi import require_torch
from vaiphy.vbpi.network import Network, network_of
from vaiphy.vbpi.settings import Settings as Options
from vaiphy.vbpi.support import Support, best_tree, bootstrap, fitted
from vaiphy.weights import log_normalised

#: Bootstrap trees and iterations in one step; samples in one estimate, estimates, and how many of them hand over their trees.
TREES_A_STEP, CHUNK, N_SAMPLES, REPEATS, KEPT = 5, 250, 1000, 100, 10
_TREES, _START, _TRAIN, _DRAW = range(4)  # what a random stream is for
_SUPPORT, _STATE, _DRAWN = ("trees", "shapes", "rates", "weights"), ("parameters", "first", "second"), ("children", "lengths")


@dataclass(frozen=True, eq=False)
class VbpiState:
    """Bootstrap trees so far; then the support, the training's state and its trace; then samples and their log-weights."""

    patterns: SitePatterns
    settings: Settings
    options: Options
    found: tuple[tuple[NDArray[np.int32], NDArray[np.float64]], ...] = ()
    support: Support | None = None
    iteration: int = 0
    parameters: NDArray[np.float32] | None = None
    first: NDArray[np.float32] | None = None
    second: NDArray[np.float32] | None = None
    trace: tuple[tuple[float, ...], ...] = ()
    log_weights: tuple[NDArray[np.float64], ...] = ()
    children: tuple[NDArray[np.int32], ...] = ()
    lengths: tuple[NDArray[np.float64], ...] = ()

    @property
    def folded(self) -> SitePatterns:
        return self.patterns.folded

    @cached_property
    def network(self) -> Network:
        assert self.support is not None
        return network_of(self.support.trees, self.support.weights)

    @property
    def trained(self) -> bool:
        return self.iteration >= self.options.iterations


class VbpiMethod:
    """Bootstrap trees a few at a time, iterations some hundred at a time, then one estimate after another."""

    def initialise(self, patterns: SitePatterns, settings: Settings) -> VbpiState:
        require_torch()
        asked: dict[str, Any] = {
            "flow": settings.flow,
            "base": settings.base,
            "iterations": settings.iterations,
            "particles": settings.particles,
        }
        given = {name: value for name, value in asked.items() if value is not None}
        return VbpiState(patterns, settings, Options(prior_rate=settings.prior_rate, **given))

    def step(self, state: VbpiState, threads: int) -> tuple[VbpiState, Progress]:
        if state.support is None:
            return _explore(state)
        if not state.trained:
            return _train(state)
        return _draw(state)

    def hurried(self, state: VbpiState) -> VbpiState:
        """Training ends where it is."""
        if state.parameters is None:
            raise NotYet("training has not begun")
        return replace(state, options=replace(state.options, iterations=state.iteration))

    def is_done(self, state: VbpiState) -> bool:
        return len(state.log_weights) >= REPEATS

    def to_arrays(self, state: VbpiState) -> dict[str, NDArray]:
        arrays: dict[str, NDArray] = {
            "iteration": np.array(state.iteration),
            "trace": np.array(state.trace).reshape(-1, 4),
            "log_weights": np.array(state.log_weights).reshape(-1, N_SAMPLES),
        }
        if state.found:
            trees = np.concatenate([trees for trees, _ in state.found])
            arrays |= {"found.trees": trees, "found.lengths": np.concatenate([lengths for _, lengths in state.found])}
            arrays["found.sizes"] = np.array([len(trees) for trees, _ in state.found])
        if state.support is not None:
            arrays |= {f"support.{name}": getattr(state.support, name) for name in _SUPPORT}
        arrays |= {name: getattr(state, name) for name in _STATE if getattr(state, name) is not None}
        return arrays | {f"{name}.{k}": array for name in _DRAWN for k, array in enumerate(getattr(state, name))}

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> VbpiState:
        found: tuple[Any, ...] = ()
        if "found.sizes" in arrays:
            ends = np.cumsum(arrays["found.sizes"])[:-1]
            found = tuple(zip(np.split(arrays["found.trees"], ends), np.split(arrays["found.lengths"], ends)))
        kept = range(min(KEPT, len(arrays["log_weights"])))
        more: dict[str, Any] = {name: arrays[name] for name in _STATE if name in arrays}
        more |= {name: tuple(arrays[f"{name}.{k}"] for k in kept) for name in _DRAWN}
        return replace(
            self.initialise(patterns, settings),
            found=found,
            support=Support(**{n: arrays[f"support.{n}"] for n in _SUPPORT}) if "support.trees" in arrays else None,
            iteration=int(arrays["iteration"]),
            trace=tuple(tuple(row) for row in arrays["trace"].tolist()),
            log_weights=tuple(arrays["log_weights"]),
            **more,
        )

    def outcome(self, state: VbpiState) -> Outcome:
        from vaiphy.vbpi.estimates import lower_bounds

        if not state.log_weights:
            raise NotYet("no samples of the trained distribution have been drawn yet")
        found = evidence_of(np.stack(state.log_weights))
        estimate = Estimate(
            found.mean,
            found.standard_error,
            UNROOTED,
            found.n_samples * len(found.log_estimates),
            found.effective_sample_size,
            found.pareto_k,
            tuple(found.log_estimates.tolist()),
        )
        bounds = lower_bounds(np.concatenate(state.log_weights))
        reasons = [*accuracy_reason(found.standard_error, state.settings.accuracy)]
        if not found.pareto_k <= 0.7:
            reasons.append(f"Pareto k of the weights is {exceeding(found.pareto_k, 0.7)}: more iterations are needed")
        trace = tuple(Trace(f"bound of {state.options.particles}", int(row[0]), row[3]) for row in state.trace if row[1] >= 1.0)
        return Outcome(
            {"vbpi": estimate}, not reasons, tuple(reasons), _sample(state), elbo=bounds["LB-1"], trace=trace, bounds=bounds,
            tuning={"samples": N_SAMPLES, "repeats": REPEATS, **asdict(state.options)},
        )  # fmt: skip


def _explore(state: VbpiState) -> tuple[VbpiState, Progress]:
    """Some bootstrap trees; after the last the data's own neighbourhood, and the support is complete."""
    options, done = state.options, sum(len(trees) for trees, _ in state.found)
    wanted = min(TREES_A_STEP, options.bootstraps - done)
    if wanted > 0:
        new = [bootstrap(state.folded, options, _stream(state, _TREES, done + k)) for k in range(wanted)]
        pair = np.array([children for children, _ in new]), np.array([lengths for _, lengths in new])
        share = 0.05 * (done + wanted) / options.bootstraps
        return replace(state, found=(*state.found, pair)), Progress("bootstrap", share, message=f"{done + wanted} trees")
    best = best_tree(state.folded, options)
    groups = [*state.found, (best[0][None], best[1][None])]
    trees, lengths = (np.concatenate(column) for column in zip(*groups))
    support = fitted(state.folded, trees.astype(np.int32), lengths, options)
    message = f"{len(support.trees)} distinct trees in the support"
    return replace(state, found=(), support=support), Progress("bootstrap", 0.05, message=message)


def _train(state: VbpiState) -> tuple[VbpiState, Progress]:
    """Some iterations."""
    from vaiphy.vbpi import training

    options, network = state.options, state.network
    if state.parameters is None or state.first is None or state.second is None:
        assert state.support is not None
        now = training.initialise(network, state.support, state.folded, options, _stream(state, _START))
    else:
        now = training.State(state.iteration, state.parameters, state.first, state.second)
    size = min(CHUNK, options.iterations - now.iteration)
    now, info = training.step(now, network, state.folded, options, size, _stream(state, _TRAIN, now.iteration))
    new = replace(
        state, iteration=now.iteration, parameters=now.parameters, first=now.first, second=now.second,
        trace=(*state.trace, (float(info.iteration), info.power, info.bound_1, info.bound_k)),
    )  # fmt: skip
    power = "" if info.power >= 1.0 else f", power of the likelihood {info.power:.2f}"
    message = f"iteration {info.iteration:,} of {options.iterations:,}, bound {info.bound_k:.2f}{power}"
    return new, Progress("training", 0.05 + 0.9 * info.iteration / options.iterations, message=message)


def _draw(state: VbpiState) -> tuple[VbpiState, Progress]:
    """One estimate of the evidence."""
    from vaiphy.vbpi import estimates

    assert state.parameters is not None
    k = len(state.log_weights)
    drawn = estimates.sample(state.network, state.folded, state.options, state.parameters, N_SAMPLES, _stream(state, _DRAW, k))
    new = replace(state, log_weights=(*state.log_weights, drawn.log_weights))
    if k < KEPT:
        new = replace(new, children=(*state.children, drawn.children), lengths=(*state.lengths, drawn.lengths))
    found = evidence_of(np.stack(new.log_weights))
    return new, Progress("samples", 0.95 + 0.05 * (k + 1) / REPEATS, found.mean, found.standard_error)


def _stream(state: VbpiState, *place: int) -> np.random.Generator:
    return np.random.default_rng([state.settings.seed, 30, *place])


def _sample(state: VbpiState) -> TreeSample:
    """The trees that were kept, weighted."""
    children = np.concatenate(state.children)
    distinct, topology = np.unique(children.reshape(len(children), -1), axis=0, return_inverse=True)
    kept = len(state.children)
    return TreeSample(
        state.patterns.taxa,
        distinct.reshape(-1, *children.shape[1:]).astype(np.int32),
        topology.ravel().astype(np.int32),
        np.concatenate(state.lengths),
        log_normalised(np.concatenate(state.log_weights[:kept])),
        np.zeros(len(children), dtype=np.int32),  # draws from one distribution are no replicates
    )
