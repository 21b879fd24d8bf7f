"""What a finished (or interrupted) sampler hands over: evidence, weighted trees, parameters, and whether it converged."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import rooted
from vaiphy.posterior import drawing as drawings
from vaiphy.posterior.agreement import split_deviation, split_error
from vaiphy.posterior.drawing import Drawing
from vaiphy.posterior.proposal import clade_keys
from vaiphy.posterior.states import State
from vaiphy.trees.sample import TreeSample
from vaiphy.weights import log_mean_exp

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Result:
    """The posterior: evidence with its error, weighted trees, parameters by name, and the verdict with its reasons."""

    log_evidence: float
    std_error: float
    bridges: Floats
    sample: TreeSample
    effective: float
    converged: bool
    reasons: tuple[str, ...]
    bounds: dict[str, float]
    split_deviation: float
    diagnostics: dict[str, list[float]]


def result(state: State) -> Result:
    """The best honest answer so far. Raises ValueError before the first bridge is finished."""
    drawing = state.drawing
    if drawing is None or not drawing.drawn:
        raise ValueError("no bridge to the posterior is finished yet")
    log_evidence, error = drawings.evidence(drawing)
    sample = tree_sample(state, drawing)
    effective = drawings.effective_trees(drawing)
    reasons = objections(state, drawing)
    first = np.concatenate([one.plain for one in drawing.drawn])
    # Draws of forbidden trees have no weight: a bound from the others, times their share, is one too.
    allowed = np.isfinite(first)
    first = np.maximum(first[allowed] + np.log(allowed.mean()), log_evidence - 1e4)
    groups = first[: len(first) // 10 * 10].reshape(-1, 10)
    bounds = {
        "LB-1": float(first.mean()),
        "LB-10": float(np.mean([log_mean_exp(row) for row in groups])) if len(groups) else float("nan"),
        "bridged": drawings.mean_bridged(drawing),
    }
    diagnostics = {
        "betas": list(drawing.ladder.betas) if drawing.ladder else [],
        "effective": np.mean([one.effective for one in drawing.drawn], axis=0).tolist(),
        "ancestors": [float(one.n_ancestors) for one in drawing.drawn],
        "particles": [float(len(one.log_weights)) for one in drawing.drawn],
        "accepted": np.mean([one.accepted for one in drawing.drawn], axis=0).tolist(),
        "learning": [r.bridge.estimate for r in state.replicates if r.bridge is not None and r.arrived],
    }
    return Result(
        log_evidence,
        error,
        drawing.log_estimates,
        sample,
        effective,
        not reasons and state.done,
        tuple(reasons),
        bounds,
        split_deviation(drawings.agreement(drawing)),
        diagnostics,
    )


def tree_sample(state: State, drawing: Drawing) -> TreeSample:
    """All particles of all bridges after each sweep, weighted; the bridge they come from is their replicate."""
    n = state.target.n_taxa
    base = drawings.log_weights(drawing)
    children, lengths, z, likelihood, weights, bridge = [], [], [], [], [], []
    at = 0
    for b, one in enumerate(drawing.drawn):
        size = len(one.log_weights)
        for particles in one.particles:
            renumbered, own = np.empty((size, n - 2, 2), dtype=np.int32), np.empty((size, 2 * n - 2))
            rooted.renumber(particles.children, particles.lengths, particles.tops, renumbered, own)
            children.append(renumbered)
            lengths.append(own)
            z.append(particles.z)
            likelihood.append(particles.log_likelihood)
            weights.append(base[at : at + size] - np.log(len(one.particles)))
            bridge.append(np.full(size, b, dtype=np.int32))
        at += size
    stacked = np.concatenate(children)
    hashes = np.empty(len(stacked), dtype=np.uint64)
    rooted.topology_identities(stacked.astype(np.int64), clade_keys(n), hashes)
    _, where, topology = np.unique(hashes, return_index=True, return_inverse=True)
    # Branch v belongs to vertex v of the topology that is kept: trees of one topology are numbered alike.
    every, lengths_of_all = np.concatenate(z), np.concatenate(lengths)
    top = np.full(len(every), 2 * n - 3)
    target = state.target
    log_prior = target.log_length_prior(lengths_of_all, top) + target.log_topology_prior + target.log_natural_prior(every)
    parameters = {"LnL": np.concatenate(likelihood), "LnPr": log_prior, "TL": lengths_of_all[:, 1:].sum(axis=1)}
    parameters |= target.columns(every)
    return TreeSample(
        state.target.taxa, stacked[where], topology.ravel().astype(np.int32), lengths_of_all, np.concatenate(weights),
        np.concatenate(bridge), parameters=parameters, z=every,
    )  # fmt: skip


def objections(state: State, drawing: Drawing) -> list[str]:
    """What speaks against the result, each with what to do about it; none if the computation converged."""
    log_evidence, error = drawings.evidence(drawing)
    settings = state.settings
    found = []
    if not state.done:
        found.append("the run was ended before splits and log marginal likelihood were as accurate as asked for")
    elif error > settings.accuracy:
        found.append(
            f"the standard error is {error:.3f}, above the {settings.accuracy:g} asked for, after {len(drawing.drawn)} runs: "
            "more particles (--particles) or a lower accuracy (--accuracy) are needed"
        )
    within = float(np.mean([one.variance for one in drawing.drawn]))
    between = float(np.var(np.exp(drawing.log_estimates - log_evidence), ddof=1)) if len(drawing.drawn) > 1 else 0.0
    if len(drawing.drawn) >= 4 and between > 8.0 * within and np.sqrt(between) > 2.0 * settings.accuracy:
        found.append(
            f"the estimates of the runs scatter by {np.sqrt(between):.2f}, where {np.sqrt(within):.2f} was expected: "
            "more particles (--particles) are needed"
        )
    fewest = min(one.n_ancestors for one in drawing.drawn)
    if fewest < settings.few_ancestors:
        found.append(f"all particles of one run descend from {fewest} draws: more particles (--particles) are needed")
    for replicate in state.replicates:
        own = replicate.bridge
        if own is None or not own.done:
            continue
        excess = own.estimate - log_evidence
        if excess > settings.most_errors * np.hypot(own.std_error, error) and excess > 0.5:
            found.append(
                f"replicate {replicate.index + 1} (from {_start_words(replicate.kind)}) found a log marginal likelihood of "
                f"{own.estimate:.2f}, which the final sample misses: more replicates or particles are needed"
            )
    seen = drawings.agreement(drawing)
    deviation, split = split_deviation(seen), split_error(seen, settings.reach.known)
    if np.isfinite(split) and split > settings.max_split_error:
        found.append(
            f"frequencies of splits have a standard error of {split:.3f}, above {settings.max_split_error:g}: more particles "
            "(--particles) are needed"
        )
    if np.isfinite(deviation) and deviation > settings.max_deviation:
        found.append(
            f"the average standard deviation of split frequencies between runs is {deviation:.4f}, above "
            f"{settings.max_deviation:g}: more particles (--particles) are needed"
        )
    return found


def _start_words(kind: str) -> str:
    return {"prior": "the prior", "bootstrap": "bootstrapped distance trees", "given": "the trees of another model"}[kind]
