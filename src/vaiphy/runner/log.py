"""PREFIX.log, and the lock that keeps two runs from using one prefix at the same time."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import IO

from vaiphy.errors import InputError
from vaiphy.methods.outcome import Progress

try:
    import fcntl
except ImportError:  # not a Unix system: there is no lock
    fcntl = None  # type: ignore[assignment]

#: Seconds between two lines of progress in the log.
LOG_EVERY = 10.0


class RunLog:
    """Lines with the seconds since the start, to a file if there is one; a log that cannot be written stops no run."""

    def __init__(self, path: Path | None, append: bool = False) -> None:
        self._began = time.monotonic()
        self._last = ("", -LOG_EVERY)
        self._stream: IO[str] | None = None
        if path is not None:
            self._stream = open(path, "a" if append else "w", buffering=1, encoding="utf-8")  # noqa: SIM115
            self.write(f"--- {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, *problem: object) -> None:
        if problem[1] is not None:
            self.write(f"ended by {type(problem[1]).__name__}: {problem[1]}")
        if self._stream is not None:
            with suppress(OSError):
                self._stream.close()

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def write(self, line: str) -> None:
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write(f"{self.elapsed:9.1f} s  {line}\n")

    def tee(self, say: Callable[[str], None]) -> Callable[[str], None]:
        """Say and log."""

        def both(line: str) -> None:
            self.write(line)
            say(line)

        return both

    def progress(self, tell: Callable[[Progress], None]) -> Callable[[Progress], None]:
        """Tell, and log now and then and whenever the stage changes."""

        def both(progress: Progress) -> None:
            stage, when = self._last
            if progress.stage != stage or self.elapsed - when > LOG_EVERY:
                self._last = (progress.stage, self.elapsed)
                self.write(describe(progress))
            tell(progress)

        return both


def describe(progress: Progress) -> str:
    """One line of progress."""
    share = "" if isnan(progress.progress) else f"  {100 * progress.progress:.0f} %"
    return f"{progress.stage}{share}{details(progress)}"


def details(progress: Progress) -> str:
    """What a line of progress says behind stage and share: the estimate so far, and a few words."""
    text = ""
    if progress.log_evidence == progress.log_evidence:
        digits = 3 if progress.std_error < 0.02 else 2
        text += f"  log marginal likelihood {progress.log_evidence:.{digits}f}"
        if progress.std_error == progress.std_error:
            text += f" ± {progress.std_error:.{digits}f}"
    return text + (f"  {progress.message}" if progress.message else "")


@contextmanager
def locked(prefix: Path) -> Iterator[None]:
    """Holds a lock while a run uses the prefix; the system releases it when the process ends, however it ends.

    The file is removed in the end, so who has just locked it makes sure that it is still the one of that name: a run that
    waited at its door while it was removed would otherwise hold a lock that nobody else can see.
    """
    path = prefix.with_name(f".{prefix.name}.lock")
    while True:
        with _opened(path, prefix) as stream:
            _lock(stream, prefix)
            if not _is_at(stream, path):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _opened(path: Path, prefix: Path) -> IO[str]:
    try:
        return open(path, "w")
    except OSError as problem:
        raise OSError(problem.errno, f"cannot write here ({problem.strerror})", str(prefix)) from None


def _lock(stream: IO[str], prefix: Path) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(f"{prefix}: another run with this prefix is in progress; choose another --prefix") from None
    except OSError:
        pass  # a file system without locks


def _is_at(stream: IO[str], path: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
