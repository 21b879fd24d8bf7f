"""Our methods, each as one cell: the posterior, VaiPhy and its ensemble, CSMC, BIONJ.

A cell's times begin when the process does (imports and the loading of compiled code included) unless they are named otherwise;
compilation itself is done beforehand.
"""

import time
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.cells import Cell
from vaiphy.parallel import available_threads
from vaiphy.trees.sample import TreeSample

#: Splits below this frequency are not kept in the raw results.
RARE = 0.005


def threads_of(cell: Cell) -> int:
    return cell.settings.get("threads") or available_threads()


def split_frequencies(sample: TreeSample) -> dict[str, float]:
    """Frequency of each non-trivial split, keyed by the side without the first taxon as a hexadecimal bit set."""
    from vaiphy.trees.splits import from_sample

    found = from_sample(sample)
    return {
        format(split, "x"): round(float(value), 5)
        for split, value, trivial in zip(found.splits, found.support(), found.trivial)
        if not trivial and value >= RARE
    }


def posterior(cell: Cell) -> dict[str, Any]:
    """The default method, step by step, with what was known after each step and at what cost.

    Settings: `model` (JC if none is named); fields of `posterior.settings.Settings`; `threads`; `seconds`, a limit of wall time
    after which learning is ended and a first answer drawn, as with `vaiphy run --time-limit`; `trace`, to keep the split
    frequencies after each bridge.
    """
    from vaiphy.posterior import progress, results, states
    from vaiphy.posterior.settings import Settings
    from vaiphy.summary import posterior as posteriors
    from vaiphy.target import target_of

    asked = {k: v for k, v in cell.settings.items() if k in Settings.__dataclass_fields__}
    if cell.settings.get("tiny"):
        asked |= {"max_bridges": 2, "replicates": 2, "min_particles": 64, "max_particles": 64}
    threads, limit = threads_of(cell), cell.settings.get("seconds", float("inf"))
    patterns = data.patterns(cell.data)
    target = target_of(patterns, cell.settings.get("model", "JC"))
    ready = time.process_time()
    begin = time.perf_counter()
    state = states.initialise(target, Settings(**asked), cell.seed)
    trace: list[dict[str, Any]] = []
    ends: dict[str, dict[str, float]] = {}
    to_tenth = None
    aside = 0.0  # CPU seconds spent on nothing but this trace
    hurried, bridges = False, 0
    while not state.done:
        if time.perf_counter() - begin > limit:
            if state.drawing is not None and state.drawing.drawn:
                break
            if not hurried and any(replicate.arrived for replicate in state.replicates):
                state, hurried = states.hurried(state), True
        state = states.step(state, threads)
        info = progress.describe(state)
        cpu, wall = time.process_time() - aside, time.perf_counter() - begin - aside
        ends[info.stage] = {"cpu": cpu, "wall": wall}
        drawn = 0 if state.drawing is None else len(state.drawing.drawn)
        if drawn == bridges or not np.isfinite(info.std_error):
            continue
        bridges = drawn
        if to_tenth is None and bridges > 1 and info.std_error <= 0.1:
            to_tenth = cpu
        row: dict[str, Any] = {"cpu": cpu, "wall": wall, "log_evidence": info.log_evidence, "std_error": info.std_error}
        if cell.settings.get("trace"):
            spent = time.process_time()
            row["splits"] = split_frequencies(results.result(state).sample)
            aside += time.process_time() - spent
        trace.append(row)
    cpu, wall = time.process_time() - aside, time.perf_counter() - begin - aside
    found = results.result(state)
    summary = posteriors.summarise(found.sample)
    assert state.drawing is not None
    return {
        "finished": state.done and not hurried,
        "log_evidence": found.log_evidence,
        "std_error": found.std_error,
        "replicate_log_evidence": found.bridges.tolist(),
        "ess": found.effective,
        "pareto_k": float("nan"),
        "asdsf": found.split_deviation,
        "elbo": found.bounds["LB-1"],
        "bounds": found.bounds,
        "diagnostics": found.diagnostics,
        "trust_ok": found.converged,
        "reasons": list(found.reasons),
        "n_samples": found.sample.n_samples,
        "n_topologies": found.sample.n_topologies,
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "cpu_seconds_of_start": ready,
        "cpu_seconds_to_tenth": to_tenth,
        "stages": ends,
        "rooted_shift": rooted_shift(found.sample, 10.0),
        "splits": split_frequencies(found.sample),
        "trace": trace,
        **distance_to_truth(cell.data, summary.majority),
    }


