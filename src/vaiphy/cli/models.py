"""`vaiphy models`: which model? Their marginal likelihoods compared."""

import re
import signal
import sys

import click

from vaiphy.cli.arguments import CLUSTER_HELP, alignment_options, connected_to, constraint_options
from vaiphy.cli.grouped import Threads
from vaiphy.cli.numbers import setting


@click.command()
@alignment_options
@click.option("--models", metavar="LIST", help="Models to compare, with commas between.  [default: about a dozen]")
@click.option("-p", "--partition", metavar="FILE", help="Also try each model for each part separately.")
@click.option(
    "--rates", type=click.Choice(["free", "linked"]), default="free", show_default=True,
    help="With -p: a relative rate for each part, or the same branch lengths for all.",
)  # fmt: skip
@constraint_options
@click.option("--prefix", metavar="PREFIX", help="How the names of all files begin.  [default: the input's name]")
@click.option(
    "--accuracy", type=setting("accuracy"), default=0.1, show_default=True, metavar="X",
    help="Standard error of each log marginal likelihood to aim for: 0.0001 to 1,000.",
)  # fmt: skip
@click.option("--length-prior", metavar="PRIOR", default="exp(10)", show_default=True, help="Prior of branch lengths.")
@click.option("-T", "--threads", type=Threads(), default="auto", show_default=True, help="Threads.")
@click.option("--cluster", metavar="ADDRESS", help=CLUSTER_HELP)
@click.option(
    "--seed",
    type=setting("seed", whole=True),
    metavar="N",
    help="Seed of the random numbers: 0 to 2^63 - 1.  [default: drawn, printed and recorded]",
)
@click.option("--redo", is_flag=True, help="Start over: ignore the checkpoints of an earlier comparison.")
@click.option("-q", "--quiet", is_flag=True, help="Print the table alone.")
def models(
    alignment: str,
    format_: str | None,
    matchchar: str | None,
    missing: str | None,
    seqtype: str | None,
    models: str | None,
    partition: str | None,
    rates: str,
    constraint: str | None,
    monophyletic: tuple[str, ...],
    not_monophyletic: tuple[str, ...],
    prefix: str | None,
    accuracy: float,
    length_prior: str,
    threads: int,
    cluster: str | None,
    seed: int | None,
    redo: bool,
    quiet: bool,
) -> None:
    """Compare substitution models by their marginal likelihoods.

    Each model's trees, branch lengths and parameters are integrated out; the table shows Bayes factors and posterior
    probabilities. A comparison that was interrupted continues when the same command is given again, and a longer list computes
    only what is new. `vaiphy run -m auto` does this first and takes the winner.

    \b
    vaiphy models primates.nex
    vaiphy models primates.nex --models HKY+G4,GTR+G4 -p codons.txt
    """
    if alignment == "-" and prefix is None:
        raise click.UsageError("reading from standard input needs a --prefix for the names of the files")
    from vaiphy.cli.progress import shown
    from vaiphy.cli.run import _terminated
    from vaiphy.output.model_table import text_table
    from vaiphy.runner.ladder import compare_models
    from vaiphy.runner.steps import is_interrupt

    signal.signal(signal.SIGTERM, _terminated)
    try:
        with connected_to(cluster) as executor, shown(quiet) as listener:
            found = compare_models(
                alignment, models=listed(models), prefix=prefix or alignment, partition=partition, part_rates=rates, seed=seed,
                threads=threads, accuracy=accuracy, length_prior=length_prior, format=format_, matchchar=matchchar,
                missing=missing, seqtype=seqtype, constraint=constraint, monophyletic=monophyletic,
                not_monophyletic=not_monophyletic, redo=redo, listener=listener, executor=executor,
            )  # fmt: skip
    except (KeyboardInterrupt, SystemError) as stop:
        if not is_interrupt(stop):
            raise
        click.echo("\nstopped; run the same command again (without --redo) to continue", err=True)
        sys.exit(130)
    click.echo(text_table(found))
    if not quiet:
        click.echo(f"\nwritten: {prefix or alignment}.models.tsv, {prefix or alignment}.models.json", err=True)


def listed(models: str | None) -> tuple[str, ...]:
    """Model strings with commas between; commas inside braces belong to a model."""
    return tuple(word.strip() for word in re.split(r",(?![^{}]*\})", models or "") if word.strip())
