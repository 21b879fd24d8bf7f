"""`vaiphy run`: from an alignment to trees, evidence and a report."""

import os
import shlex
import signal
import sys
from types import FrameType
from typing import Any

import click

from vaiphy import __version__
from vaiphy.cli.arguments import connected_to
from vaiphy.cli.grouped import GroupedCommand, GroupedOption
from vaiphy.cli.run_options import OUTPUT, run_options
from vaiphy.runner import helper


@click.command(cls=GroupedCommand)
@click.argument("alignment", metavar="ALIGNMENT|DSn")
@run_options
@click.help_option("-h", "--help", cls=GroupedOption, group=OUTPUT)
def run(
    alignment: str,
    prefix: str | None,
    threads: int,
    cluster: str | None,
    seed: int | None,
    outgroup: str | None,
    redo: bool,
    time_limit: float | None,
    method: str,
    replicates: int,
    accuracy: float,
    bridges: int | None,
    shard: str | None,
    phase: str | None,
    model: str | None,
    partition: str | None,
    rates: str,
    constraint: str | None,
    monophyletic: tuple[str, ...],
    not_monophyletic: tuple[str, ...],
    mrbayes_block: bool,
    length_prior: str | None,
    prior_rate: float | None,
    tree_law: str | None,
    iterations: int | None,
    particles: int | None,
    proposal: str | None,
    flow: str | None,
    base: str | None,
    prior_only: bool,
    format_: str | None,
    matchchar: str | None,
    missing: str | None,
    seqtype: str | None,
    trees: int,
    safe_names: bool,
    quiet: bool,
) -> None:
    """Infer the posterior of trees, branch lengths and model parameters, and the marginal likelihood.

    ALIGNMENT is a FASTA, PHYLIP or NEXUS file, or an embedded data set, DS1 to DS8. A run that was interrupted continues
    when the same command is given again.

    \b
    vaiphy run primates.fasta
    vaiphy run primates.fasta --outgroup Lemur --seed 1 -T 4
    """
    # In one piece: arguments, handlers of signals, the run, what is printed, one after the other.
    # A signal in the middle of an import can surface as any error; nothing is written yet, so the process simply ends.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _quit)
    if not quiet:
        click.echo(f"VaiPhy {__version__}", err=True)
    if alignment == "-" and prefix is None:
        raise click.UsageError("reading from standard input needs a --prefix for the names of the files")
    if shard is not None or phase is not None:
        from vaiphy.cli.shards import check_shard

        check_shard(click.get_current_context().params)
    if method == "posterior" and not any((cluster, shard, partition, mrbayes_block, (model or "").lower() == "auto")):
        helper.start_early(model, threads)
    # Only now: these take a second to load, and the first line is on the screen.
    from vaiphy.cli.progress import shown
    from vaiphy.runner.run import run as run_analysis
    from vaiphy.runner.steps import Interrupted, is_interrupt

    prefix = prefix or alignment
    command = "vaiphy " + shlex.join(sys.argv[1:]) if sys.argv[1:2] == ["run"] else f"vaiphy run {shlex.quote(alignment)}"
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _terminated)
    try:
        with connected_to(cluster) as executor, shown(quiet) as listener:
            if shard is not None and phase is not None:
                from vaiphy.cli.shards import do_shard

                do_shard(click.get_current_context().params, prefix, _names(outgroup), executor, listener)
                return
            analysis = run_analysis(
                alignment,
                prefix=prefix,
                method=method,
                seed=seed,
                threads=threads,
                replicates=replicates,
                accuracy=accuracy,
                model=model,
                length_prior=length_prior,
                prior_rate=prior_rate,
                tree_law=tree_law,
                iterations=iterations,
                particles=particles,
                proposal=proposal,
                flow=flow,
                base=base,
                bridges=bridges,
                prior_only=prior_only,
                format=format_,
                matchchar=matchchar,
                missing=missing,
                seqtype=seqtype,
                outgroup=_names(outgroup),
                n_trees=trees,
                safe_names=safe_names,
                partition=partition,
                part_rates=rates,
                constraint=constraint,
                monophyletic=monophyletic,
                not_monophyletic=not_monophyletic,
                mrbayes_block=mrbayes_block,
                time_limit=time_limit,
                redo=redo,
                command=command,
                listener=listener,
                executor=executor,
            )
    except Interrupted as stop:
        again = "; run the same command again (without --redo) to continue from the checkpoint" if stop.saved else ""
        click.echo(f"\nstopped{again}", err=True)
        sys.exit(130)
    except (KeyboardInterrupt, SystemError) as stop:
        if not is_interrupt(stop):
            raise
        click.echo("\nstopped", err=True)
        sys.exit(130)
    finally:
        helper.taken()  # and stopped, if the run never came to need it
    if not quiet:
        summarise_run(analysis, prefix)


def _names(outgroup: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (outgroup or "").split(",") if name.strip())


def _quit(number: int, frame: FrameType | None) -> None:
    """Stopped while the program is being loaded."""
    os.write(2, b"\nstopped\n")
    os._exit(130)


def _terminated(number: int, frame: FrameType | None) -> None:
    """A cluster's polite kill is treated as Ctrl-C: there is a checkpoint, and the same command goes on."""
    raise KeyboardInterrupt


def summarise_run(analysis: Any, prefix: str) -> None:
    from vaiphy.output import words
    from vaiphy.output.files import written_files

    click.echo("")
    click.echo(words.headline(analysis) + ".")
    click.echo(words.verdict(analysis))
    for reason in (*analysis.outcome.reasons, *words.grounds(analysis)):
        click.echo(f"  - {reason}")
    click.echo(words.trees_sentence(analysis))
    for k, sentence in enumerate(words.model_sentences(analysis)):
        click.echo(f"  - {sentence}" if k else sentence)
    click.echo("")
    names = written_files(analysis, prefix)
    width = max(map(len, names))
    for name, what in names.items():
        click.echo(f"{name:{width}}  {what}")