def rooted_shift(sample: TreeSample, rate: float) -> float:
    """log Z of rooted trees minus log Z of unrooted ones: log E[rate * tree length / (2n - 3)]."""
    total = sample.lengths[:, 1:].sum(axis=1)
    return float(np.log((sample.weights * total).sum() * rate / (2 * sample.n_taxa - 3)))


def distance_to_truth(name: str, tree: Any) -> dict[str, Any]:
    """Robinson-Foulds distance to the true tree, false and missing splits apart; nothing for real data."""
    if not name.startswith("simulated"):
        return {}
    truth, _ = data.simulated(name)
    wrong, missing = len(tree.topology - truth.topology), len(truth.topology - tree.topology)
    return {"rf": wrong + missing, "false_splits": wrong, "missing_splits": missing, "n_splits": len(truth.topology)}


def nearest_joining(cell: Cell) -> dict[str, Any]:
    """The BIONJ tree."""
    from vaiphy.search.starts import bionj, distances

    patterns = data.patterns(cell.data)
    begin = time.perf_counter()
    tree = bionj(distances(patterns), patterns.taxa)
    return {"wall_seconds": time.perf_counter() - begin, **distance_to_truth(cell.data, tree)}


def fitted(cell: Cell, threads: int) -> Any:
    """VaiPhy's fit of a cell; `law`, `stop` (end early when converged) and `fit` (further arguments of `vi.fit`) are settings."""
    from vaiphy import vi

    options = {"tree_law": cell.settings.get("law", "spanning"), "iterations": 200, "n_trees": 128}
    options |= cell.settings.get("fit", {})
    if not cell.settings.get("stop", True):
        options["tolerance"] = 0.0
    if cell.settings.get("tiny"):
        options["iterations"] = 2
    return vi.fit(data.patterns(cell.data), rng=np.random.default_rng([cell.seed, 1]), threads=threads, **options)


def vaiphy(cell: Cell) -> dict[str, Any]:
    """VaiPhy's IWELBO as the paper reports it: one fit, L trees, so many repeats."""
    from vaiphy.summary.evidence import iwelbo

    threads, repeats = threads_of(cell), cell.settings.get("repeats", 10)
    n_samples = 10 if cell.settings.get("tiny") else cell.settings.get("samples", 3000)
    begin = time.perf_counter()
    fit = fitted(cell, threads)
    middle = time.perf_counter()
    found = iwelbo(fit, n_samples, repeats, rng=np.random.default_rng([cell.seed, 2]), threads=threads)
    end = time.perf_counter()
    counts = fit.counts
    sizes = [fit.ancestral.size, *(value.size for value in vars(counts).values() if isinstance(value, np.ndarray))]
    return {
        "values": found.log_estimates.tolist(),
        "elbo": fit.elbo,
        "pareto_k": found.pareto_k,
        "ess": found.effective_sample_size,
        "iterations": len(fit.trace) - 1,
        "fit_seconds": middle - begin,
        "weigh_seconds": end - middle,
        "wall_seconds": end - begin,
        "parameters": {"q(Z)": fit.ancestral.size, "phi": fit.edge_log_weights.size, "arrays": int(sum(sizes))},
    }


