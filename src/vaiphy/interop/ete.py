"""Trees for ETE (ete4): `name`, `dist` and `support` of each node."""

from collections.abc import Sequence
from typing import Any

from vaiphy.interop.building import built, length_of, library, support_of
from vaiphy.trees.tree import Tree


def convert(trees: Tree | Sequence[Tree]) -> Any:
    """An `ete4.Tree`, or a list of them."""
    ete4 = library("ete4", "ete4")
    return _tree(ete4, trees) if isinstance(trees, Tree) else [_tree(ete4, tree) for tree in trees]


def _tree(ete4: Any, tree: Tree) -> Any:
    def node(vertex: int, children: Sequence[Any]) -> Any:
        known = {"name": tree.name(vertex), "dist": length_of(tree, vertex), "support": support_of(tree, vertex)}
        made = ete4.Tree({key: value for key, value in known.items() if value not in (None, "")})
        for child in children:
            made.add_child(child)
        return made

    return built(tree, node)
