"""How time and memory grow: one size a cell, so that peak memory is that size's own."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.cells import Cell
from benchmarks.ours import fitted, threads_of


def best_of(work: Callable[[], Any], rounds: int = 3) -> float:
    """CPU seconds of a call (all work here is on one thread), the least of a few."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def likelihood(cell: Cell) -> dict[str, Any]:
    """One log-likelihood, one thread (64 at a time)."""
    from vaiphy.likelihood import log_likelihoods
    from vaiphy.search.starts import bionj, distances

    patterns = data.patterns(cell.data)
    tree = bionj(distances(patterns), patterns.taxa)
    parents, lengths = np.repeat(tree.parent[None], 64, axis=0), np.repeat(tree.length[None], 64, axis=0)
    return {"seconds": best_of(lambda: log_likelihoods(parents, lengths, patterns)) / 64, "patterns": patterns.n_patterns}


def iteration(cell: Cell) -> dict[str, Any]:
    """One iteration of VaiPhy with the exact tree distribution."""
    from vaiphy import vi

    patterns, threads, rng = data.patterns(cell.data), threads_of(cell), np.random.default_rng(cell.seed)
    settings, columns = vi.Settings(), vi.columns(patterns)
    state = vi.initialise(patterns, settings, rng=rng, threads=threads)
    return {
        "seconds": best_of(lambda: vi.step(state, columns, settings, rng=rng, threads=threads)),
        "patterns": patterns.n_patterns,
    }


def particles(cell: Cell) -> dict[str, Any]:
    """One run of CSMC with `particles` particles and the proposal that needs no preparation."""
    from vaiphy import csmc

    patterns, threads = data.patterns(cell.data), threads_of(cell)
    proposal = csmc.make_proposal("pairwise", patterns, csmc.Target("unrooted"), np.random.default_rng(cell.seed))
    n = 16 if cell.settings.get("tiny") else cell.settings["particles"]

    def run() -> None:
        csmc.run(patterns, rng=np.random.default_rng(cell.seed), proposal=proposal, n_particles=n, threads=threads)

    return {"seconds": best_of(run, 2), "x": n}


def samples(cell: Cell) -> dict[str, Any]:
    """Weighing `samples` trees of a fitted VaiPhy distribution."""
    threads = threads_of(cell)
    fit = fitted(cell, threads)
    n = 10 if cell.settings.get("tiny") else cell.settings["samples"]
    return {"seconds": best_of(lambda: fit.sample_log_weights(n, np.random.default_rng(cell.seed), threads), 2), "x": n}
