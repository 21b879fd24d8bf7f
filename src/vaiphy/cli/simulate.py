"""`vaiphy simulate`: a random tree and an alignment that evolved along it."""

from pathlib import Path

import click

from vaiphy.cli.arguments import SEQTYPES
from vaiphy.cli.numbers import Number, Whole, prior_number, setting

DEFAULT_MODEL = "JC"


@click.command()
@click.option("--taxa", type=Whole(3, 100_000), default=20, show_default=True, metavar="N", help="Number of taxa: 3 to 100,000.")
@click.option(
    "--sites",
    type=Whole(1, 100_000_000),
    default=1000,
    show_default=True,
    metavar="N",
    help="Number of sites: 1 to 100,000,000.",
)
@click.option(
    "--seed",
    type=setting("seed", whole=True),
    default=1,
    show_default=True,
    metavar="N",
    help="Seed of the random numbers: 0 to 2^63 - 1.",
)
@click.option(
    "--rate",
    type=prior_number(),
    default=10.0,
    show_default=True,
    metavar="X",
    help="Branch lengths are exponential with this rate (mean 1/X substitutions per site): 0.02 to 1,000,000.",
)
@click.option(
    "-m",
    "--model",
    default=DEFAULT_MODEL,
    show_default=True,
    metavar="MODEL",
    help="Substitution model, such as HKY{2.5}+F{0.3,0.2,0.2,0.3}+G4{0.5}, LG+G4 or MK; parameters without a value are drawn "
    "from their priors.",
)
@click.option(
    "--seqtype",
    type=click.Choice(SEQTYPES, case_sensitive=False),
    metavar="NAME",
    help=f"What the characters are: {', '.join(SEQTYPES)}.  [default: as the model says]",
)
@click.option("--states", type=Whole(2, 36), default=4, show_default=True, metavar="N", help="States of MORPH: 2 to 36.")
@click.option("--tree", "tree_file", metavar="FILE", help="Simulate along this tree (Newick or NEXUS) instead.")
@click.option(
    "--missing",
    type=Number(0, 0.999),
    default=0.0,
    show_default=True,
    metavar="X",
    help="Fraction of characters to replace by gaps: 0 to 0.999.",
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
@click.option("--redo", is_flag=True, help="Replace files that are already there.")
def simulate(
    taxa: int,
    sites: int,
    seed: int,
    rate: float,
    model: str,
    seqtype: str | None,
    states: int,
    tree_file: str | None,
    missing: float,
    format_: str,
    prefix: str,
    redo: bool,
) -> None:  # fmt: skip
    """Simulate a tree and an alignment.

    The tree is uniform over unrooted binary topologies with exponential branch lengths; the sequences evolve along it
    under the model. Writes PREFIX.fasta (or .phy, .nex) and the true tree as PREFIX.tree.

    \b
    vaiphy simulate --taxa 20 --sites 1000 --seed 1
    """
    import numpy as np

    from vaiphy.alphabets import alphabet_named
    from vaiphy.errors import InputError
    from vaiphy.formats import newick, read_trees, write_alignment
    from vaiphy.formats.limits import too_many_characters
    from vaiphy.models.grammar import alphabet_for
    from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
    from vaiphy.models.substitution import model_of
    from vaiphy.runner.checkpoint import batch

    ending = {"fasta": "fasta", "phylip": "phy", "nexus": "nex"}[format_]
    targets = Path(f"{prefix}.{ending}"), Path(f"{prefix}.tree")
    if not redo and (present := [str(target) for target in targets if target.exists()]):
        raise InputError(*(f"{name}: the file already exists; --redo replaces it" for name in present))
    evolution = model_of(model, alphabet_named(seqtype or alphabet_for(model) or "DNA", states))
    rng = np.random.default_rng(seed)
    given = read_trees(tree_file)[0].tree if tree_file else None
    if message := too_many_characters(taxa if given is None else given.n_taxa, sites):
        raise InputError(message)
    tree = random_tree(taxon_names(taxa), rng, rate) if given is None else given
    z = evolution.draw_prior(1, rng)
    alignment = random_alignment(tree, sites, rng, missing, evolution, z[0])
    if model != DEFAULT_MODEL:
        drawn = ", ".join(f"{name} {value[0]:.4g}" for name, value in evolution.columns(z).items())
        click.echo(f"model {evolution.name}" + (f", drawn from the prior: {drawn}" if drawn else ""))
    targets[0].parent.mkdir(parents=True, exist_ok=True)
    with batch() as files:
        files.write(targets[0], write_alignment(alignment, format_))
        files.write(targets[1], newick.write(tree) + "\n")
    click.echo(f"wrote {targets[0]} ({alignment.n_taxa} taxa, {alignment.n_sites} sites) and {targets[1]} (the true tree)")
