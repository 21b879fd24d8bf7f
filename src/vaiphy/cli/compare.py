"""`vaiphy compare`: two posteriors of trees side by side."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vaiphy.cli.arguments import need_matplotlib
from vaiphy.cli.grouped import BurnIn
from vaiphy.cli.numbers import Whole

if TYPE_CHECKING:
    from vaiphy.output.comparison import Comparison


@click.command()
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@click.option(
    "--burnin",
    type=BurnIn(),
    default="0",
    show_default=True,
    metavar="X[,Y]",
    help="Leave out the first trees of each file of A and B (or X for A, Y for B): a share below 1 (0.25), else a number.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Plot the split frequencies against each other (.svg, .png or .pdf).",
)
@click.option(
    "--table",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write all splits with both supports as tab-separated values.",
)
@click.option(
    "--show",
    type=Whole(0, 1_000_000),
    default=10,
    show_default=True,
    metavar="N",
    help="Splits to print, those that differ most first: 0 to 1,000,000.",
)
def compare(first: str, second: str, burnin: tuple[float, float], plot: Path | None, table: Path | None, show: int) -> None:
    """Compare two samples of trees on the same taxa: split supports, distances, shared topologies.

    A and B are tree files (Newick or NEXUS) or prefixes of runs: PREFIX.run1.t, PREFIX.run2.t, ... of MrBayes or VaiPhy.

    \b
    vaiphy compare primates.fasta primates.nex --burnin 0,0.25
    """
    from vaiphy.formats.treefiles import load_sample, tree_files
    from vaiphy.output.comparison import compare as comparison_of
    from vaiphy.output.words import count
    from vaiphy.summary.posterior import summarise

    one = load_sample(tree_files(first), burnin[0])
    two = load_sample(tree_files(second), burnin[1], taxa=one.taxa)
    found = comparison_of(summarise(one), summarise(two))
    if table is not None:
        _write_table(found, one.taxa, table)
    if plot is not None:
        _plot(found, first, second, plot)
    click.echo(f"A: {first} ({count(one.n_samples, 'tree')})\nB: {second} ({count(two.n_samples, 'tree')})\n")
    click.echo(f"Average standard deviation of split frequencies   {found.asdsf:.4f}   (splits of at least 0.1 in A or B)")
    click.echo(f"Largest difference of a split frequency           {found.maximum:.4f}")
    click.echo(f"Robinson-Foulds distance of the consensus trees   {found.consensus_rf}")
    click.echo(f"Robinson-Foulds distance of the MCC trees         {found.credible_rf}")
    within = f"within A {found.within[0]:.2f}, within B {found.within[1]:.2f}"
    click.echo(f"Mean distance of a tree of A and a tree of B      {found.expected_rf:.2f}   ({within})")
    click.echo(f"Topology probability that A and B share           {found.overlap:.3f}")
    if show and found.splits:
        _print_splits(found, one.taxa, show)


def _print_splits(found: "Comparison", taxa: tuple[str, ...], show: int) -> None:
    click.echo("\nSplits that differ most:\n       A        B   taxa on the smaller side")
    for k in range(min(show, len(found.splits))):
        names = _smaller(found.splits[k], taxa)
        listed = ", ".join(names[:8]) + (f", ... ({len(names)} taxa)" if len(names) > 8 else "")
        click.echo(f"  {found.first[k]:.4f}   {found.second[k]:.4f}   {listed}")


def _smaller(split: int, taxa: tuple[str, ...]) -> list[str]:
    inside = [name for i, name in enumerate(taxa) if split >> i & 1]
    return inside if 2 * len(inside) <= len(taxa) else [name for i, name in enumerate(taxa) if not split >> i & 1]


def _write_table(found: "Comparison", taxa: tuple[str, ...], path: Path) -> None:
    from vaiphy.formats.results import member_list, split_pattern, table
    from vaiphy.runner.checkpoint import write_file

    columns = {
        "split": [split_pattern(split, len(taxa)) for split in found.splits],
        "support_a": found.first.tolist(),
        "support_b": found.second.tolist(),
        "difference": (found.first - found.second).tolist(),
        "taxa": [member_list(_smaller(split, taxa)) for split in found.splits],
    }
    write_file(path, table(columns))


def _plot(found: "Comparison", first: str, second: str, path: Path) -> None:
    from vaiphy.errors import InputError

    if path.suffix.lower() not in (".svg", ".png", ".pdf"):
        raise InputError(f"{path}: the plot's name must end in .svg, .png or .pdf")
    need_matplotlib()
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from vaiphy.runner.checkpoint import write_file

    figure, axes = pyplot.subplots(figsize=(5, 5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    axes.scatter(found.first, found.second, s=14, alpha=0.6, color="#b3541e", linewidths=0)
    axes.set(xlabel=_literal(first), ylabel=_literal(second), title="Split frequencies", aspect="equal")
    write_file(path, lambda stream: figure.savefig(stream, format=path.suffix[1:].lower(), dpi=200))
    pyplot.close(figure)


def _literal(text: str) -> str:
    return text.replace("$", r"\$")
