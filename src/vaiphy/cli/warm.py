"""`vaiphy warm`: compile beforehand, with a bar for each analysis on a terminal and plain lines otherwise."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from vaiphy.cli.grouped import Threads

if TYPE_CHECKING:
    from vaiphy.warm import News

#: Seconds between two plain lines of one analysis.
EVERY = 3.0


@click.command()
@click.option("-T", "--threads", type=Threads(), default="auto", show_default=True, help="Processes to compile in.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def warm(threads: int, quiet: bool) -> None:
    """Compile everything that runs need, so that none has to wait for it.

    Kernels are compiled when they are first used, which takes most of a minute, once on a machine. In the recipe of a
    container, or before many jobs of a cluster start, this does it beforehand. Where compiled code is kept is printed;
    NUMBA_CACHE_DIR says another place.

    \b
    vaiphy warm --threads 4
    """
    from vaiphy.warm import warm as compile_all

    began = time.monotonic()
    with _shown(quiet) as tell:
        last = compile_all(tell, threads)
    if quiet:
        return
    count = sum(news.number for news in last)
    seconds = time.monotonic() - began
    done = f"compiled {count} kernels" if count else "nothing to do: everything is compiled"
    click.echo(f"{done} ({seconds:.0f} s); they are kept in {last[0].cache}", err=True)


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[["News"], None]]:
    if quiet:
        yield lambda news: None
    elif sys.stderr.isatty():
        with _bars() as tell:
            yield tell
    else:
        yield _lines()


def _lines() -> Callable[["News"], None]:
    began = time.monotonic()
    last: dict[str, float] = {}

    def tell(news: "News") -> None:
        now = time.monotonic() - began
        if news.finished:
            click.echo(f"{now:7.1f} s  {news.task}: done, {news.number} kernels", err=True)
        elif now - last.get(news.task, -EVERY) >= EVERY:
            last[news.task] = now
            click.echo(f"{now:7.1f} s  {news.task}: kernel {news.number} of at most {news.at_most}: {news.kernel}", err=True)

    return tell


@contextmanager
def _bars() -> Iterator[Callable[["News"], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from vaiphy.warm import TASKS

    columns = (
        TextColumn("{task.description}"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[kernel]}"),
    )
    with Progress(*columns, console=Console(stderr=True, highlight=False)) as bars:
        rows = {task: bars.add_task(task, total=None, start=False, kernel="waiting") for task in TASKS}

        def tell(news: "News") -> None:
            row = rows[news.task]
            bars.start_task(row)
            bars.update(row, completed=news.number, total=max(1, news.at_most), kernel="done" if news.finished else news.kernel)
            if news.finished:
                bars.stop_task(row)

        yield tell
