"""`vaiphy warm`: everything that runs need is compiled beforehand, by tiny analyses side by side in processes of their own.

Numba compiles one kernel at a time in a process, so several processes are what makes use of several cores. What one has compiled
is in the cache for the others.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from vaiphy.errors import FailedError

#: Arguments of the tiny analyses: between them they use every kernel that a run can. First the longest, and one that shares
#: little with it, so that two processes seldom compile the same.
TASKS: dict[str, dict[str, Any]] = {
    "posterior": {"method": "posterior", "accuracy": 1.0},
    "posterior, JC": {"method": "posterior", "accuracy": 1.0, "model": "JC"},
    "vaiphy": {"method": "vaiphy", "iterations": 3},
    "slantis": {"method": "vaiphy", "iterations": 3, "tree_law": "slantis"},
    "phi-csmc": {"method": "phi-csmc", "particles": 16},
    "csmc": {"method": "csmc", "particles": 16},
    "vbpi": {"method": "vbpi", "iterations": 3},
    "score": {},
}
N_TAXA, N_SITES, MISSING = 5, 100, 0.1


@dataclass(frozen=True)
class News:
    """What a task says: the kernel it compiles now (none when it is finished), its number, and how many there are at most."""

    task: str
    kernel: str
    number: int
    at_most: int
    finished: bool = False
    seconds: float = 0.0
    cache: str | None = None


def warm(tell: Callable[[News], None], processes: int, tasks: tuple[str, ...] = tuple(TASKS)) -> list[News]:
    """Compile what the tasks need; `tell` hears of every kernel, from several threads. Returns each task's last word.

    Raises `FailedError` if an analysis fails or compiled code cannot be kept.
    """
    with ThreadPoolExecutor(max_workers=max(1, min(processes, len(tasks)))) as pool:
        last = list(pool.map(lambda task: _follow(task, tell), tasks))
    if any(news.cache is None for news in last):
        raise FailedError(
            "compiled code cannot be kept: neither the folder of the package nor ~/.cache can be written; "
            "set NUMBA_CACHE_DIR to a folder that can"
        )
    return last


def _follow(task: str, tell: Callable[[News], None]) -> News:
    """Run a task in a process of its own and pass on what it says."""
    command = [sys.executable, "-m", "vaiphy.warm", task]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        news = None
        for line in process.stdout:
            news = News(task, **json.loads(line))
            tell(news)
        complaint = process.stderr.read().strip().splitlines()
    if process.returncode or news is None or not news.finished:
        raise FailedError(f"the tiny analysis {task!r} failed: {complaint[-1] if complaint else 'no reason given'}")
    return news


def perform(task: str) -> None:
    """Run a task here and print a line of JSON for each kernel compiled, and one at the end."""
    import tempfile

    import numpy as np

    from vaiphy.kernels.announce import Compiling, announced
    from vaiphy.kernels.compile import cache_folder
    from vaiphy.models.simulate import random_alignment, random_tree, taxon_names

    def say(kernel: str, number: int, at_most: int, **more: Any) -> None:
        print(json.dumps({"kernel": kernel, "number": number, "at_most": at_most, **more}), flush=True)

    def show(compiling: Compiling) -> None:
        say(compiling.name, compiling.number, compiling.at_most)

    rng = np.random.default_rng(1)
    tree = random_tree(taxon_names(N_TAXA), rng)
    data = random_alignment(tree, N_SITES, rng, MISSING)
    with announced(lambda line: None, show) as watch:
        if task == "score":
            from vaiphy.alignment import compress
            from vaiphy.likelihood import log_likelihood, optimise

            patterns = compress(data)
            best, _ = optimise(tree, patterns)
            log_likelihood(best, patterns)
        elif task != "vbpi" or find_spec("torch") is not None:
            from vaiphy.runner.run import run

            with tempfile.TemporaryDirectory() as folder:
                # Two threads, since some kernels are only called where work is divided; files, since summaries have kernels too.
                run(data, prefix=f"{folder}/tiny", seed=1, threads=2, replicates=2, n_trees=10, **TASKS[task])
    say("", watch.n_compiled, watch.n_compiled, finished=True, seconds=round(watch.seconds, 2), cache=cache_folder())


if __name__ == "__main__":
    perform(sys.argv[1])
