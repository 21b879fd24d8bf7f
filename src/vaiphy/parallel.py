"""Chunks of independent work over threads, with results that do not depend on how many threads there are."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_threads() -> int:
    """Number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def map_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int = 1) -> list[Result]:
    """`[work(item) for item in items]`, over `threads` threads; `work` should spend its time in kernels (no GIL)."""
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(threads, len(items))) as pool:
        return list(pool.map(work, items))


def chunks(n_items: int, size: int) -> list[slice]:
    """Slices of at most `size` items covering `range(n_items)`; they depend on the sizes alone, not on threads."""
    return [slice(start, min(start + size, n_items)) for start in range(0, n_items, size)]


def streams(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """`n` independent random streams; stream i is the same whatever else runs beside it."""
    return rng.spawn(n)
