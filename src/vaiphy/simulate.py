"""Random trees and alignments from the model: uniform topologies, exponential branch lengths, JC69 sequences."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import MISSING, Alignment
from vaiphy.errors import InputError
from vaiphy.model import decay
from vaiphy.tree import Tree, TreeError


def taxon_names(n_taxa: int) -> tuple[str, ...]:
    """t1, t2, ... with leading zeros, so that they sort in order."""
    width = len(str(n_taxa))
    return tuple(f"t{k:0{width}}" for k in range(1, n_taxa + 1))


def random_tree(taxa: tuple[str, ...], rng: np.random.Generator, rate: float = 10.0) -> Tree:
    """An unrooted binary tree from the prior: uniform topology, independent Exp(rate) branch lengths.

    Taxa are added one by one, each to a uniformly chosen branch, which reaches each of the (2n - 5)!! topologies by
    exactly one sequence of choices.
    """
    n = len(taxa)
    if n < 3:
        raise InputError(f"{n} taxa; an unrooted tree needs at least 3")
    parent = np.full(2 * n - 2, -1, dtype=np.int32)
    parent[:3] = n
    branches = [0, 1, 2]  # a branch is known by the vertex below it
    for taxon in range(3, n):
        below = branches[int(rng.integers(len(branches)))]
        joint = n + taxon - 2
        parent[joint], parent[below], parent[taxon] = parent[below], joint, joint
        branches += [taxon, joint]
    length = rng.exponential(1.0 / rate, size=2 * n - 2)
    length[n] = 0.0
    return Tree(taxa, parent, length)


def random_alignment(tree: Tree, n_sites: int, rng: np.random.Generator, missing: float = 0.0) -> Alignment:
    """Sequences that evolved along a tree under JC69; each site of each taxon is then lost with probability `missing`.

    Along a branch of length b a base is kept with probability u(b) = exp(-4b/3) and else drawn anew from all four.
    """
    lengths = np.delete(tree.length, tree.root)
    if not np.isfinite(lengths).all() or (lengths < 0).any():
        raise TreeError("to simulate along a tree every branch needs a length, zero or more")
    if n_sites < 1:
        raise InputError(f"{n_sites} sites; there must be at least 1")
    states: NDArray[np.uint8] = np.empty((tree.n_vertices, n_sites), dtype=np.uint8)
    for vertex in tree.postorder[::-1].tolist():
        states[vertex] = rng.integers(4, size=n_sites)
        if vertex != tree.root:
            kept = rng.random(n_sites) < decay(tree.length[vertex])
            states[vertex, kept] = states[tree.parent[vertex], kept]
    sites = (1 << states[: tree.n_taxa]).astype(np.uint8)
    sites[rng.random(sites.shape) < missing] = MISSING
    return Alignment(tree.taxa, sites, source="simulated")
