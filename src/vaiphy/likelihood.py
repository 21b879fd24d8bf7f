"""Tree x site patterns -> log-likelihood, node marginals and optimal branch lengths.

Under JC69, or another model of `models.replacement`; `search.optimum` has all others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.kernels import edges, pruning
from vaiphy.kernels import schedule as schedules
from vaiphy.models.jc69 import JC69
from vaiphy.models.replacement import Replacement
from vaiphy.parallel import chunks, map_threads
from vaiphy.trees.tree import Tree


@dataclass(frozen=True)
class Schedule:
    """A rooted tree as the kernels read it: `order` (vertices with children, postorder), children of v in CSR form."""

    order: NDArray[np.int32]
    start: NDArray[np.int32]
    child: NDArray[np.int32]

    @property
    def root(self) -> int:
        return int(self.order[-1])


def schedule(parent: NDArray[np.int32], n_taxa: int, allow_dangling: bool = False) -> Schedule:
    """The schedule of a parent array whose first `n_taxa` vertices are observed.

    Internal vertices with no taxon at or below them are left out, or refused unless `allow_dangling`.
    """
    n_vertices = len(parent)
    order, start, child = (np.empty(size, dtype=np.int32) for size in (n_vertices, n_vertices + 1, n_vertices))
    n_order, n_dangling = schedules.from_parent(parent, n_taxa, order, start, child)
    if n_dangling and not allow_dangling:
        raise ValueError("the tree has internal vertices without any taxon behind them; remove them first")
    return Schedule(order[:n_order], start, child)


def log_likelihood(tree: Tree, patterns: SitePatterns, model: Replacement = JC69) -> float:
    """Log-likelihood of a tree with all its branch lengths known (units: expected substitutions per site).

    Vertices may have any number of children. A polytomy of more than a hundred branches should be given as one vertex, not
    as a chain of branches of length exactly zero: those are not rescaled state by state, and may lose the likelier state.
    """
    _check(tree, patterns)
    return float(log_likelihoods(tree.parent[None], tree.length[None], patterns, model=model)[0])


def log_likelihoods(
    parents: NDArray[np.int32],
    lengths: NDArray[np.float64],
    patterns: SitePatterns,
    threads: int = 1,
    model: Replacement = JC69,
) -> NDArray[np.float64]:
    """Log-likelihoods of many trees, given as rows of parent arrays (T, n_vertices) and lengths (T, n_vertices).

    Any root and any degrees, dangling internal vertices included (they contribute a factor of one).
    """
    n_trees, n_vertices = parents.shape
    result = np.empty(n_trees)
    tips, counts, n_taxa = patterns.tips, patterns.counts, patterns.n_taxa
    parents = np.ascontiguousarray(parents, dtype=np.int32)

    def run(part: slice) -> None:
        work = np.empty((n_vertices, 4, pruning.BLOCK))
        log_scale = np.empty(pruning.BLOCK)
        for i in range(part.start, part.stop):
            s = schedule(parents[i], n_taxa, allow_dangling=True)
            pending = np.full(n_vertices, -1, dtype=np.int64)
            us = model.decay(lengths[i])
            result[i] = pruning.log_likelihood(
                model.weights, s.order, s.start, s.child, us, tips, counts, work, log_scale, pending
            )

    map_threads(run, chunks(n_trees, 16), threads)
    return result


def node_marginals(tree: Tree, patterns: SitePatterns, model: Replacement = JC69) -> NDArray[np.float64]:
    """Posterior probabilities of the four bases at every vertex, (n_vertices, 4, n_patterns).

    Bases in the order A, C, G, T. A pattern that is impossible under the tree gives their frequencies.
    """
    terms = branch_terms(tree, patterns, model)
    pi = model.pi[:, None]
    marginals = pi * terms.below
    for vertex, _ in tree.edges():
        above, u = terms.above[vertex], model.decay(tree.length[vertex])
        marginals[vertex] *= u * above + (1.0 - u) * (pi * above).sum(axis=0)
    total = marginals.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, marginals / np.where(total > 0.0, total, 1.0), pi)


@dataclass(frozen=True)
class BranchTerms:
    """What `kernels.edges` knows of every branch: partials below and above it and the ratio that gives its likelihood."""

    below: NDArray[np.float64]
    above: NDArray[np.float64]
    ratio: NDArray[np.float64]


def branch_terms(tree: Tree, patterns: SitePatterns, model: Replacement = JC69) -> BranchTerms:
    """Per branch and pattern: the likelihood as a function of the branch's own u is proportional to 1 + u*ratio."""
    _check(tree, patterns)
    s = schedule(tree.parent, tree.n_taxa)
    us = model.decay(tree.length)
    us[tree.root] = 1.0
    below, above, ratio, stack, position = _workspace(tree.n_vertices, patterns.n_patterns)
    edges.fill_below(model, s.order, s.start, s.child, us, patterns.tips, below)
    edges.sweep(model, s.root, s.start, s.child, us, patterns.tips, patterns.counts, 0.0, 0, below, above, ratio, stack, position)
    ratio[s.root], above[s.root] = 0.0, 1.0
    return BranchTerms(below, above, ratio)


def optimise(
    tree: Tree,
    patterns: SitePatterns,
    prior_rate: float = 0.0,
    tolerance: float = 1e-5,
    max_sweeps: int = 100,
    model: Replacement = JC69,
) -> tuple[Tree, float]:
    """Maximum-likelihood (or, with a prior rate, maximum-posterior) branch lengths by coordinate Newton sweeps.

    Unknown lengths start at 0.05. Stops when a sweep gains less than `tolerance` log units. Returns
    the tree and its log-likelihood (without the prior).
    """
    _check(tree, patterns, lengths_known=False)
    length = np.where(np.isfinite(tree.length), tree.length, 0.05)
    s = schedule(tree.parent, tree.n_taxa)
    us = np.clip(model.decay(length), model.u_low, model.u_high)
    edges.optimise(
        model, s.order, s.start, s.child, us, patterns.tips, patterns.counts, prior_rate * model.spacing, tolerance, max_sweeps,
        *_workspace(tree.n_vertices, patterns.n_patterns),
    )  # fmt: skip
    length = model.length(us)
    length[s.root] = 0.0
    best = tree.with_lengths(length)
    return best, log_likelihood(best, patterns, model)


def _workspace(n_vertices: int, n_patterns: int) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    return (
        np.empty((n_vertices, 4, n_patterns)),
        np.empty((n_vertices, 4, n_patterns)),
        np.empty((n_vertices, n_patterns)),
        np.empty(n_vertices, dtype=np.int32),
        np.empty(n_vertices, dtype=np.int32),
    )


def _check(tree: Tree, patterns: SitePatterns, lengths_known: bool = True) -> None:
    if tree.taxa != patterns.taxa:
        raise ValueError("the tree's taxa are not the alignment's, in the same order")
    lengths = np.delete(tree.length, tree.root)
    if lengths_known and not np.isfinite(lengths).all():
        raise ValueError("the tree has branches without a length; give lengths, or optimise them")
    if (lengths[np.isfinite(lengths)] < 0).any():
        raise ValueError("the tree has a negative branch length")
