"""`vaiphy simulate`: a random tree and an alignment that evolved along it."""

from pathlib import Path

import click


@click.command()
@click.option("--taxa", type=click.IntRange(3, 100_000), default=20, show_default=True, help="Number of taxa.")
@click.option("--sites", type=click.IntRange(1, 100_000_000), default=1000, show_default=True, help="Number of sites.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the random numbers.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    help="Branch lengths are exponential with this rate (mean 1/rate substitutions per site).",
)
@click.option("--tree", "tree_file", metavar="FILE", help="Simulate along this tree (Newick or NEXUS) instead.")
@click.option(
    "--missing",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.0,
    show_default=True,
    help="Fraction of characters to replace by gaps.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["fasta", "phylip", "nexus"]),
    default="fasta",
    show_default=True,
    help="Format of the alignment.",
)
@click.option("--prefix", default="simulated", show_default=True, help="Where the files go, and how their names begin.")
@click.option("--redo", is_flag=True, help="Overwrite files that are already there.")
def simulate(
    taxa: int,
    sites: int,
    seed: int,
    rate: float,
    tree_file: str | None,
    missing: float,
    format_: str,
    prefix: str,
    redo: bool,
) -> None:  # fmt: skip
    """Simulate a tree and an alignment.

    The tree is uniform over unrooted binary topologies with exponential branch lengths; the sequences evolve along it
    under JC69. Writes PREFIX.fasta (or .phy, .nex) and the true tree as PREFIX.tree.
    """
    import numpy as np

    from vaiphy.checkpoint import batch
    from vaiphy.errors import InputError
    from vaiphy.formats import newick, read_trees, write_alignment
    from vaiphy.simulate import random_alignment, random_tree, taxon_names

    ending = {"fasta": "fasta", "phylip": "phy", "nexus": "nex"}[format_]
    targets = Path(f"{prefix}.{ending}"), Path(f"{prefix}.tree")
    if not redo and (present := [str(target) for target in targets if target.exists()]):
        raise InputError(*(f"{name}: the file is already there; --redo overwrites it" for name in present))
    rng = np.random.default_rng(seed)
    tree = read_trees(tree_file)[0].tree if tree_file else random_tree(taxon_names(taxa), rng, rate)
    alignment = random_alignment(tree, sites, rng, missing)
    targets[0].parent.mkdir(parents=True, exist_ok=True)
    with batch() as files:
        files.write(targets[0], write_alignment(alignment, format_))
        files.write(targets[1], newick.write(tree) + "\n")
    click.echo(f"wrote {targets[0]} ({alignment.n_taxa} taxa, {alignment.n_sites} sites) and {targets[1]} (the true tree)")
