"""Telling the user which kernels are being compiled and how far that is; it happens once on a machine and takes seconds.

Numba reports a compilation only when the disk cache has no such kernel, so a warm start is silent.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: Kernels are named without this.
ROOM = "vaiphy.kernels."
#: Numba compiles a kernel here; another process does, and is waited for.
KINDS = ("numba:compile", "vaiphy:wait")


@dataclass(frozen=True)
class Compiling:
    """The kernel whose compilation begins, its number, and how many there are at most."""

    name: str
    number: int
    at_most: int

    def __str__(self) -> str:
        return f"kernel {self.number} of at most {self.at_most}: {self.name}"


class CompileWatch:
    """Wall time spent compiling since the watch began, or waiting for another process that does.

    `say` is called when the first compilation starts, `show` whenever a kernel (or a helper that it calls) is compiled for
    the first time; `count` is the number of kernels loaded so far.
    """

    def __init__(
        self,
        say: Callable[[str], None],
        show: Callable[[Compiling], None] = lambda compiling: None,
        count: Callable[[], int] = lambda: 0,
    ) -> None:
        self._say, self._show, self._count = say, show, count
        self._depth, self._began = 0, 0.0
        self._seen: set[str] = set()
        self._announced = False
        self.seconds = 0.0

    @property
    def n_compiled(self) -> int:
        return len(self._seen)

    def on_start(self, name: str) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1  # a kernel compiles the kernels it calls
        if not self._announced:
            self._announced = True
            self._say("compiling kernels (once on this machine) ...")
        if name.startswith(ROOM) and name not in self._seen:  # not Numba's own helpers
            self._seen.add(name)
            self._show(Compiling(name.removeprefix(ROOM), len(self._seen), max(self._count(), len(self._seen))))

    def on_end(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._began


@contextmanager
def announced(say: Callable[[str], None], show: Callable[[Compiling], None] = lambda compiling: None) -> Iterator[CompileWatch]:
    """Watch compilations while the context lasts."""
    from numba.core import event  # importing Numba takes a second: only where it is going to be used

    from vaiphy.kernels.compile import KNOWN

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            watch.on_start(f"{function.__module__}.{function.__name__}")

        def on_end(self, event: Any) -> None:
            watch.on_end()

    watch = CompileWatch(say, show, lambda: len(KNOWN))
    listener = Listener()
    for kind in KINDS:
        event.register(kind, listener)
    try:
        yield watch
    finally:
        for kind in KINDS:
            event.unregister(kind, listener)
