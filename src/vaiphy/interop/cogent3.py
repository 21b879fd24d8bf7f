"""Trees for cogent3: `name`, `length` and `support` of each node."""

from collections.abc import Sequence
from typing import Any

from vaiphy.interop.building import built, length_of, library, support_of
from vaiphy.trees.tree import Tree


def convert(trees: Tree | Sequence[Tree]) -> Any:
    """A `cogent3.PhyloNode`, or a list of them."""
    core = library("cogent3.core.tree", "cogent3")
    return _tree(core, trees) if isinstance(trees, Tree) else [_tree(core, tree) for tree in trees]


def _tree(core: Any, tree: Tree) -> Any:
    def node(vertex: int, children: Sequence[Any]) -> Any:
        # cogent3 finds nodes by name, so each must have one of its own.
        name = tree.name(vertex) or ("root" if vertex == tree.root else f"edge.{vertex - tree.n_taxa}")
        return core.PhyloNode(name, list(children), length=length_of(tree, vertex), support=support_of(tree, vertex))

    return built(tree, node)
