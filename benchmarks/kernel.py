"""The likelihood kernel against the same recursion in plain C, two threads against one, and the cost of an optimisation.

All of it in one process and interleaved, so that noise from elsewhere on the machine falls on both sides; each time is the
least of many.
"""

import ctypes
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.cells import Absent, Cell
from vaiphy.alignment import SitePatterns
from vaiphy.kernels import pruning
from vaiphy.likelihood import log_likelihood, log_likelihoods, optimise, schedule
from vaiphy.models.jc69 import JC69
from vaiphy.search.starts import bionj, distances
from vaiphy.trees.tree import Tree

SOURCE = Path(__file__).with_name("kernel.c")
#: The two logarithms the C side is built with; it is judged by its better one.
C_BUILDS = {"C, library log": [], "C, polynomial log": ["-DPOLYNOMIAL_LOG"]}


def compile_c(folder: Path, flags: list[str]) -> Any:
    """The function `log_likelihood` of kernel.c, built on the spot."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise Absent("cc is not installed (Debian package gcc)")
    library = folder / f"kernel{len(flags)}.so"
    command = [compiler, "-O3", "-march=native", "-shared", "-fPIC", *flags, str(SOURCE), "-o", str(library), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    function = ctypes.CDLL(str(library)).log_likelihood
    function.restype = ctypes.c_double
    return function


def interleaved(works: dict[str, Callable[[], Any]], rounds: int, inner: int) -> dict[str, float]:
    """CPU seconds of this thread for a call of each, the least over rounds in which all take their turn.

    CPU time, because on a busy machine a call of milliseconds is interrupted more often than one of microseconds.
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            begin = time.thread_time()
            for _ in range(inner):
                work()
            best[name] = min(best[name], (time.thread_time() - begin) / inner)
    return best


def busy_elsewhere() -> float:
    """CPU seconds that the whole machine has spent outside this process; 0 where it cannot be known."""
    try:
        fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _, _, irq, soft, steal = (int(f) / os.sysconf("SC_CLK_TCK") for f in fields)
    return user + nice + system + irq + soft + steal - time.process_time()


def undisturbed(works: dict[str, Callable[[], Any]], rounds: int, patience: float = 60.0) -> dict[str, float]:
    """Wall seconds of a call of each, the least over calls during which the rest of the machine used under 5 % of a core.

    Raises `Absent` if there were no such calls: the speed-up of threads cannot be measured on a busy machine.
    """
    best = dict.fromkeys(works, float("inf"))
    give_up = time.perf_counter() + patience
    counts = dict.fromkeys(works, 0)
    while min(counts.values()) < rounds and time.perf_counter() < give_up:
        for name, work in works.items():
            elsewhere, begin = busy_elsewhere(), time.perf_counter()
            work()
            wall = time.perf_counter() - begin
            if busy_elsewhere() - elsewhere <= max(0.05 * wall, 0.015):
                best[name] = min(best[name], wall)
                counts[name] += 1
    if not min(counts.values()):
        raise Absent("the machine was too busy with other work for a speed-up to be measured")
    return best


def problem(name: str) -> tuple[SitePatterns, Tree]:
    """All distinct patterns (not folded: what other programs compute on) and the optimised BIONJ tree."""
    patterns = data.patterns(name)
    return patterns, optimise(bionj(distances(patterns), patterns.taxa), patterns)[0]


def both_sides(patterns: SitePatterns, tree: Tree, folder: Path) -> dict[str, Callable[[], float]]:
    """Calls of the compiled kernel and of each C build on one tree, with their arguments ready."""
    s = schedule(tree.parent, tree.n_taxa)
    us = JC69.decay(tree.length)
    us[tree.root] = 1.0
    tips, counts = patterns.tips, patterns.counts.astype(np.float64)
    work, log_scale = np.empty((tree.n_vertices, 4, pruning.BLOCK)), np.empty(pruning.BLOCK)
    pending = np.full(tree.n_vertices, -1, dtype=np.int64)

    def ours() -> float:
        return pruning.log_likelihood(JC69.weights, s.order, s.start, s.child, us, tips, counts, work, log_scale, pending)

    def pointer(array: NDArray) -> ctypes.c_void_p:
        return array.ctypes.data_as(ctypes.c_void_p)

    arguments = (
        ctypes.c_int(len(s.order)), pointer(s.order), pointer(s.start), pointer(s.child), pointer(us), ctypes.c_int(tree.n_taxa),
        ctypes.c_long(patterns.n_patterns), pointer(tips), pointer(counts), pointer(work), pointer(log_scale), pointer(pending),
    )  # fmt: skip
    calls: dict[str, Callable[[], float]] = {"vaiphy": ours}
    for name, flags in C_BUILDS.items():
        function = compile_c(folder, flags)
        # The arrays are held by the call: a pointer alone does not keep them.
        calls[name] = partial(_call_holding, (s, us, tips, counts, work, log_scale, pending), function, arguments)
    return calls


