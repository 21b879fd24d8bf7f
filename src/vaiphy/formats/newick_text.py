"""Trees as Newick text: what `newick` writes."""

import re
from collections.abc import Sequence

from vaiphy.trees.tree import Tree

#: What reads as a number behind a parenthesis, and is the support of a branch.
NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_SPECIAL = re.compile(r"[\s()\[\]{}:;,'\"=]")


def write(
    tree: Tree,
    lengths: bool = True,
    support: bool = True,
    labels: bool = True,
    comments: bool = True,
    digits: int | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """A tree as a Newick string with its `;`.

    Lengths and support have `digits` significant digits (None: as many as it takes to read back the same number). An
    internal vertex has its label or else its support behind its parenthesis; if it has both, the support becomes an
    annotation `[&support=...]`. `names` replaces the names of the taxa (numbers of a TRANSLATE table) and is written
    as it is; all other names are quoted where they must be. A tree whose root is a leaf is written from the vertex next
    to it, as other programs expect.
    """
    if tree.root < tree.n_taxa and tree.n_vertices > 2 and len(tree.children[tree.root]) == 1:
        tree = tree.rerooted(tree.children[tree.root][0])
    shown = list(names) if names is not None else [quoted(taxon) for taxon in tree.taxa]
    text: list[str] = []
    length = tree.length.tolist()
    for vertex in range(tree.n_vertices):
        name = shown[vertex] if vertex < tree.n_taxa else _inner_name(tree, vertex, labels, support, digits)
        note = f"[{tree.comments[vertex]}]" if comments and tree.comments is not None and tree.comments[vertex] else ""
        has_length = lengths and vertex != tree.root and length[vertex] == length[vertex]
        branch = f":{_number(length[vertex], digits)}" if has_length else ""
        text.append(f"{name}{note}{branch}")
    return nested(tree, text)


def nested(tree: Tree, text: Sequence[str]) -> str:
    """Newick of a tree from what stands at each vertex (behind its parenthesis, if it has one), in linear time."""
    pieces: list[str] = []
    stack: list[tuple[int, str]] = [(tree.root, "")]  # a vertex to enter, or (-1, what stands behind its children)
    while stack:
        vertex, mark = stack.pop()
        pieces.append(mark)
        if vertex < 0:
            continue
        if below := tree.children[vertex]:
            pieces.append("(")
            stack.append((-1, ")" + text[vertex]))
            stack += [(child, "," if k else "") for k, child in reversed(list(enumerate(below)))]
        else:
            pieces.append(text[vertex])
    return "".join(pieces) + ";"


def quoted(name: str) -> str:
    """A name as it must stand in Newick or NEXUS: in quotes if it is empty or has white space or punctuation."""
    return "'" + name.replace("'", "''") + "'" if not name or _SPECIAL.search(name) else name


def _inner_name(tree: Tree, vertex: int, labels: bool, support: bool, digits: int | None) -> str:
    label = tree.labels[vertex] if labels and tree.labels is not None else ""
    value = float(tree.support[vertex]) if support and tree.support is not None else float("nan")
    percentage = "" if value != value else _number(value, digits)
    if not label:
        return percentage
    # A label that reads as a number would come back as support.
    name = f"'{label}'" if NUMBER.fullmatch(label) else quoted(label)
    return f"{name}[&support={percentage}]" if percentage else name


def _number(value: float, digits: int | None) -> str:
    return repr(value) if digits is None else f"{value:.{digits}g}"
