"""Trees for Biopython's `Bio.Phylo`: `name`, `branch_length` and `confidence` of each clade."""

from collections.abc import Sequence
from typing import Any

from vaiphy.interop.building import built, length_of, library, support_of
from vaiphy.trees.tree import Tree


def convert(trees: Tree | Sequence[Tree]) -> Any:
    """A `Bio.Phylo.BaseTree.Tree`, or a list of them."""
    base = library("Bio.Phylo.BaseTree", "biopython")
    return _tree(base, trees) if isinstance(trees, Tree) else [_tree(base, tree) for tree in trees]


def _tree(base: Any, tree: Tree) -> Any:
    def node(vertex: int, children: Sequence[Any]) -> Any:
        return base.Clade(
            branch_length=length_of(tree, vertex),
            name=tree.name(vertex) or None,
            clades=list(children),
            confidence=support_of(tree, vertex),
        )

    return base.Tree(root=built(tree, node), rooted=False)
