"""`vaiphy merge`: the shards of a job array put together."""

import click


@click.command()
@click.argument("prefix", metavar="PREFIX")
@click.option("--alignment", metavar="FILE", help="Where the alignment is now, if it was moved.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
def merge(prefix: str, alignment: str | None, quiet: bool) -> None:
    """Put the shards of a job array together.

    PREFIX is that of `vaiphy run --shard`. All shards must have learned and drawn; the files are those of one run with as many
    replicates as there are shards.

    \b
    vaiphy run primates.nex --seed 1 --shard 1/2 --phase learn     (and 2/2)
    vaiphy run primates.nex --seed 1 --shard 1/2 --phase draw      (and 2/2, when both have learned)
    vaiphy merge primates.nex
    """
    from vaiphy.cli.progress import shown
    from vaiphy.cli.run import summarise_run
    from vaiphy.runner.shards import merge as merge_shards

    with shown(quiet) as listener:
        analysis = merge_shards(prefix, alignment, listener)
    if not quiet:
        summarise_run(analysis, prefix)
