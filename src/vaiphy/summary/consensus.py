"""Trees that stand for a whole posterior: majority-rule and extended consensus, maximum clade credibility."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from vaiphy.trees.splits import SplitSample
from vaiphy.trees.tree import Split, Tree, TreeError, from_branches


def compatible(first: Split, second: Split) -> bool:
    """Whether two splits (sides without taxon 0) fit on one tree."""
    both = first & second
    return both in (0, first, second)


def extended_splits(splits: Iterable[Split], n_taxa: int, majority: Sequence[Split] = ()) -> list[Split]:
    """Greedy consensus: `majority` (splits that fit with each other), then each split, in the order given, that fits with
    all taken before it, until the tree is binary.
    """
    taken = list(majority)
    known = set(majority)
    for split in splits:
        if len(taken) >= n_taxa - 3:
            break
        if split not in known and all(compatible(split, other) for other in taken):
            taken.append(split)
    return taken


def maximum_credibility(sample: SplitSample) -> int:
    """The topology of the sample with the largest product of split supports; ties go to the more probable one.

    If some trees are not binary, the largest sum of supports: a product would favour trees with fewer splits.
    """
    binary = bool((sample.members >= 0).all())
    support = np.append(sample.support(), 0.0)  # the last entry serves the padding, -1
    value = np.log(np.maximum(support, 1e-300)) if binary else support
    score = value[sample.members].sum(axis=1)
    score[sample.topology_weights <= 0] = -np.inf
    return int(np.lexsort((sample.topology_weights, np.round(score, 9)))[-1])


def summary_tree(
    taxa: tuple[str, ...], splits: Sequence[Split], support: dict[Split, float], lengths: dict[Split, float]
) -> Tree:
    """The tree of compatible non-trivial splits with supports and lengths; taxa's own branches have no support."""
    everything = (1 << len(taxa)) - 1
    trivial = [everything ^ 1, *(1 << taxon for taxon in range(1, len(taxa)))]
    branches = [(split, lengths.get(split, np.nan), support[split]) for split in splits]
    return from_branches(taxa, branches + [(split, lengths.get(split, np.nan), np.nan) for split in trivial])


def rooted_at(tree: Tree, outgroup: Sequence[str]) -> Tree:
    """The unrooted tree with its root (a vertex, not a new one) on the ingroup's side of the outgroup's branch.

    Raises `TreeError` if a name is not a taxon or the outgroup is not a group of the tree.
    """
    unknown = [name for name in outgroup if name not in tree.taxa]
    if unknown:
        raise TreeError(f"the outgroup {', '.join(map(repr, unknown))} is not among the taxa")
    everything = (1 << tree.n_taxa) - 1
    group = sum(1 << tree.taxa.index(name) for name in set(outgroup))
    split = everything ^ group if group & 1 else group
    for vertex, found in enumerate(tree.splits):
        if found == split and vertex != tree.root:
            inside = tree.clades[vertex] == group
            return tree.rerooted(int(tree.parent[vertex]) if inside else vertex)
    raise TreeError("the outgroup is not a group of the tree (other taxa stand among its members)")


def named(tree: Tree, prefix: str = "Node") -> Tree:
    """The same tree with a name for each internal vertex: Node1 at the root, then in the order of a walk downwards."""
    labels = [""] * tree.n_vertices
    count, stack = 0, [tree.root]
    while stack:
        vertex = stack.pop()
        if vertex >= tree.n_taxa:
            count += 1
            labels[vertex] = f"{prefix}{count}"
        stack.extend(reversed(tree.children[vertex]))
    return replace(tree, labels=tuple(labels))


def ladderised(tree: Tree) -> Tree:
    """The same tree with its vertices renumbered so that, among siblings, smaller clades come first.

    Taxa keep their numbers; writers and drawings follow the order of `children`, where internal vertices come last.
    """
    size = [clade.bit_count() for clade in tree.clades]
    inner = range(tree.n_taxa, tree.n_vertices)
    order = sorted(inner, key=lambda v: (size[v], (tree.clades[v] & -tree.clades[v]).bit_length(), v))
    old = np.array(list(range(tree.n_taxa)) + order)
    new = np.empty(len(old), dtype=np.int64)
    new[old] = np.arange(len(old))
    parent = tree.parent[old]
    return Tree(
        tree.taxa,
        np.where(parent >= 0, new[parent], -1),
        tree.length[old],
        None if tree.labels is None else tuple(tree.labels[v] for v in old),
        None if tree.support is None else tree.support[old],
        None if tree.comments is None else tuple(tree.comments[v] for v in old),
    )
