"""`vaiphy score`: the log-likelihood of given trees, with the branch lengths they have or with the best ones."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vaiphy.cli.arguments import alignment_options, warn

if TYPE_CHECKING:
    from vaiphy.alignment import Alignment, SitePatterns
    from vaiphy.models.replacement import Replacement
    from vaiphy.target import Target
    from vaiphy.trees.tree import Tree

    Scored = tuple[float, Tree, dict[str, float]]

#: The model where none is given; scoring estimates nothing that was not asked for.
DEFAULTS = {"DNA": "JC", "RNA": "JC", "AA": "LG", "BIN": "MK", "MORPH": "MK"}


@click.command()
@alignment_options
@click.argument("tree", metavar="TREE")
@click.option(
    "-m",
    "--model",
    metavar="MODEL",
    help="Substitution model as IQ-TREE writes it, such as HKY{2.5}+F+G4{0.5}; parameters without a "
    "value get their best one.  [default: JC; LG for amino acids, MK for other characters]",
)
@click.option("--optimise", "--optimize", is_flag=True, help="Find the branch lengths of highest likelihood.")
@click.option("--output", type=click.Path(dir_okay=False), help="File for the optimised trees.  [default: standard output]")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def score(
    alignment: str,
    tree: str,
    format_: str | None,
    matchchar: str | None,
    missing: str | None,
    seqtype: str | None,
    model: str | None,
    optimise: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Log-likelihood of a given tree under any model.

    TREE is a Newick or NEXUS file (also gzipped; - for standard input) with one tree or more, on the taxa of ALIGNMENT.
    Prints one log-likelihood a line, then the parameters that were found, one line a tree; with --optimise the trees follow,
    with their new branch lengths.

    \b
    vaiphy score primates.fasta my.tre -m HKY+G4 --optimise
    """
    from vaiphy.errors import InputError
    from vaiphy.formats import read_alignment, read_trees

    if output and not optimise:
        raise InputError("--output is for optimised trees: add --optimise")
    data = read_alignment(alignment, format_, matchchar, missing, seqtype)
    warn(data.warnings)
    entries = read_trees(tree, data.taxa)
    names = [entry.name or (f"tree {k}" if len(entries) > 1 else "tree") for k, entry in enumerate(entries, 1)]
    trees = [entry.tree for entry in entries]
    if not optimise:
        _check_lengths(tree, names, trees)
    _report(names, _score(data, trees, model or DEFAULTS[data.alphabet.name], optimise), optimise, output, as_json)


def _check_lengths(path: str, names: list[str], trees: list["Tree"]) -> None:
    import numpy as np

    from vaiphy.trees.tree import TreeError

    problems = []
    for name, tree in zip(names, trees):
        lengths = np.delete(tree.length, tree.root)
        if np.isnan(lengths).any():
            count = int(np.isnan(lengths).sum())
            problems.append(f"{path}: {name} has {count} branches without a length; --optimise finds lengths")
        if (lengths < 0).any():
            problems.append(f"{path}: {name} has a negative branch length; --optimise finds lengths")
    if problems:
        raise TreeError(*problems)


def _score(data: "Alignment", trees: list["Tree"], model: str, optimise: bool) -> list["Scored"]:
    """Log-likelihood, tree and parameters found, of each tree."""
    from vaiphy.alignment import compress
    from vaiphy.kernels.announce import announced
    from vaiphy.models.replacement import obstacle, replacement_of
    from vaiphy.target import target_of

    patterns = compress(data)
    target = target_of(patterns, model)
    own = target.parts[0].model
    with announced(lambda message: click.echo(message, err=True)):
        if patterns.alphabet.is_nucleotides and not obstacle(own):
            return _under_replacement(patterns, trees, replacement_of(own), optimise)
        return _under_target(target, trees, optimise)


def _under_replacement(patterns: "SitePatterns", trees: list["Tree"], model: "Replacement", optimise: bool) -> list["Scored"]:
    """For models that need neither parameters nor matrices: also trees with taxa inside, and any number of branches at once."""
    import numpy as np

    from vaiphy import likelihood
    from vaiphy.trees.tree import simplified

    found: list[Scored] = []
    for tree in trees:
        if optimise:
            # The two branches at a root of degree two cannot be told apart: one branch instead.
            plain = simplified(tree)
            tree, value = likelihood.optimise(plain.with_lengths(np.abs(plain.length)), patterns, model=model)
        else:
            value = likelihood.log_likelihood(tree, patterns, model)
        found.append((value, tree, {}))
    return found


def _under_target(target: "Target", trees: list["Tree"], optimise: bool) -> list["Scored"]:
    from vaiphy.search.optimum import optimum

    found: list[Scored] = []
    for tree in trees:
        best = optimum(target, tree, lengths=optimise)
        columns = target.columns(best.z[None, :])
        found.append((best.log_likelihood, best.tree, {name: float(column[0]) for name, column in columns.items()}))
    return found


def _report(names: list[str], scored: list["Scored"], optimised: bool, output: str | None, as_json: bool) -> None:
    from vaiphy.formats import newick
    from vaiphy.runner.checkpoint import write_file

    texts = [newick.write(tree, digits=8) for _, tree, _ in scored] if optimised else []
    if output:
        write_file(Path(output), "".join(text + "\n" for text in texts))
    if as_json:
        rows: list[dict[str, object]] = []
        for name, (value, _, parameters) in zip(names, scored):
            rows.append({"name": name, "log_likelihood": value} | ({"parameters": parameters} if parameters else {}))
        for row, text in zip(rows, texts):
            row["tree"] = text
        click.echo(json.dumps(rows, indent=2))
        return
    for name, (value, _, _) in zip(names, scored):
        click.echo(f"{name}\t{value:.6f}" if len(names) > 1 else f"{value:.6f}")
    for _, _, parameters in scored:
        if parameters:
            click.echo("  ".join(f"{name} {value:.6g}" for name, value in parameters.items()))
    if texts and not output:
        for text in texts:
            click.echo(text)