def ensemble(cell: Cell) -> dict[str, Any]:
    """MISELBO of independent fits: one from BIONJ, the others from bootstrapped trees, their vertices matched."""
    from vaiphy import vi
    from vaiphy.summary.evidence import miselbo

    threads, patterns = threads_of(cell), data.patterns(cell.data)
    tiny = cell.settings.get("tiny")
    n_fits = 2 if tiny else cell.settings.get("components", 5)
    iterations = 2 if tiny else 200
    begin = time.perf_counter()
    fits = [
        vi.fit(
            patterns,
            initial="bionj" if k == 0 else "bootstrap",
            rng=np.random.default_rng([cell.seed, 1, k]),
            threads=threads,
            iterations=iterations,
        )
        for k in range(n_fits)
    ]
    n_samples = 10 if tiny else cell.settings.get("samples", 3000) // n_fits
    found = miselbo(
        vi.align(fits), n_samples, cell.settings.get("repeats", 10), rng=np.random.default_rng([cell.seed, 2]), threads=threads
    )
    return {
        "values": found.log_estimates.tolist(),
        "elbos": [fit.elbo for fit in fits],
        "pareto_k": found.pareto_k,
        "wall_seconds": time.perf_counter() - begin,
    }


def prepared(cell: Cell, threads: int, rng: np.random.Generator) -> Any:
    """CSMC's proposal of a cell, with the VaiPhy fit that it may need; `proposal`, `target` and `look_ahead` are settings."""
    from dataclasses import replace

    from vaiphy import csmc

    settings, patterns = cell.settings, data.patterns(cell.data)
    fit = fitted(cell, threads) if settings["proposal"] in ("paper", "guided") else None
    small = csmc.Effort(climbs=1, expansions=1, pilots=1, pilot_particles=16) if settings.get("tiny") else None
    target = csmc.Target(settings["target"])
    proposal: Any = csmc.make_proposal(settings["proposal"], patterns, target, rng, fit, small, threads)
    return proposal if settings.get("look_ahead", True) else replace(proposal, look_ahead=False)


def independent_runs(cell: Cell, proposal: Any, rng: np.random.Generator, threads: int, **options: Any) -> Any:
    """Independent runs of CSMC with one proposal; `particles` and `repeats` are settings."""
    from vaiphy import csmc

    tiny = cell.settings.get("tiny")
    return csmc.estimate(
        data.patterns(cell.data),
        rng=rng,
        repeats=2 if tiny else cell.settings.get("repeats", 10),
        target=cell.settings["target"],
        proposal=proposal,
        n_particles=16 if tiny else cell.settings.get("particles", 2048),
        threads=threads,
        **options,
    )


def combinatorial(cell: Cell) -> dict[str, Any]:
    """CSMC: one proposal, prepared once, and independent runs with it."""
    threads = threads_of(cell)
    rng = np.random.default_rng([cell.seed, 3])
    begin = time.perf_counter()
    proposal = prepared(cell, threads, rng.spawn(1)[0])
    middle, cpu = time.perf_counter(), time.process_time()
    found = independent_runs(cell, proposal, rng.spawn(1)[0], threads)
    end, n = time.perf_counter(), len(found.log_evidences)
    return {
        "values": found.log_evidences.tolist(),
        "combined": found.combined,
        "statement": found.statement,
        "prepare_seconds": middle - begin,
        "prepare_cpu_seconds": cpu,
        "run_seconds": (end - middle) / n,
        "run_cpu_seconds": (time.process_time() - cpu) / n,
        "wall_seconds": end - begin,
    }


def resampling(cell: Cell) -> dict[str, Any]:
    """CSMC with one proposal and several thresholds of resampling (0: never, 1: at every rank)."""
    threads = threads_of(cell)
    rng = np.random.default_rng([cell.seed, 4])
    proposal = prepared(cell, threads, rng.spawn(1)[0])
    values = {}
    for threshold in cell.settings["thresholds"]:
        found = independent_runs(cell, proposal, rng.spawn(1)[0], threads, threshold=threshold)
        values[f"{threshold:g}"] = found.log_evidences.tolist()
    return {"by_threshold": values}
