"""`vaiphy run`: from an alignment to trees, evidence and a report."""

import shlex
import signal
import sys
from types import FrameType
from typing import Any

import click

from vaiphy import __version__
from vaiphy.cli.arguments import FORMAT_NAMES
from vaiphy.cli.grouped import Duration, GroupedCommand, GroupedOption, Threads

EVERYDAY, METHOD, INPUT, OUTPUT = "Everyday options", "What is computed", "How the alignment is read", "Files and screen"


def _option(*names: str, group: str, **kwargs: Any) -> Any:
    return click.option(*names, cls=GroupedOption, group=group, **kwargs)


@click.command(cls=GroupedCommand)
@click.argument("alignment", metavar="ALIGNMENT|DSn")
@_option("--prefix", metavar="PREFIX", group=EVERYDAY, help="Start of the names of all files.  [default: the input's name]")
@_option(
    "-T",
    "--threads",
    type=Threads(),
    default="auto",
    show_default=True,
    group=EVERYDAY,
    help="Threads; the result does not depend on them.",
)
@_option(
    "--seed",
    type=int,
    metavar="N",
    group=EVERYDAY,
    help="Seed of all chance.  [default: drawn, printed and recorded]",
)
@_option(
    "--outgroup", metavar="TAXA", group=EVERYDAY, help="Taxon (or several, with commas) beside which trees are rooted when drawn."
)
@_option(
    "--redo", is_flag=True, group=EVERYDAY, help="Start over: ignore the checkpoint and replace the files of an earlier run."
)
@_option("--time-limit", type=Duration(), group=EVERYDAY, help="Stop after this time (90s, 10m, 2h) with the best answer so far.")
@_option(
    "--method",
    type=click.Choice(["posterior", "vaiphy", "phi-csmc", "csmc"]),
    default="posterior",
    show_default=True,
    group=METHOD,
    help="posterior: evidence and posterior over unrooted binary trees. The others: the methods of the VaiPhy paper.",
)
@_option(
    "--replicates",
    type=int,
    default=4,
    show_default=True,
    metavar="N",
    group=METHOD,
    help="Independent repetitions, compared with each other.",
)
@_option(
    "--accuracy",
    type=float,
    default=0.05,
    show_default=True,
    metavar="X",
    group=METHOD,
    help="Standard error of the log evidence to aim for.",
)
@_option(
    "--prior-rate",
    type=float,
    default=10.0,
    show_default=True,
    metavar="X",
    group=METHOD,
    help="Rate of the exponential prior of branch lengths.",
)
@_option(
    "--tree-law",
    type=click.Choice(["spanning", "slantis"]),
    group=METHOD,
    help="Law of trees of the method vaiphy.  [default: spanning]",
)
@_option("--iterations", type=int, metavar="N", group=METHOD, help="Iterations of the method vaiphy.")
@_option("--particles", type=int, metavar="N", group=METHOD, help="Particles of the methods phi-csmc and csmc.")
@_option(
    "--format",
    "format_",
    type=click.Choice(FORMAT_NAMES),
    metavar="NAME",
    group=INPUT,
    help="Format, if the content does not tell: " + ", ".join(FORMAT_NAMES) + ".",
)
@_option("--matchchar", metavar="CHAR", group=INPUT, help="Symbol that means 'as in the first sequence'.")
@_option("--missing", metavar="CHAR", group=INPUT, help="Symbol that means missing data, besides ? and -.")
@_option(
    "--trees",
    type=int,
    default=1000,
    show_default=True,
    metavar="N",
    group=OUTPUT,
    help="Equal-weight trees to write for other programs.",
)
@_option("-q", "--quiet", is_flag=True, group=OUTPUT, help="Print nothing but errors.")
@click.help_option("-h", "--help", cls=GroupedOption, group=OUTPUT)
def run(
    alignment: str,
    prefix: str | None,
    threads: int,
    seed: int | None,
    outgroup: str | None,
    redo: bool,
    time_limit: float | None,
    method: str,
    replicates: int,
    accuracy: float,
    prior_rate: float,
    tree_law: str | None,
    iterations: int | None,
    particles: int | None,
    format_: str | None,
    matchchar: str | None,
    missing: str | None,
    trees: int,
    quiet: bool,
) -> None:
    """Infer the posterior of trees and the evidence of ALIGNMENT.

    ALIGNMENT is a FASTA, PHYLIP or NEXUS file, or an embedded data set, DS1 to DS8. A run that was interrupted goes on
    when the same command is given again.

    \b
    vaiphy run primates.fasta
    vaiphy run primates.fasta --outgroup Lemur --seed 1 -T 4
    """
    if not quiet:
        click.echo(f"VaiPhy {__version__}", err=True)
    if alignment == "-" and prefix is None:
        raise click.UsageError("reading from standard input needs a --prefix for the names of the files")
    # Only now: these take a second to load, and the first line is on the screen.
    from vaiphy.analysis import Interrupted
    from vaiphy.cli.progress import shown
    from vaiphy.runner import run as run_analysis

    prefix = prefix or alignment
    command = "vaiphy " + shlex.join(sys.argv[1:]) if sys.argv[1:2] == ["run"] else f"vaiphy run {shlex.quote(alignment)}"
    signal.signal(signal.SIGTERM, _terminated)
    try:
        with shown(quiet) as listener:
            analysis = run_analysis(
                alignment,
                prefix=prefix,
                method=method,
                seed=seed,
                threads=threads,
                replicates=replicates,
                accuracy=accuracy,
                prior_rate=prior_rate,
                tree_law=tree_law,
                iterations=iterations,
                particles=particles,
                format=format_,
                matchchar=matchchar,
                missing=missing,
                outgroup=_names(outgroup),
                n_trees=trees,
                time_limit=time_limit,
                redo=redo,
                command=command,
                listener=listener,
            )
    except Interrupted as stop:
        again = "; the same command (without --redo) goes on from the checkpoint" if stop.saved else ""
        click.echo(f"\nstopped{again}", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        click.echo("\nstopped", err=True)
        sys.exit(130)
    if not quiet:
        _summarise(analysis, prefix)


def _names(outgroup: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (outgroup or "").split(",") if name.strip())


def _terminated(number: int, frame: FrameType | None) -> None:
    """A cluster's polite kill is treated as Ctrl-C: there is a checkpoint, and the same command goes on."""
    raise KeyboardInterrupt


def _summarise(analysis: Any, prefix: str) -> None:
    from vaiphy.report import words
    from vaiphy.report.files import written_files

    click.echo("")
    click.echo(words.headline(analysis) + ".")
    click.echo(words.verdict(analysis))
    for reason in (*analysis.reasons, *words.grounds(analysis)):
        click.echo(f"  - {reason}")
    click.echo(words.trees_sentence(analysis))
    click.echo("")
    names = written_files(analysis, prefix)
    width = max(map(len, names))
    for name, what in names.items():
        click.echo(f"{name:{width}}  {what}")
