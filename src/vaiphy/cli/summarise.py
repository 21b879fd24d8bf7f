"""`vaiphy summarise`: consensus and split supports from anybody's tree files."""

from pathlib import Path

import click

from vaiphy.cli.grouped import MAX_BURNIN
from vaiphy.cli.numbers import Number


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|PREFIX...")
@click.option(
    "--burnin",
    type=Number(0, MAX_BURNIN),
    default=0.0,
    show_default=True,
    metavar="X",
    help="Leave out the first trees of each file: a share below 1 (0.25), else a number, 0 to 1,000,000,000.",
)
@click.option("--outgroup", metavar="TAXA", help="Taxon (or several, with commas) beside which trees are rooted when drawn.")
@click.option("--prefix", metavar="PREFIX", help="Write PREFIX.contree, .con.tre, .mcc.tre, .trprobs and .splits.tsv.")
@click.option("--ignore-weights", is_flag=True, help="Do not use tree weights ([&W 0.3]) in NEXUS files.")
@click.option("--redo", is_flag=True, help="Replace files that are already there.")
def summarise(
    files: tuple[str, ...], burnin: float, outgroup: str | None, prefix: str | None, ignore_weights: bool, redo: bool
) -> None:
    """Split supports, consensus and credible sets of trees in Newick or NEXUS files.

    Each file is a run of the same analysis, with the same total weight. A PREFIX stands for PREFIX.run1.t,
    PREFIX.run2.t, ... of MrBayes or VaiPhy.

    \b
    vaiphy summarise primates.nex.run1.t primates.nex.run2.t --burnin 0.25
    vaiphy summarise boot.ufboot --prefix boot
    """
    from vaiphy.errors import InputError
    from vaiphy.formats.treefiles import load_sample, tree_files
    from vaiphy.output.files import summary_files
    from vaiphy.output.text import posterior_report
    from vaiphy.summary.consensus import ladderised, named, rooted_at
    from vaiphy.summary.posterior import summarise as summary_of

    paths = [path for name in files for path in tree_files(name)]
    posterior = summary_of(load_sample(paths, burnin, weighted=not ignore_weights))
    wanted = tuple(name.strip() for name in (outgroup or "").split(",") if name.strip()) or posterior.taxa[:1]
    drawn = named(ladderised(rooted_at(posterior.majority, wanted)))
    if prefix is not None:
        from vaiphy.runner.checkpoint import batch

        contents = dict(
            summary_files(posterior, drawn, named(ladderised(rooted_at(posterior.credible, wanted[:1]))), _note(paths))
        )
        existing = [prefix + suffix for suffix in contents if Path(prefix + suffix).exists()]
        if existing and not redo:
            raise InputError(f"{existing[0]}: the file already exists; --redo replaces it")
        with batch() as out:
            for suffix, content in contents.items():
                out.write(Path(prefix + suffix), content)
    click.echo(posterior_report(posterior, drawn, len(paths)))
    if prefix is not None:
        click.echo("\nwritten: " + " ".join(prefix + suffix for suffix in contents), err=True)


def _note(paths: list[Path]) -> str:
    from vaiphy import __version__

    return f"VaiPhy {__version__}, summary of " + ", ".join(path.name for path in paths)
