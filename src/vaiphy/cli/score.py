"""`vaiphy score`: the log-likelihood of given trees, with the branch lengths they have or with the best ones."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vaiphy.cli.arguments import alignment_options, warn

if TYPE_CHECKING:
    from vaiphy.alignment import Alignment
    from vaiphy.tree import Tree


@click.command()
@alignment_options
@click.argument("tree", metavar="TREE")
@click.option("--optimise", "--optimize", is_flag=True, help="Find the branch lengths of highest likelihood.")
@click.option("--output", type=click.Path(dir_okay=False), help="File for the optimised trees (else: standard output).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def score(
    alignment: str,
    tree: str,
    format_: str | None,
    matchchar: str | None,
    missing: str | None,
    optimise: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Log-likelihood of a given tree under JC69.

    TREE is a Newick or NEXUS file (also gzipped; - for standard input) with one tree or more, on the taxa of ALIGNMENT.
    Prints one log-likelihood a line; with --optimise the trees follow, with their new branch lengths.
    """
    from vaiphy.errors import InputError
    from vaiphy.formats import read_alignment, read_trees

    if output and not optimise:
        raise InputError("--output is for optimised trees: add --optimise")
    data = read_alignment(alignment, format_, matchchar, missing)
    warn(data.warnings)
    entries = read_trees(tree, data.taxa)
    names = [entry.name or (f"tree {k}" if len(entries) > 1 else "tree") for k, entry in enumerate(entries, 1)]
    trees = [entry.tree for entry in entries]
    if not optimise:
        _check_lengths(tree, names, trees)
    scores, best = _score(data, trees, optimise)
    _report(names, scores, best if optimise else [], output, as_json)


def _check_lengths(path: str, names: list[str], trees: list["Tree"]) -> None:
    import numpy as np

    from vaiphy.tree import TreeError

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


def _score(data: "Alignment", trees: list["Tree"], optimise: bool) -> tuple[list[float], list["Tree"]]:
    """Log-likelihoods, and the trees they belong to."""
    import numpy as np

    from vaiphy import likelihood
    from vaiphy.alignment import compress
    from vaiphy.kernels.announce import announced
    from vaiphy.tree import simplified

    patterns = compress(data)
    scores, best = [], []
    with announced(lambda message: click.echo(message, err=True)):
        for tree in trees:
            if optimise:
                # The two branches at a root of degree two cannot be told apart: one branch instead.
                plain = simplified(tree)
                tree, value = likelihood.optimise(plain.with_lengths(np.abs(plain.length)), patterns)
            else:
                value = likelihood.log_likelihood(tree, patterns)
            scores.append(value)
            best.append(tree)
    return scores, best


def _report(names: list[str], scores: list[float], trees: list["Tree"], output: str | None, as_json: bool) -> None:
    from vaiphy.checkpoint import write_file
    from vaiphy.formats import newick

    texts = [newick.write(tree, digits=8) for tree in trees]
    if output:
        write_file(Path(output), "".join(text + "\n" for text in texts))
    if as_json:
        rows: list[dict[str, object]] = [{"name": name, "log_likelihood": value} for name, value in zip(names, scores)]
        for row, text in zip(rows, texts):
            row["tree"] = text
        click.echo(json.dumps(rows, indent=2))
        return
    for name, value in zip(names, scores):
        click.echo(f"{name}\t{value:.6f}" if len(names) > 1 else f"{value:.6f}")
    if texts and not output:
        for text in texts:
            click.echo(text)
