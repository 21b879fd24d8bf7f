"""Trees for toytree: `name`, `dist` and `support` of each node."""

from collections.abc import Sequence
from typing import Any

from vaiphy.interop.building import built, length_of, library, support_of
from vaiphy.trees.tree import Tree


def convert(trees: Tree | Sequence[Tree]) -> Any:
    """A `toytree.ToyTree`, or a `toytree.MultiTree` for several trees."""
    toytree = library("toytree", "toytree")
    return _tree(toytree, trees) if isinstance(trees, Tree) else toytree.mtree([_tree(toytree, tree) for tree in trees])


def _tree(toytree: Any, tree: Tree) -> Any:
    # Nodes of toytree cannot be joined by hand. They are read as v0, v1, ..., and then get their names and supports, so that
    # no name can be mistaken for Newick's punctuation.
    def node(vertex: int, children: Sequence[str]) -> str:
        length = length_of(tree, vertex)
        inside = f"({','.join(children)})" if children else ""
        return f"{inside}v{vertex}" + ("" if length is None else f":{length!r}")

    out = toytree.tree(built(tree, node) + ";", internal_labels="name")
    supports = {f"v{v}": support for v in range(tree.n_vertices) if (support := support_of(tree, v)) is not None}
    if supports:
        out = out.set_node_data("support", supports)
    return out.set_node_data("name", {f"v{v}": tree.name(v) for v in range(tree.n_vertices)})
