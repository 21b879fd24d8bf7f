"""Random trees and alignments from the model: uniform topologies, exponential branch lengths, sequences of any model."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment
from vaiphy.alphabets import DNA
from vaiphy.errors import InputError
from vaiphy.models.arrays import transition
from vaiphy.models.jc69 import JC69
from vaiphy.models.substitution import Model
from vaiphy.trees.tree import Tree, TreeError

#: How often as many characters as wanted are drawn until enough of them vary.
MAX_ROUNDS = 1000


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


def random_alignment(
    tree: Tree,
    n_sites: int,
    rng: np.random.Generator,
    missing: float = 0.0,
    model: Model | None = None,
    z: NDArray[np.float64] | None = None,
) -> Alignment:
    """Sequences that evolved along a tree; each site of each taxon is then lost with probability `missing`.

    Under JC69 unless a `model` is given, with its free parameters at z (d,). With +ASC no character is constant.
    """
    lengths = np.delete(tree.length, tree.root)
    if not np.isfinite(lengths).all() or (lengths < 0).any():
        raise TreeError("to simulate along a tree every branch needs a length, zero or more")
    if n_sites < 1:
        raise InputError(f"{n_sites} sites; there must be at least 1")
    alphabet = DNA if model is None else model.alphabet
    if model is None or (model.name == "JC" and alphabet.is_nucleotides):
        states = _jc69_states(tree, n_sites, rng)
    elif model.ascertained:
        states = _variable_states(tree, n_sites, model, _point(model, z), rng)
    else:
        states = _states(tree, n_sites, model, _point(model, z), rng)
    sites = (alphabet.dtype.type(1) << states).astype(alphabet.dtype)
    sites[rng.random(sites.shape) < missing] = alphabet.everything
    return Alignment(tree.taxa, sites, source="simulated", alphabet=alphabet)


def _point(model: Model, z: NDArray[np.float64] | None) -> NDArray[np.float64]:
    if z is None and model.n_parameters:
        raise InputError(f"model '{model.name}': it has free parameters; give their values")
    return np.zeros(0) if z is None else np.asarray(z, dtype=np.float64)


def _jc69_states(tree: Tree, n_sites: int, rng: np.random.Generator) -> NDArray[np.uint8]:
    """States of the taxa under JC69: along a branch of length b a base is kept with probability u(b) = exp(-4b/3) and else
    drawn anew from all four."""
    states: NDArray[np.uint8] = np.empty((tree.n_vertices, n_sites), dtype=np.uint8)
    for vertex in tree.postorder[::-1].tolist():
        states[vertex] = rng.integers(4, size=n_sites)
        if vertex != tree.root:
            kept = rng.random(n_sites) < JC69.decay(tree.length[vertex])
            states[vertex, kept] = states[tree.parent[vertex], kept]
    return states[: tree.n_taxa]


def _states(tree: Tree, n_sites: int, model: Model, z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint8]:
    """States of the taxa under any model: each site has a rate category, or is invariable."""
    arrays = model.arrays(z[None, :])
    shares = np.cumsum([*arrays.weights[0], arrays.p_inv[0]])
    category = np.searchsorted(shares / shares[-1], rng.random(n_sites), side="right")
    variable = category < model.n_categories
    states: NDArray[np.uint8] = np.empty((tree.n_vertices, n_sites), dtype=np.uint8)
    states[tree.root] = _drawn(np.cumsum(arrays.pi[0])[None, :].repeat(n_sites, axis=0), rng)
    for vertex in tree.postorder[::-1].tolist():
        if vertex == tree.root:
            continue
        above = states[tree.parent[vertex]]
        states[vertex] = above
        chances = np.cumsum(transition(arrays, float(tree.length[vertex])), axis=2)
        states[vertex, variable] = _drawn(chances[category[variable], above[variable]], rng)
    return states[: tree.n_taxa]


def _drawn(cumulative: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One state for each row of cumulative probabilities (n, S)."""
    heights = rng.random(len(cumulative)) * cumulative[:, -1]
    return np.minimum((cumulative <= heights[:, None]).sum(axis=1), cumulative.shape[1] - 1)


def _variable_states(
    tree: Tree, n_sites: int, model: Model, z: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Only characters that vary: others are thrown away."""
    kept: list[NDArray[np.uint8]] = []
    found = 0
    for _ in range(MAX_ROUNDS):
        states = _states(tree, max(n_sites, 1000), model, z, rng)
        kept.append(states[:, (states != states[0]).any(axis=0)])
        found += kept[-1].shape[1]
        if found >= n_sites:
            return np.concatenate(kept, axis=1)[:, :n_sites]
    raise InputError(f"only {found} variable characters in {MAX_ROUNDS} attempts; the branches are too short for +ASC")
