"""Trees for DendroPy. The posterior probability of a branch is the annotation `posterior` of the node below it."""

from collections.abc import Sequence
from typing import Any

from vaiphy.interop.building import built, length_of, library, support_of
from vaiphy.trees.tree import Tree


def convert(trees: Tree | Sequence[Tree]) -> Any:
    """A `dendropy.Tree`, or a `dendropy.TreeList` for several trees on the same taxa."""
    dendropy = library("dendropy", "dendropy")
    if isinstance(trees, Tree):
        return _tree(dendropy, trees, dendropy.TaxonNamespace(trees.taxa))
    namespace = dendropy.TaxonNamespace(trees[0].taxa if trees else ())
    return dendropy.TreeList((_tree(dendropy, tree, namespace) for tree in trees), taxon_namespace=namespace)


def _tree(dendropy: Any, tree: Tree, namespace: Any) -> Any:
    def node(vertex: int, children: Sequence[Any]) -> Any:
        made = dendropy.Node(edge_length=length_of(tree, vertex))
        if vertex < tree.n_taxa:
            made.taxon = namespace[vertex]
        elif name := tree.name(vertex):
            made.label = name
        if (support := support_of(tree, vertex)) is not None:
            made.annotations.add_new("posterior", support)
        made.set_child_nodes(children)
        return made

    out = dendropy.Tree(seed_node=built(tree, node), taxon_namespace=namespace)
    out.is_rooted = False
    return out
