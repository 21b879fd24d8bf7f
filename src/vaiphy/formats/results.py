"""Result files for other programs: values in, text out.

What the readers of these files insist on, found by trying them: MrBayes's `sumt` wants binary trees, ignores tree weights
and reads names only through TRANSLATE; IQ-TREE's `-con` wants plain Newick without TRANSLATE; a bare number behind a
parenthesis is taken for support by one program and for a name by the next, so names and supports never share a file
without annotations. Numbers are written with fixed digits, so that equal results give equal files.
"""

import gzip
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.formats.newick import nested, quoted
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Split, Tree

BASES = "ACGT"
Floats = NDArray[np.float64]


def newick_lines(sample: TreeSample, names: Sequence[str]) -> list[str]:
    """Each tree of a sample as Newick with its `;`, names as given; each topology is laid out only once."""
    templates: dict[int, tuple[str, list[int]]] = {}
    lines = []
    for topology, lengths in zip(sample.topology.tolist(), sample.lengths):
        if topology not in templates:
            templates[topology] = _template(sample.children[topology], names)
        text, order = templates[topology]
        lines.append(text % tuple(lengths[order].tolist()))
    return lines


def newick_comment(text: str) -> str:
    """A comment before the first tree of a Newick file; nothing for no text. DendroPy and IQ-TREE skip it."""
    return f"[{_inside_comment(text)}] " if text else ""


def tree_file(sample: TreeSample, comment: str = "") -> str:
    """A sample of equal weight as MrBayes writes its .t files: NEXUS with TRANSLATE, one binary tree per "generation"."""
    lines = newick_lines(sample, [str(i + 1) for i in range(sample.n_taxa)])
    trees = "".join(f"   tree gen.{i} = [&U] {line}\n" for i, line in enumerate(lines))
    note = f"[{_inside_comment(comment)}]\n" if comment else ""
    return f"#NEXUS\n{note}begin trees;\n{_translate(sample.taxa)}{trees}end;\n"


def parameter_file(columns: Mapping[str, Floats], comment: str = "VaiPhy") -> str:
    """Sampled quantities as MrBayes writes its .p files: tabs, one row per "generation", which is the first column."""
    rows = zip(*(values.tolist() for values in columns.values()))
    body = "".join(f"{i}\t" + "\t".join(f"{x:.6e}" for x in row) + "\n" for i, row in enumerate(rows))
    return f"[ID: {_inside_comment(comment)}]\n" + "\t".join(["Gen", *columns]) + "\n" + body


def topology_file(taxa: tuple[str, ...], trees: Iterable[Tree], probability: Floats, comment: str = "") -> str:
    """Topologies in order of decreasing probability as MrBayes writes its .trprobs files."""
    numbers = [str(i + 1) for i in range(len(taxa))]
    total, lines = 0.0, []
    for i, (tree, p) in enumerate(zip(trees, probability.tolist())):
        total += p
        text = annotated(tree, numbers, lengths=False)
        lines.append(f"   tree tree_{i + 1} [p = {p:.5f}, P = {min(total, 1.0):.5f}] = [&W {p:.8f}] {text}\n")
    note = f"[{_inside_comment(comment)}]\n" if comment else ""
    return f"#NEXUS\n{note}begin trees;\n{_translate(taxa)}{''.join(lines)}end;\n"


def summary_file(name: str, tree: Tree, splits: Mapping[Split, Mapping[str, Any]], comment: str = "") -> str:
    """A summary tree as MrBayes writes its .con.tre files, vertices named, with `[&prob=...]` and `[&length_mean=...]`.

    `splits` holds for each split of the tree `prob` and what else is known, by the names MrBayes uses.
    """
    before, after = [""] * tree.n_vertices, [""] * tree.n_vertices
    for vertex, split in enumerate(tree.splits):
        known = splits.get(split, {}) if vertex != tree.root else {}
        before[vertex] = _annotation({k: v for k, v in known.items() if not k.startswith("length")})
        after[vertex] = _annotation({k: v for k, v in known.items() if k.startswith("length")})
    labels = "".join(f"\t\t{quoted(taxon)}\n" for taxon in tree.taxa)
    text = annotated(tree, [str(i + 1) for i in range(tree.n_taxa)], labels=True, before=before, after=after)
    note = f"[{_inside_comment(comment)}]\n" if comment else ""
    return (
        f"#NEXUS\n{note}begin taxa;\n\tdimensions ntax={tree.n_taxa};\n\ttaxlabels\n{labels}\t\t;\nend;\n"
        f"begin trees;\n{_translate(tree.taxa)}   tree {name} = [&U] {text}\nend;\n"
    )


