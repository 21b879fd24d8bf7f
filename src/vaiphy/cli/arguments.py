"""Arguments that several commands share."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FORMAT_NAMES = ("fasta", "phylip", "nexus", "phylip-relaxed", "phylip-strict", "phylip-interleaved", "phylip-sequential")
SEQTYPES = ("DNA", "RNA", "AA", "BIN", "MORPH")
SEQTYPE_HELP = f"What the characters are, if the file does not tell: {', '.join(SEQTYPES)}."


CLUSTER_HELP = "Work on a Dask cluster, tcp://HOST:PORT, or in processes here, local:N; the result does not depend on it."


def connected_to(cluster: str | None) -> AbstractContextManager[Any]:
    """A context that gives a client of the cluster, None if there is none."""
    if cluster is None:
        return nullcontext()
    from vaiphy.workers.cluster import connected

    return connected(cluster)


#: Options that say which trees are allowed: names, keywords.
CONSTRAINTS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("-g", "--constraint"), {
        "metavar": "TREE",
        "help": "Constraint tree (IQ-TREE's -g): a file whose splits all trees must have; it may multifurcate and lack taxa.",
    }),
    (("--monophyletic",), {
        "metavar": "TAXA", "multiple": True,
        "help": "All trees must have the split of these taxa (with commas) from the others; may be repeated.",
    }),
    (("--not-monophyletic",), {
        "metavar": "TAXA", "multiple": True, "help": "No tree may have the split of these taxa from the others; may be repeated.",
    }),
)  # fmt: skip


def constraint_options(command: Command) -> Command:
    """Which trees are allowed."""
    for names, keywords in reversed(CONSTRAINTS):
        command = click.option(*names, **keywords)(command)
    return command


def alignment_options(command: Command) -> Command:
    """The argument ALIGNMENT and the options that say how to read it."""
    decorators = [
        click.argument("alignment", metavar="ALIGNMENT"),
        click.option("--format", "format_", type=click.Choice(FORMAT_NAMES), metavar="NAME",
                     help="Format of the alignment, if its content does not tell: fasta, phylip or nexus "
                     "(or phylip- with relaxed, strict, interleaved or sequential)."),
        click.option("--matchchar", metavar="CHAR", help="Symbol that means 'as in the first sequence'."),
        click.option("--missing", metavar="CHAR", help="Symbol that means missing data, besides ? and -."),
        click.option("--seqtype", type=click.Choice(SEQTYPES, case_sensitive=False), metavar="NAME", help=SEQTYPE_HELP),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def warn(messages: tuple[str, ...]) -> None:
    """Print warnings to standard error."""
    for message in messages:
        click.echo(f"warning: {message}", err=True)


def need_matplotlib() -> None:
    """Only drawings need it, so it is an extra."""
    from importlib.util import find_spec

    from vaiphy.errors import FailedError

    if find_spec("matplotlib") is None:
        raise FailedError('drawing needs matplotlib; install it with: pip install "vaiphy[plot]"')
