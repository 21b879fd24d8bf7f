"""Ancestral states averaged over the posterior, matched between trees by clade.

An internal vertex of an unrooted tree is known by the taxa behind it, as seen from a reference taxon. Its states are
averaged over the sampled trees that have a vertex with the same taxa behind it: they are conditional on the clade.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.likelihood import node_marginals
from vaiphy.parallel import map_threads
from vaiphy.summary.marginals import sample_marginals
from vaiphy.target import Target
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Split, Tree
from vaiphy.weights import systematic

#: How many equal-weight trees the states are averaged over.
N_TREES = 100

Marginals = Callable[[Tree, SitePatterns], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class AncestralStates:
    """Probabilities of the states (A, C, G, T, ...) at named vertices, (n_nodes, S, n_patterns); trees that have each clade."""

    names: tuple[str, ...]
    probability: NDArray[np.float64]
    n_trees: NDArray[np.int64]
    n_trees_used: int
    site_pattern: NDArray[np.int64]
    states: str = "ACGT"


def ancestral_states(
    sample: TreeSample,
    patterns: SitePatterns,
    tree: Tree,
    reference: int = 0,
    n_trees: int = N_TREES,
    threads: int = 1,
    marginals: Marginals = node_marginals,
    target: Target | None = None,
) -> AncestralStates:
    """States at the internal vertices of `tree` (which needs names), by clade as seen from taxon `reference`.

    With a `target` (made with fold=False) under its model and each tree's own parameters, else under JC69. A clade that none of
    the `n_trees` trees has gets equal probabilities for all states and the count 0.
    """
    n_states = patterns.alphabet.n_states
    clades = _clades_from(tree, reference)
    vertices = range(tree.n_taxa, tree.n_vertices)
    place = {clades[v]: k for k, v in enumerate(vertices)}
    picked, times = np.unique(systematic(sample.weights, n_trees, 0.5), return_counts=True)
    total = np.zeros((len(vertices), n_states, patterns.n_patterns))
    count = np.zeros(len(vertices), dtype=np.int64)

    def states(index: int) -> tuple[Tree, NDArray[np.float64]]:
        drawn = sample.tree(index)
        if target is None:
            return drawn, marginals(drawn, patterns)[drawn.n_taxa :]
        return drawn, sample_marginals(sample, index, target)

    for start in range(0, len(picked), 8):  # few at a time: a tree's marginals are large
        part = slice(start, start + 8)
        for (drawn, values), repeat in zip(map_threads(states, picked[part].tolist(), threads), times[part]):
            for vertex, clade in enumerate(_clades_from(drawn, reference)):
                k = place.get(clade)
                if k is not None and vertex >= drawn.n_taxa:
                    own = values[vertex - drawn.n_taxa]
                    total[k, : len(own)] += repeat * own
                    count[k] += repeat
    probability = np.where(count[:, None, None] > 0, total / np.maximum(count, 1)[:, None, None], 1.0 / n_states)
    names = tuple(tree.name(v) for v in vertices)
    return AncestralStates(names, probability, count, n_trees, patterns.site_pattern, patterns.alphabet.states)


def _clades_from(tree: Tree, reference: int) -> list[Split]:
    """The taxa behind each vertex, as seen from taxon `reference`."""
    everything = (1 << tree.n_taxa) - 1
    seen = list(tree.clades)
    path = reference
    while tree.parent[path] >= 0:
        # The branch above `path` is looked at from below: behind its upper end is everything not behind its lower end.
        above = int(tree.parent[path])
        seen[above] = everything ^ tree.clades[path]
        path = above
    return seen
