"""Telling the user that kernels are being compiled, which happens once on a machine and takes seconds.

Numba reports a compilation only when the disk cache has no such kernel, so a warm start is silent.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class CompileWatch:
    """Wall time spent compiling since the watch began; `say` is called when the first compilation starts."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._depth, self._began = say, 0, 0.0
        self._announced = False
        self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1  # a kernel compiles the kernels it calls
        if not self._announced:
            self._announced = True
            self._say("compiling kernels (once on this machine) ...")

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began


@contextmanager
def announced(say: Callable[[str], None]) -> Iterator[CompileWatch]:
    """Watch compilations while the context lasts."""
    from numba.core import event  # importing Numba takes a second: only where it is going to be used

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            watch.on_start(event)

        def on_end(self, event: Any) -> None:
            watch.on_end(event)

    watch = CompileWatch(say)
    listener = Listener()
    event.register("numba:compile", listener)
    try:
        yield watch
    finally:
        event.unregister("numba:compile", listener)
