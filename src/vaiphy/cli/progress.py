"""Progress on the screen: a bar on a terminal, plain lines otherwise; always on standard error."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import isnan
from typing import Any

import click

from vaiphy.methods.outcome import Progress
from vaiphy.runner.log import describe, details
from vaiphy.runner.run import Listener

#: Seconds between two plain lines.
EVERY = 5.0


@contextmanager
def shown(quiet: bool) -> Iterator[Listener]:
    """A listener that shows what it hears while the context lasts."""
    if quiet:
        yield Listener()
    elif sys.stderr.isatty():
        with _bar() as listener:
            yield listener
    else:
        yield _lines()


class Pace:
    """Time left, from the pace since the first report: what came before it (loading, compiling) does not come again."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def remaining(self, fraction: float, seconds: float) -> str:
        """In words, once enough is done to tell; `fraction` of the whole is done after `seconds`."""
        if isnan(fraction):
            return ""
        if self._first is None:
            self._first = (fraction, seconds)
        done, spent = fraction - self._first[0], seconds - self._first[1]
        if done < 0.05 or fraction >= 1:
            return ""
        left = spent * (1 - fraction) / done
        if left < 90:
            return f"about {left:.0f} s left"
        return f"about {left / 60:.0f} min left" if left < 5400 else f"about {left / 3600:.1f} h left"


def _lines() -> Listener:
    began = time.monotonic()
    last: dict[str, Any] = {"stage": "", "when": -EVERY, "begun": False}
    pace = Pace()

    def progress(now: Progress) -> None:
        seconds = time.monotonic() - began
        left = pace.remaining(now.progress, seconds)
        begins = not last["begun"] and now.progress >= 0.005  # the first step forward: it is shown at once
        if now.stage != last["stage"] or seconds - last["when"] >= EVERY or begins:
            last.update(stage=now.stage, when=seconds, begun=last["begun"] or begins)
            click.echo(f"{seconds:7.1f} s  {describe(now)}" + (f"  ({left})" if left else ""), err=True)

    return Listener(lambda line: click.echo(line, err=True), progress)


@contextmanager
def _bar() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = Console(stderr=True, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    began = time.monotonic()
    pace = Pace()
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0, note="")

        def progress(now: Progress) -> None:
            parts = [details(now).strip(), pace.remaining(now.progress, time.monotonic() - began)]
            done = None if isnan(now.progress) else now.progress
            bar.update(task, completed=done, description=now.stage, note="  ".join(p for p in parts if p))

        yield Listener(lambda line: console.print(line, markup=False, soft_wrap=True), progress)