def annotated(
    tree: Tree,
    names: Sequence[str],
    lengths: bool = True,
    labels: bool = False,
    support: bool = False,
    before: Sequence[str] | None = None,
    after: Sequence[str] | None = None,
) -> str:
    """A tree as Newick: names of the taxa as given, internal labels or supports, annotations before and after `:length`."""
    text = []
    for v in range(tree.n_vertices):
        here = ""
        if v < tree.n_taxa:
            here = names[v]
        elif labels:
            here = quoted(tree.name(v)) if tree.name(v) else ""
        elif support and tree.support is not None and np.isfinite(tree.support[v]):
            here = f"{tree.support[v]:.4f}"
        here += before[v] if before else ""
        if lengths and v != tree.root and np.isfinite(tree.length[v]):
            here += f":{tree.length[v]:.6e}"
        text.append(here + (after[v] if after else ""))
    return nested(tree, text)


def split_pattern(split: Split, n_taxa: int) -> str:
    """A split as MrBayes writes it: one `*` for each taxon on the side without the first taxon, `.` for the others."""
    return f"{split:0{n_taxa}b}"[::-1].replace("0", ".").replace("1", "*")


def table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Tab-separated values with a header; floating-point numbers with six decimals, unknown ones empty."""
    rows = zip(*columns.values())
    body = "".join("\t".join(_cell(value) for value in row) + "\n" for row in rows)
    return "\t".join(columns) + "\n" + body


def member_list(taxa: Iterable[str]) -> str:
    """Names in one cell: separated by commas, quoted as in Newick where they must be."""
    return ",".join(quoted(name) for name in taxa)


def states_file(
    names: Sequence[str], probability: Floats, site_pattern: NDArray[np.int64], comments: Sequence[str], states: str = BASES
) -> bytes:
    """Ancestral probabilities as IQ-TREE writes its .state files, gzipped: one row for each vertex and site.

    `probability` is (n_nodes, S, n_patterns) for the S letters of `states`; a site's row is its pattern's. The state is the
    most probable one, `-` below one half.
    """
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6, mtime=0, filename="") as stream:
        head = "".join(f"# {line}\n" for line in comments)
        stream.write((head + "\t".join(["Node", "Site", "State", *(f"p_{state}" for state in states)]) + "\n").encode())
        sites = site_pattern.tolist()
        for name, values in zip(names, probability):
            best = values.argmax(axis=0)
            letters = np.where(values.max(axis=0) > 0.5, np.array(list(states))[best], "-").tolist()
            rows = ("\t".join(f"{p:.5f}" for p in row) for row in values.T.tolist())
            cells = [f"{letter}\t{row}\n" for letter, row in zip(letters, rows)]
            stream.write("".join(f"{name}\t{site + 1}\t{cells[p]}" for site, p in enumerate(sites)).encode())
    return out.getvalue()


def json_text(value: Any) -> str:
    """JSON in the order given; NaN and infinity, which JSON does not have, become null."""
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not isfinite(value) else value


def _template(children: NDArray[np.int32], names: Sequence[str]) -> tuple[str, list[int]]:
    """A topology with `%.6e` for each length, and the vertices in the order of the lengths."""
    n = len(children) + 2
    text = [name.replace("%", "%%") for name in names] + [""] * (n - 2)
    order: list[list[int]] = [[v] for v in range(n)] + [[] for _ in range(n - 2)]
    for k, (a, b) in enumerate(children.tolist()):
        inside = f"{text[a]}:%.6e,{text[b]}:%.6e"
        if k == n - 3:  # the last vertex hangs from leaf 0, which is written as its third neighbour
            inside += f",{text[0]}:%.6e"
        text[n + k] = f"({inside})"
        order[n + k] = [*order[a], *order[b], n + k]
        text[a] = text[b] = ""
        order[a] = order[b] = []
    return text[-1] + ";", order[-1]


def _translate(taxa: Sequence[str]) -> str:
    rows = ",\n".join(f"\t\t{i + 1}\t{quoted(taxon)}" for i, taxon in enumerate(taxa))
    return f"\ttranslate\n{rows}\n\t\t;\n"


def _annotation(values: Mapping[str, Any]) -> str:
    if not values:
        return ""
    return "[&" + ",".join(f"{key}={_annotated_value(value)}" for key, value in values.items()) + "]"


def _annotated_value(value: Any) -> str:
    if isinstance(value, tuple):
        return "{" + ",".join(_annotated_value(item) for item in value) + "}"
    return f'"{value}"' if isinstance(value, str) else f"{value:.8e}"


def _inside_comment(text: str) -> str:
    """Text that cannot end a NEXUS comment or break its line."""
    return " ".join(text.replace("[", "(").replace("]", ")").split())


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.6f}" if np.isfinite(value) else ""
    return " ".join(str(value).split("\t"))