def _call_holding(held: Any, function: Any, arguments: tuple[Any, ...]) -> float:
    return function(*arguments)


def kernel_against_c(cell: Cell) -> dict[str, Any]:
    """Time of one tree log-likelihood, ours and C's, and the ratio to the better C."""
    patterns, tree = problem(cell.data)
    rounds = cell.settings.get("rounds", 200)
    with tempfile.TemporaryDirectory() as folder:
        calls = both_sides(patterns, tree, Path(folder))
        values = {name: call() for name, call in calls.items()}
        seconds = interleaved(calls, rounds, 20)
    best_c = min(value for name, value in seconds.items() if name != "vaiphy")
    return {
        "patterns": patterns.n_patterns,
        "log_likelihood": values,
        "seconds": seconds,
        "ratio": seconds["vaiphy"] / best_c,
        "per_second": 1.0 / seconds["vaiphy"],
    }


def two_threads(cell: Cell) -> dict[str, Any]:
    """A batch of trees on one thread and on two."""
    patterns, tree = problem(cell.data)
    rng = np.random.default_rng(cell.seed)
    n_trees = cell.settings.get("trees", 4000)
    parents = np.repeat(tree.parent[None], n_trees, axis=0)
    lengths = tree.length * rng.uniform(0.5, 2.0, size=(n_trees, 1))
    calls: dict[str, Callable[[], Any]] = {
        str(t): partial(log_likelihoods, parents, lengths, patterns, threads=t) for t in (1, 2)
    }
    equal = bool((calls["1"]() == calls["2"]()).all())
    seconds = undisturbed(calls, cell.settings.get("rounds", 15), cell.settings.get("patience", 60.0))
    return {"trees": n_trees, "seconds": seconds, "ratio": seconds["1"] / seconds["2"], "same_numbers": equal}


def paired(work: Callable[[], Any], unit: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """(median ratio, least CPU seconds of `work`, least of `unit`), each call between two of the unit.

    What else the machine does slows neighbours in time alike, so the ratio of neighbours is steadier than that of two minima.
    """
    ratios, works, units = [], [], []

    def seconds(call: Callable[[], Any]) -> float:
        begin = time.process_time()
        call()
        return time.process_time() - begin

    before = seconds(unit)
    for _ in range(rounds):
        works.append(seconds(work))
        after = seconds(unit)
        units.append(after)
        ratios.append(works[-1] / (0.5 * (before + after)))
        before = after
    return median(ratios), min(works), min(units)


def likelihood_unit(name: str, count: int = 64) -> tuple[Callable[[], Any], Tree, SitePatterns]:
    """A call that computes `count` log-likelihoods on one thread, and the starting tree and patterns of the data."""
    patterns = data.patterns(name)
    start = bionj(distances(patterns), patterns.taxa)
    parents, lengths = np.repeat(start.parent[None], count, axis=0), np.repeat(start.length[None], count, axis=0)
    return lambda: log_likelihoods(parents, lengths, patterns), start, patterns


def optimisation(cell: Cell) -> dict[str, Any]:
    """A full branch-length optimisation of the BIONJ tree, in single log-likelihoods."""
    unit, start, patterns = likelihood_unit(cell.data)
    _, value = optimise(start, patterns)
    ratio, work, units = paired(lambda: optimise(start, patterns), unit, cell.settings.get("rounds", 30))
    return {
        "log_likelihood": {"bionj": log_likelihood(start, patterns), "optimised": value},
        "seconds": {"optimise": work, "likelihood": units / 64},
        "ratio": 64 * ratio,
    }
