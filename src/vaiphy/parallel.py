"""Chunks of independent work over threads, with results that do not depend on how many threads there are."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import count
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def map_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int = 1) -> list[Result]:
    """`[work(item) for item in items]`, over `threads` threads; `work` should spend its time in kernels (no GIL).

    The calling thread works too, and helpers are kept for the next call: pieces of a tenth of a millisecond are worth sharing.
    A helper that is busy elsewhere is not waited for, so `work` may itself call this.
    """
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    failed = False
    take = count()

    def run() -> None:
        nonlocal failed
        while not failed and (i := next(take)) < len(items):
            try:
                results[i] = work(items[i])
            except BaseException:
                failed = True
                raise

    helpers: list[Future[None]] = [_helpers(threads - 1).submit(run) for _ in range(min(threads, len(items)) - 1)]
    try:
        run()
    finally:
        started = [helper for helper in helpers if not helper.cancel()]
        errors = [helper.exception() for helper in started]
    for error in errors:
        if error is not None:
            raise error
    return [results[i] for i in range(len(items))]


@cache
def _helpers(n: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=n, thread_name_prefix="vaiphy")


def chunks(n_items: int, size: int) -> list[slice]:
    """Slices of at most `size` items covering `range(n_items)`; they depend on the sizes alone, not on threads."""
    return [slice(start, min(start + size, n_items)) for start in range(0, n_items, size)]


def streams(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """`n` independent random streams; stream i is the same whatever else runs beside it."""
    return rng.spawn(n)
