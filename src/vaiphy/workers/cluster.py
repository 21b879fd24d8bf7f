"""Workers of a Dask cluster (`dask.distributed`), which is imported only when one is asked for.

Shared values are handed to Dask once (`scatter`); its workers pass them on to each other. Dask itself gives the work of a worker
that dies to another. What it gives up (the only copy of a shared value died with its worker, a task saw several workers die, the
connection broke) is sent again; a scheduler that stays away, or that has no worker for long, ends the run.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from threading import Lock
from typing import Any

from vaiphy.errors import FailedError, InputError
from vaiphy.workers.pool import Batch, ExecutorPool, counted
from vaiphy.workers.remote import Answer, perform
from vaiphy.workers.spread import LostWorkers, Pool, Shared

#: Times that lost work is sent again; seconds that a cluster may be without any worker, or its scheduler out of reach.
ATTEMPTS, PATIENCE = 10, 300.0
#: Shared values that the cluster keeps, and seconds that its number of workers is taken to be what it was.
SHARED, FRESH = 64, 1.0
#: Seconds that a scheduler has to answer at the start.
GREETING = 15.0


class DaskPool(ExecutorPool):
    """The workers of a Dask client; each of their threads is a worker of its own."""

    def __init__(self, client: Any, say: Callable[[str], None] = lambda line: None) -> None:
        super().__init__(client, say, 1)
        self._client = client
        self._scattered: OrderedDict[str, Any] = OrderedDict()
        self._scattering = Lock()
        self._counted = (0.0, 1, 1)
        self._address = client.scheduler.address if client.scheduler else "?"

    def words(self) -> str:
        _, n, threads = self._counted
        return counted(n) if n == threads else f"{counted(n)} with {threads} threads"

    def size(self) -> int:
        when, _, threads = self._counted
        if time.monotonic() - when > FRESH:
            try:
                found = self._client.nthreads()
            except (OSError, CancelledError, ValueError, RuntimeError):
                return threads  # what is lost is noticed when work is sent
            threads = max(1, sum(found.values()))
            self._counted = (time.monotonic(), len(found), threads)
        return threads

    def _answers(self, batches: list[Batch]) -> list[Answer]:
        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        answers: dict[int, Answer] = {}
        for _ in range(ATTEMPTS):
            try:
                futures = {i: self._send(batch) for i, batch in enumerate(batches) if i not in answers}
                answers.update(self._finished(futures))
            except (CancelledError, KilledWorker, CommClosedError, TimeoutError):
                self._recover(batches[0].shared)
            except Exception:
                # Whatever a closed client says: the cause is the lost scheduler. Anything else is an error of the work.
                if self._client.status == "running":
                    raise
                self._recover(batches[0].shared)
            if len(answers) == len(batches):
                return [answers[i] for i in range(len(batches))]
        raise LostWorkers(f"the workers of the Dask scheduler at {self._address} were lost {ATTEMPTS} times over the same work")

    def _send(self, batch: Batch) -> Any:
        values = [self._handed_over(one) for one in batch.shared]
        keys = tuple(one.key for one in batch.shared)
        return self._client.submit(perform, batch.task, keys, batch.pieces, *values, pure=False)

    def _handed_over(self, shared: Shared) -> Any:
        """Dask's handle of a shared value."""
        with self._scattering:
            if shared.key not in self._scattered:
                packed = shared.packed()
                self.traffic["shared"] += len(packed)
                self._scattered[shared.key] = self._client.scatter(packed, hash=False)
            self._scattered.move_to_end(shared.key)
            while len(self._scattered) > SHARED:
                self._scattered.popitem(last=False)
            return self._scattered[shared.key]

    def _finished(self, futures: dict[int, Any]) -> dict[int, Answer]:
        """Answers of all futures, once they are there; raises what the first bad one raised."""
        from distributed import wait

        lonely = time.monotonic()
        while True:
            try:
                wait(list(futures.values()), timeout=10.0)
                break
            except TimeoutError:
                if self._client.status != "running":
                    raise
                if self._client.nthreads():
                    lonely = time.monotonic()
                elif time.monotonic() - lonely > PATIENCE:
                    raise self._lost(f"has had no worker for {PATIENCE:.0f} s") from None
        answers = dict(zip(futures, self._client.gather(list(futures.values()))))
        for answer in answers.values():
            self.meet(answer)
        return answers

    def _recover(self, shared: tuple[Shared, ...]) -> None:
        """Wait until the scheduler is back; shared values will be handed over again."""
        with self._scattering:
            for one in shared:
                self._scattered.pop(one.key, None)
        until = time.monotonic() + PATIENCE
        while self._client.status == "connecting" and time.monotonic() < until:
            time.sleep(0.2)
        if self._client.status != "running":
            raise self._lost("is lost")
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except (TimeoutError, OSError):
            raise self._lost(f"has had no worker for {PATIENCE:.0f} s") from None

    def _lost(self, what: str) -> LostWorkers:
        return LostWorkers(f"the Dask scheduler at {self._address} {what}")


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A Dask client of `tcp://HOST:PORT`, of the scheduler that a file describes, or of N processes here (`local:N`)."""
    try:
        import distributed
    except ImportError:
        raise FailedError('--cluster needs Dask; install it with: pip install "vaiphy[cluster]"') from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is said by VaiPhy itself
    if address.startswith("local:"):
        number = address.removeprefix("local:")
        if not number.isdigit() or not 1 <= int(number) <= 10_000:
            raise InputError(f"--cluster {address}: local: is followed by a number of processes, as in local:4")
        options = {"n_workers": int(number), "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        file = {"scheduler_file": address} if address.endswith(".json") else {"address": address}
        client = distributed.Client(**file, timeout=GREETING)
    except ValueError as problem:
        raise InputError(f"--cluster {address}: {problem}; an address looks like tcp://host:8786 or local:4") from None
    except OSError:
        advice = "`dask scheduler` starts one, `dask worker ADDRESS` a worker"
        raise FailedError(f"--cluster {address}: no Dask scheduler answers there; {advice}") from None
    try:
        yield client
    finally:
        if client.status == "running":
            client.close()


def pool_of(executor: Any, say: Callable[[str], None] = lambda line: None) -> Pool:
    """The workers behind an executor of `concurrent.futures`, a Dask client, or a pool of ours."""
    if hasattr(executor, "spread"):
        pool: Pool = executor
        return pool
    if hasattr(executor, "scatter") and hasattr(executor, "nthreads"):
        return DaskPool(executor, say)
    if hasattr(executor, "submit"):
        return ExecutorPool(executor, say)
    raise InputError(
        "executor must be a Dask Client or an executor as in concurrent.futures, with a method submit, "
        f"not {type(executor).__name__}"
    )
