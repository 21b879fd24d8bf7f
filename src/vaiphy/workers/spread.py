"""Pieces of work spread over workers: threads of this process by default, or a pool of processes anywhere.

A task is a function of a module. It is handed values that many pieces share (`Shared`: the data, a proposal) and a piece of its
own: arrays, numbers and a seed. It changes nothing that it is given and returns its results. Pieces and their seeds depend on the
work alone, so results are the same to the last bit wherever, and on however many workers, it is done.
"""

import pickle
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Protocol, TypeVar

from vaiphy.errors import FailedError
from vaiphy.parallel import map_threads

Item = TypeVar("Item")
Result = TypeVar("Result")


class LostWorkers(FailedError):
    """The workers are out of reach, for good as far as can be told."""


class Shared:
    """A value that many pieces of work read. Processes are sent it once, and know it by the hash of its content."""

    def __init__(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def packed(self) -> bytes:
        return pickle.dumps(self.value, protocol=5)

    @cached_property
    def key(self) -> str:
        return sha256(self.packed()).hexdigest()


class Pool(Protocol):
    """Processes that take tasks; `vaiphy.workers.pool` makes one of any executor, `vaiphy.workers.cluster` of a Dask client."""

    def spread(self, task: Callable[..., Result], shared: tuple[Shared, ...], pieces: Sequence[tuple[Any, ...]]) -> list[Result]:
        """As `spread` below."""
        ...

    def words(self) -> str:
        """How many workers there are now, for people."""
        ...


#: A number of threads of this process, or a pool of processes.
Workers = int | Pool


def spread(
    task: Callable[..., Result], shared: tuple[Shared, ...], pieces: Sequence[tuple[Any, ...]], workers: Workers = 1
) -> list[Result]:
    """`[task(*values, *piece) for piece in pieces]`, where the values are those of all `shared` ones together."""
    if not isinstance(workers, int):
        return workers.spread(task, shared, pieces)
    values = [value for one in shared for value in one.value]
    return map_threads(lambda piece: task(*values, *piece), pieces, workers)


def each(work: Callable[[Item], Result], items: Sequence[Item], workers: Workers = 1) -> list[Result]:
    """`[work(item) for item in items]` for work that itself spreads pieces.

    The pieces of one item keep all threads busy, so the items follow each other; far workers would wait for the next
    item's pieces meanwhile, so there all items go on at once.
    """
    if isinstance(workers, int):
        return [work(item) for item in items]
    return map_threads(work, items, len(items))
