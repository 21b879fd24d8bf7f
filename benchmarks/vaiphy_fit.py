"""VaiPhy's own benchmarks: the paper's table, its speed on DS1, and its growth with taxa and sites.

Times are given in seconds and as multiples of one DS1 log-likelihood (one thread) measured in the same run, so that
they can be compared between machines. `python -m benchmarks.vaiphy_fit` prints everything as JSON; `measure` returns
it.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from vaiphy import simulate, vi
from vaiphy.alignment import SitePatterns, compress, fold_states
from vaiphy.datasets import load
from vaiphy.evidence import iwelbo
from vaiphy.likelihood import log_likelihoods
from vaiphy.parallel import available_threads

#: The paper's Table 1, column VaiPhy; its "DS7" is everyone's DS8.
PAPER = {
    "DS1": -7490.54,
    "DS2": -31203.44,
    "DS3": -33911.13,
    "DS4": -13700.86,
    "DS5": -8464.77,
    "DS6": -7157.84,
    "DS8": -9462.21,
}
PAPER_SETTING = {"iterations": 200, "n_trees": 128}


def measure(quick: bool = False) -> dict[str, Any]:
    """All benchmarks of this file; `quick` takes well under a minute."""
    threads = available_threads()
    result: dict[str, Any] = {"threads": threads, "seconds_per_likelihood": seconds_per_likelihood()}
    result["speed"] = speed(result["seconds_per_likelihood"], threads)
    if quick:
        result["table"] = {"spanning": table(["DS1"], "spanning", repeats=3, threads=threads)}
        result["taxa"] = growth([8, 32], [1000, 1000], "taxa", threads)
        result["sites"] = growth([16, 16], [100, 1000], "sites", threads)
        return result
    result["table"] = {law: table(list(PAPER), law, threads=threads) for law in ("spanning", "slantis")}
    result["taxa"] = growth([8, 16, 32, 64, 128, 256, 512], [1000] * 7, "taxa", threads)
    result["sites"] = growth([32] * 4, [100, 1000, 10_000, 100_000], "sites", threads)
    return result


def seconds_per_likelihood() -> float:
    """Time of one DS1 log-likelihood, one thread: the unit of the other times."""
    patterns = fold_states(compress(load("DS1")))
    fit = vi.fit(compress(load("DS1")), iterations=1, rng=np.random.default_rng(1))
    trees = fit.sample_trees(200, np.random.default_rng(1))
    log_likelihoods(trees.parents, trees.lengths, patterns)
    return min(_timed(lambda: log_likelihoods(trees.parents, trees.lengths, patterns))[0] for _ in range(5)) / 200


def speed(unit: float, threads: int) -> dict[str, dict[str, float]]:
    """DS1: 200 iterations of either tree law (no early stop), and 3,000 weighted trees; compiled beforehand."""
    patterns = compress(load("DS1"))

    def fit(tree_law: str, iterations: int) -> vi.Fit:
        options = {**PAPER_SETTING, "tree_law": tree_law, "iterations": iterations, "tolerance": 0.0}
        return vi.fit(patterns, rng=np.random.default_rng(1), threads=threads, **options)

    result = {}
    for law in ("spanning", "slantis"):
        fit(law, 1)
        seconds, fitted = _timed(lambda law=law: fit(law, 200))
        result[f"200 iterations, {law}"] = {"seconds": seconds, "likelihoods": seconds / unit}
        fitted.sample_log_weights(10, np.random.default_rng(1))
        weigh = lambda fitted=fitted: fitted.sample_log_weights(3000, np.random.default_rng(2), threads)  # noqa: E731
        seconds, _ = _timed(weigh)
        result[f"3000 weighted trees, {law}"] = {"seconds": seconds, "likelihoods": seconds / unit}
    return result


def table(
    names: list[str], tree_law: str, repeats: int = 10, n_samples: int = 3000, threads: int = 1, **options: Any
) -> dict[str, dict[str, float]]:
    """IWELBO with the paper's setting: 200 iterations, S = 128, L = 3000, ten repeats, from BIONJ."""
    rows = {}
    for name in names:
        patterns = compress(load(name))
        seconds, fit = _timed(
            lambda patterns=patterns: vi.fit(
                patterns,
                tree_law=tree_law,
                rng=np.random.default_rng(1),
                threads=threads,
                **{**PAPER_SETTING, **options},
            )
        )
        found = iwelbo(fit, n_samples, repeats, rng=np.random.default_rng(2), threads=threads)
        rows[name] = {
            "paper": PAPER.get(name, float("nan")),
            "iwelbo": found.mean,
            "standard_deviation": found.standard_deviation,
            "better_by": found.mean - PAPER.get(name, float("nan")),
            "elbo": fit.elbo,
            "pareto_k": found.pareto_k,
            "effective_sample_size": found.effective_sample_size,
            "iterations": len(fit.trace) - 1,
            "best_iteration": fit.best_iteration,
            "fit_seconds": seconds,
        }
        print(tree_law, name, {k: round(v, 3) for k, v in rows[name].items()}, file=sys.stderr, flush=True)
    return rows


