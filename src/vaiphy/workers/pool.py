"""A pool of processes behind any `concurrent.futures.Executor`: `ProcessPoolExecutor`, `mpi4py.futures.MPIPoolExecutor`.

Pieces travel in batches, a few for each worker. A shared value goes along with the first batches; a worker that a later batch
finds without it says so and is sent it.
"""

import os
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from vaiphy.parallel import chunks
from vaiphy.workers.remote import Answer, Machine, machine, perform
from vaiphy.workers.spread import LostWorkers, Shared

Result = TypeVar("Result")

#: Batches for each worker: more even out the work, fewer need less talking.
BATCHES = 2


class Batch(NamedTuple):
    """Pieces that travel together."""

    task: Callable[..., Any]
    shared: tuple[Shared, ...]
    pieces: bytes


class ExecutorPool:
    """Tasks go to `executor`; `say` hears of workers that differ from this machine. `workers`: how many there are, if known."""

    def __init__(self, executor: Executor, say: Callable[[str], None] = lambda line: None, workers: int | None = None) -> None:
        self._executor, self._say = executor, say
        self._workers = workers or _size(executor)
        self._lock = Lock()
        self._sent: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._told: set[Machine] = {machine()}
        #: Bytes of pieces, results and shared values that have travelled, and batches.
        self.traffic: Counter[str] = Counter()

    def words(self) -> str:
        return counted(self._workers)

    def spread(self, task: Callable[..., Result], shared: tuple[Shared, ...], pieces: Sequence[tuple[Any, ...]]) -> list[Result]:
        size = -(-len(pieces) // max(1, BATCHES * self.size()))
        batches = [Batch(task, shared, pickle.dumps(pieces[part], protocol=5)) for part in chunks(len(pieces), max(1, size))]
        answers = self._answers(batches)
        self.traffic.update(
            batches=len(batches), pieces=sum(len(b.pieces) for b in batches), results=sum(len(a.results) for a in answers)
        )
        return [result for answer in answers for result in pickle.loads(answer.results)]

    def size(self) -> int:
        """Batches that are worked on at the same time."""
        return self._workers

    def _answers(self, batches: list[Batch]) -> list[Answer]:
        try:
            futures = [self._submit(batch, ()) for batch in batches]
            return [self._answer(batch, future) for batch, future in zip(batches, futures)]
        except BrokenExecutor as problem:
            reason = str(problem) or type(problem).__name__
            raise LostWorkers(f"a worker process was lost, and this pool cannot go on without it ({reason})") from None

    def _submit(self, batch: Batch, missing: tuple[str, ...]) -> "Future[Answer]":
        keys, packed = tuple(one.key for one in batch.shared), []
        for one in batch.shared:
            with self._lock:
                send = one.key in missing or self._sent[one.key] < self._workers
                self._sent[one.key] += send
            packed.append(one.packed() if send else None)
        self.traffic["shared"] += sum(len(blob) for blob in packed if blob is not None)
        return self._executor.submit(perform, batch.task, keys, batch.pieces, *packed)

    def _answer(self, batch: Batch, future: "Future[Answer]") -> Answer:
        answer = future.result()
        while answer.missing:
            answer = self._submit(batch, answer.missing).result()
        self.meet(answer)
        return answer

    def meet(self, answer: Answer) -> None:
        """Warn, once for each kind, of a worker whose results may differ from this machine's in their last bits."""
        with self._lock:
            new = answer.machine not in self._told
            self._told.add(answer.machine)
        if new:
            self._say(f"warning: {difference(answer)}")


def difference(answer: Answer) -> str:
    """In what a worker differs from this machine."""
    words = {"vaiphy": "VaiPhy", "python": "Python", "numpy": "NumPy", "numba": "Numba", "processor": "processor"}
    other = [
        f"{words[field]} {there} (here {here})"
        for field, there, here in zip(Machine._fields, answer.machine, machine())
        if there != here
    ]
    result = "the result agrees with one machine's within its error, but not to the last bit"
    return f"a worker ({answer.worker}) has {', '.join(other)}: {result}"


def counted(n: int) -> str:
    return f"{n} worker{'' if n == 1 else 's'}"


def _size(executor: Executor) -> int:
    """Workers of an executor: what it says, else as many as there are cores here."""
    for attribute in ("num_workers", "_max_workers"):
        n = getattr(executor, attribute, None)
        if isinstance(n, int) and n > 0:
            return n
    return os.cpu_count() or 1
