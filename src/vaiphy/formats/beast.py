"""Samples as BEAST writes them: NEXUS trees with states, and a log of columns for Tracer.

BEAST's programs want rooted binary trees, ours are unrooted: the root is put in the middle of the branch to one taxon. Clades of
such trees are splits of ours, so TreeAnnotator's posterior probabilities are split supports; heights are not times.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vaiphy.formats.newick import quoted
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Tree

Floats = NDArray[np.float64]


def tree_file(sample: TreeSample, outgroup: int, log_posterior: Floats, comment: str = "") -> str:
    """A sample of equal weight, rooted on the branch of the taxon `outgroup`; each tree with its unnormalised log-posterior."""
    numbers = [str(i + 1) for i in range(sample.n_taxa)]
    labels = "".join(f"\t\t{quoted(taxon)}\n" for taxon in sample.taxa)
    table = ",\n".join(f"\t\t{number} {quoted(taxon)}" for number, taxon in zip(numbers, sample.taxa))
    lines = "".join(
        f"tree STATE_{i} [&lnP={value:.6f}] = [&R] {text}\n"
        for i, (text, value) in enumerate(zip(rooted_lines(sample, outgroup, numbers), log_posterior.tolist()))
    )
    note = f"[{comment.replace('[', '(').replace(']', ')')}]\n" if comment else ""
    return (
        f"#NEXUS\n{note}\nBegin taxa;\n\tDimensions ntax={sample.n_taxa};\n\tTaxlabels\n{labels}\t\t;\nEnd;\n\n"
        f"Begin trees;\n\tTranslate\n{table}\n\t\t;\n{lines}End;\n"
    )


def log_file(columns: Mapping[str, Floats], comments: Sequence[str] = ()) -> str:
    """Named columns, one row for each sampled state, as BEAST logs them and Tracer reads them."""
    head = "".join(f"# {' '.join(line.split())}\n" for line in comments)
    rows = zip(*(values.tolist() for values in columns.values()))
    body = "".join(f"{i}\t" + "\t".join(f"{x:.8g}" for x in row) + "\n" for i, row in enumerate(rows))
    return head + "\t".join(["Sample", *columns]) + "\n" + body


def rooted_lines(sample: TreeSample, outgroup: int, names: Sequence[str]) -> list[str]:
    """Each tree as Newick, rooted in the middle of the branch of the taxon `outgroup`; a topology is laid out only once."""
    templates: dict[int, tuple[str, NDArray[np.int64], Floats]] = {}
    lines = []
    for topology, lengths in zip(sample.topology.tolist(), sample.lengths):
        if topology not in templates:
            templates[topology] = _template(sample.taxa, sample.parents[topology], outgroup, names)
        text, order, factor = templates[topology]
        lines.append(text % tuple((lengths[order] * factor).tolist()))
    return lines


def _template(
    taxa: tuple[str, ...], parent: NDArray[np.int32], outgroup: int, names: Sequence[str]
) -> tuple[str, NDArray[np.int64], Floats]:
    """The text with `%.8e` for each length, which branch of the sample that is, and the factor (one half beside the root)."""
    # Lengths are the branches' own numbers: after rerooting they tell which branch has come to be above each vertex.
    tree = Tree(taxa, parent, np.arange(len(parent), dtype=np.float64)).rerooted(outgroup)
    text = [name.replace("%", "%%") for name in names] + [""] * (tree.n_vertices - tree.n_taxa)
    order: list[list[int]] = [[] for _ in range(tree.n_vertices)]
    for vertex in tree.postorder.tolist()[:-1]:
        below = tree.children[vertex]
        if below:
            text[vertex] = f"({','.join(text[child] + ':%.8e' for child in below)})"
            order[vertex] = [branch for child in below for branch in (*order[child], int(tree.length[child]))]
    (inside,) = tree.children[outgroup]
    branch = int(tree.length[inside])
    factor = np.ones(len(order[inside]) + 2)
    factor[-2:] = 0.5
    return f"({text[inside]}:%.8e,{text[outgroup]}:%.8e);", np.array([*order[inside], branch, branch]), factor