def growth(taxa: list[int], sites: list[int], axis: str, threads: int) -> list[dict[str, float]]:
    """Seconds an iteration (exact law), seconds for 1,000 weighted trees, and peak memory, on simulated alignments."""
    rows = []
    for n, m in zip(taxa, sites):
        patterns = _simulated(n, m)
        chosen = vi.Settings()
        rng = np.random.default_rng(1)
        data = vi.columns(patterns)
        setup, state = _timed(lambda p=patterns, r=rng: vi.initialise(p, vi.Settings(), rng=r, threads=threads))
        state, _ = vi.step(state, data, chosen, rng=rng, threads=threads)
        times = []
        for _ in range(3):
            seconds, (state, info) = _timed(lambda s=state, d=data, r=rng: vi.step(s, d, vi.Settings(), rng=r, threads=threads))
            times.append(seconds)
        fit = vi.Fit(patterns, chosen, state.ancestral, info.iteration, (info,))
        fit.sample_log_weights(2, rng)
        weighing, _ = _timed(lambda f=fit: f.sample_log_weights(200, np.random.default_rng(2), threads))
        row = {
            "taxa": n,
            "sites": m,
            "patterns": patterns.n_patterns,
            "initialise_seconds": setup,
            "iteration_seconds": min(times),
            "seconds_per_1000_trees": 5.0 * weighing,
            "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
        rows.append(row)
        print(axis, {k: round(v, 4) for k, v in row.items()}, file=sys.stderr, flush=True)
    return rows


def plot(result: dict[str, Any], path: str) -> None:
    """Cost of an iteration and of a weighted tree against taxa and against sites, log-log."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    for axes, axis, rest in zip(figure.subplots(1, 2, sharey=True), ("taxa", "sites"), ("1,000 sites", "32 taxa")):
        rows = result[axis]
        x = [row[axis] for row in rows]
        axes.loglog(x, [row["iteration_seconds"] for row in rows], "o-", label="one iteration")
        axes.loglog(x, [row["seconds_per_1000_trees"] / 1000 for row in rows], "s-", label="one weighted tree")
        axes.set_xlabel(f"{axis} ({rest})")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("seconds")
    figure.axes[0].legend(frameon=False)
    figure.savefig(path)


def _simulated(n_taxa: int, n_sites: int) -> SitePatterns:
    rng = np.random.default_rng(n_taxa * 1_000_003 + n_sites)
    tree = simulate.random_tree(simulate.taxon_names(n_taxa), rng)
    return compress(simulate.random_alignment(tree, n_sites, rng))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


if __name__ == "__main__":
    json.dump(measure("--quick" in sys.argv), sys.stdout, indent=1)
