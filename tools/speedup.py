"""How far a run can be sped up by more workers, by what its pieces cost: measured on one core, also of a machine that is busy.

    python tools/speedup.py DS1 JC [PARTICLES BRIDGES]     a posterior
    python tools/speedup.py DS1 JC,HKY,GTR+G4              a comparison of models

Every piece of work, and what is done between pieces, is timed in CPU seconds of its thread; then the schedule of 1 to 4 workers
is played: pieces go, in the batches in which they travel, to the next free worker, replicates wait for each other where they do,
and what is between runs on one core. What travels is packed and unpacked, as it would be; trips over a network are left out.
docs/scaling.md has the figures.
"""

import heapq
import pickle
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vaiphy import compare_models, random_alignment, random_tree, run
from vaiphy.parallel import chunks
from vaiphy.posterior import states
from vaiphy.workers.pool import BATCHES
from vaiphy.workers.spread import Shared

#: Of one thread: seconds on its own, then those of each piece that it sends.
Sent = tuple[float, list[float]]


class Clocked:
    """A pool that does all work itself and writes down what it took."""

    def __init__(self) -> None:
        self.sent: dict[int, list[Sent]] = {}
        self._since: dict[int, float] = {}
        self._kept: dict[str, Any] = {}

    def words(self) -> str:
        return "a clock"

    def spread(self, task: Callable[..., Any], shared: tuple[Shared, ...], pieces: Sequence[tuple[Any, ...]]) -> list[Any]:
        for one in shared:
            if one.key not in self._kept:
                self._kept = {**dict(list(self._kept.items())[-3:]), one.key: pickle.loads(one.packed())}
        values = [value for one in shared for value in self._kept[one.key]]
        packed = [pickle.dumps(piece, protocol=5) for piece in pieces]
        me, alone = threading.get_ident(), self.since()
        results, seconds = [], []
        for piece in packed:
            began = time.thread_time()
            results.append(pickle.dumps(task(*values, *pickle.loads(piece)), protocol=5))
            seconds.append(time.thread_time() - began)
        self.sent.setdefault(me, []).append((alone, seconds))
        self._since[me] = time.thread_time()
        return [pickle.loads(result) for result in results]

    def since(self) -> float:
        """CPU seconds of this thread since it was last asked."""
        me, now = threading.get_ident(), time.thread_time()
        taken = now - self._since.get(me, now)
        self._since[me] = now
        return taken


def played(threads: list[list[Sent]], n_workers: int) -> float:
    """Seconds until all that was sent is done: the earliest thread goes first, one at a time where they work themselves."""
    free, here = [0.0] * n_workers, 0.0
    waiting = [(0.0, i, 0) for i in range(len(threads))]
    end = 0.0
    while waiting:
        ready, i, k = heapq.heappop(waiting)
        alone, seconds = threads[i][k]
        here = max(here, ready) + alone
        done = here
        for part in chunks(len(seconds), max(1, -(-len(seconds) // (BATCHES * n_workers)))):
            finished = max(heapq.heappop(free), here) + sum(seconds[part])
            heapq.heappush(free, finished)
            done = max(done, finished)
        end = max(end, done)
        if k + 1 < len(threads[i]):
            heapq.heappush(waiting, (done, i, k + 1))
    return end


def watched(pool: Clocked) -> list[tuple[str, float, list[list[Sent]]]]:
    """Make every step of the sampler write down what it was, its own seconds, and what its threads sent."""
    steps: list[tuple[str, float, list[list[Sent]]]] = []
    original = states.step

    def step(state: states.State, threads: Any = 1) -> states.State:
        between = pool.since()
        after = original(state, threads)
        stage = "learning" if state.drawing is None else "pilots" if state.drawing.ladder is None else "bridges"
        steps.append((stage, between + pool.since(), list(pool.sent.values())))
        pool.sent = {}
        return after

    states.step = step
    return steps


def measured(data: str, models: list[str], particles: int | None, bridges: int | None) -> None:
    """Print seconds of one worker and of more, by stage."""
    options: dict[str, Any] = {"particles": particles, "bridges": bridges} if particles else {}

    def work(folder: str, executor: Any = None) -> None:
        if len(models) > 1:
            compare_models(data, models=models, seed=1, prefix=Path(folder, "r"), executor=executor)
        else:
            run(data, model=models[0], seed=1, prefix=Path(folder, "r"), executor=executor, **options)

    rng = np.random.default_rng(1)
    tiny = random_alignment(random_tree(tuple("abcdef"), rng), 50, rng)
    for model in models:  # compiles
        run(tiny, model=model, seed=1, replicates=2, bridges=2, particles=8)
    pool = Clocked()
    steps = watched(pool)
    pool.since()
    with tempfile.TemporaryDirectory() as folder:
        began, wall = time.process_time(), time.perf_counter()
        work(folder, pool)
        whole, wall = time.process_time() - began, time.perf_counter() - wall
    ends = pool.since()
    print(f"{data} {','.join(models)}: {whole:.1f} CPU seconds ({wall:.1f} s), {ends:.2f} of them after the last step")
    total = dict.fromkeys(range(1, 5), 0.0)
    for stage in ("learning", "pilots", "bridges"):
        own = [(serial, sent) for name, serial, sent in steps if name == stage]
        serial = sum(s for s, _ in own) + sum(a for _, sent in own for one in sent for a, _ in one)
        pieces = sum(sum(seconds) for _, sent in own for one in sent for _, seconds in one)
        found = {n: sum(max(s + played(sent, n), (s + _sum(sent)) / n) for s, sent in own) for n in total}
        for n in total:
            total[n] += found[n] if n > 1 else serial + pieces
        words = ", ".join(f"{n}: {(serial + pieces) / found[n]:.2f} x" for n in found if n > 1)
        print(f"  {stage:<9} {len(own):4d} steps, {pieces:7.2f} s of pieces, {serial:6.2f} s between; {words}")
    for words, more in (("without reading and files", 0.0), ("with them", ends)):
        gains = (f"{n} workers {(total[1] + more) / (total[n] + more):.2f} x" for n in total if n > 1)
        print(f"  all, {words}: {', '.join(gains)}")


def _sum(sent: list[list[Sent]]) -> float:
    return sum(alone + sum(seconds) for one in sent for alone, seconds in one)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 5):
        sys.exit(__doc__)
    numbers = [int(word) for word in sys.argv[3:]] or [None, None]
    measured(sys.argv[1], sys.argv[2].split(","), numbers[0], numbers[1])
