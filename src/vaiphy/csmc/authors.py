"""phi-CSMC as the paper's authors ran it, which is not quite what the paper describes.

Their SLANTIS returns the maximum spanning tree and nothing else, so all trees that mergers and branch lengths are learned from
are one tree. It is resolved to a binary tree before its splits are counted, mergers go by those counts plus 1e-10, three roots
are joined at once at the end, every subtree of m taxa has the prior 1/(2m-3)!!, and particles are resampled (multinomially) after
every rank but the last.

Done so, Z-hat is an unbiased estimate of the evidence of unrooted trees. Their program starts from a log-target of -log K
instead of 0, and its backward kernel takes the last step for certain where any of the n - 2 inner vertices could have been the
centre: its figures are higher by log K + log(n - 2), the `bias`.
"""

from dataclasses import dataclass
from math import log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches.law import LengthLaw
from vaiphy.csmc import forest as forests
from vaiphy.csmc.engine import Particles
from vaiphy.csmc.forest import CHUNK, Forest, taxon_hashes
from vaiphy.csmc.jc_mixture import mixture_lengths
from vaiphy.csmc.proposals import LengthProposal, Lengths, Merger, MergerProposal
from vaiphy.csmc.resampling import ancestors
from vaiphy.csmc.support import SupportMerger
from vaiphy.csmc.targets import Target
from vaiphy.csmc.unroot import rooted_arrays
from vaiphy.parallel import streams
from vaiphy.trees.augmented import AugmentedTrees
from vaiphy.trees.counts import log_n_rooted, log_n_unrooted
from vaiphy.trees.tree import Tree
from vaiphy.weights import effective_size, log_sum_exp

#: Added to the count of every merger.
FLOOR = 1e-10


class FittedTree(Protocol):
    """What is needed of a fitted VaiPhy distribution."""

    @property
    def length_law(self) -> LengthLaw: ...

    def most_probable_tree(self, contract_below: float | None = None) -> Tree: ...


@dataclass(frozen=True, eq=False)
class JoinThree:
    """Mergers and branch lengths of a forest that ends by joining three roots at once; no proposal for `engine.run`."""

    merger: MergerProposal
    lengths: LengthProposal


class AuthorsParticles(Particles):
    """Weighted trees and the evidence; `log_evidence` is without the bias of the authors' program."""

    @property
    def bias(self) -> float:
        """What the authors' program adds to the log evidence."""
        return bias(len(self.log_weights), self.patterns.n_taxa)

    @property
    def as_printed(self) -> float:
        """The figure that the authors' program would print."""
        return self.log_evidence + self.bias


def bias(n_particles: int, n_taxa: int) -> float:
    """log K + log(n - 2): by how much the authors' log evidence is too high.

    >>> round(bias(2048, 27), 2)
    10.84
    """
    return log(n_particles) + log(n_taxa - 2)


def authors_proposal(fit: FittedTree, floor: float = FLOOR) -> JoinThree:
    """Mergers by the splits of the one tree, lengths from JC mixtures over its labelled edges."""
    tree = fit.most_probable_tree()
    labelled = AugmentedTrees(tree.taxa, tree.parent[None].astype(np.int32), tree.length[None], np.zeros(1))
    hashes = resolved_clades(tree)
    return JoinThree(SupportMerger(hashes, np.ones(len(hashes)), floor), mixture_lengths(labelled, fit.length_law))


def resolved_clades(tree: Tree) -> NDArray[np.uint64]:
    """Hashes (ascending) of both sides of every split of the tree made binary.

    Where more than three branches meet, the subtrees are joined one after another in the order of their vertices.
    """
    taxa = taxon_hashes(tree.n_taxa)
    found = set(taxa.tolist())
    held: dict[int, int] = {}
    rooted = tree.rerooted(0)
    for vertex in rooted.postorder.tolist():
        below = [held[child] for child in sorted(rooted.children[vertex]) if held.get(child)]
        total = int(taxa[vertex]) if vertex < tree.n_taxa else 0
        for clade in below:
            total ^= clade
            found.add(total)
        held[vertex] = total
    everything = int(np.bitwise_xor.reduce(taxa))
    found |= {clade ^ everything for clade in found}
    return np.array(sorted(found - {0, everything}), dtype=np.uint64)


def run(
    patterns: SitePatterns,
    proposal: JoinThree,
    rng: np.random.Generator,
    n_particles: int = 2048,
    prior_rate: float = 10.0,
    resampling: str = "multinomial",
    threads: int = 1,
) -> AuthorsParticles:
    """One run over unrooted trees, n - 2 ranks; the last joins three roots."""
    n = patterns.n_taxa
    if n < 3:
        raise ValueError(f"at least 3 taxa are needed, there are {n}")
    target = Target("unrooted", prior_rate)
    forest = forests.begin(patterns.folded, n_particles, threads)
    chance, *pieces = streams(rng, 1 + -(-n_particles // CHUNK))
    log_evidence = float(forest.log_likelihood[:n].sum())
    ess, resampled = np.empty(n - 2), np.zeros(n - 2, dtype=bool)
    ancestry = np.tile(np.arange(n_particles), (n - 2, 1))
    for rank in range(n - 2):
        last = rank == n - 3
        log_weights = _join(forest, proposal, target, pieces) if last else _merge(forest, proposal, target, pieces)
        np.nan_to_num(log_weights, copy=False, nan=-np.inf, neginf=-np.inf)
        if not np.isfinite(log_weights).any():
            raise ArithmeticError("every particle has weight zero: the data are impossible under all trees proposed")
        total = log_sum_exp(log_weights)
        log_evidence += total - log(n_particles)
        weights = np.exp(log_weights - total)
        ess[rank] = effective_size(weights)
        if not last:
            resampled[rank] = True
            ancestry[rank] = ancestors(resampling, weights, chance)
            forests.resample(forest, ancestry[rank])
    children, lengths = rooted_arrays(forest)
    return AuthorsParticles(
        patterns, target, log_evidence, log_weights - total, children, lengths,
        forest.log_likelihood[forest.roots[:, 0]], ess, resampled, ancestry,
    )  # fmt: skip


def _merge(forest: Forest, proposal: JoinThree, target: Target, pieces: list[np.random.Generator]) -> NDArray[np.float64]:
    """Merge two roots of every particle; the log-weights."""
    merger = proposal.merger.choose(forest, target, pieces)
    drawn = proposal.lengths.propose(forest, target, merger, pieces)
    gain = _merged(forest, merger, drawn.lengths) + target.log_length_prior(drawn.lengths, False)
    gain -= np.log((forest.size[forest.roots] >= 2).sum(axis=1))
    return gain - merger.log_q - drawn.log_q


def _join(forest: Forest, proposal: JoinThree, target: Target, pieces: list[np.random.Generator]) -> NDArray[np.float64]:
    """Join the last three roots; the log-weights. The third branch is drawn by itself."""
    n, n_particles = forest.n_taxa, forest.n_particles
    zero, one = np.zeros(n_particles, dtype=np.int64), np.ones(n_particles, dtype=np.int64)
    pair = Merger(zero, one, np.zeros(n_particles))
    drawn = proposal.lengths.propose(forest, target, pair, pieces)
    third = _single(forest, proposal, target, pieces)
    gain = _merged(forest, pair, drawn.lengths) + target.log_length_prior(drawn.lengths, False)
    # The merger has put the new vertex into column 0 and left the third root in column 1: one branch between them.
    branch = np.stack([np.zeros(n_particles), third.lengths[:, 0]], axis=1)
    gain += _merged(forest, pair, branch) + target.log_length_prior(third.lengths, True)
    # `_merged` gave the whole tree the prior of rooted topologies; any of the n - 2 inner vertices may have been the centre.
    gain += log_n_rooted(n) - log_n_unrooted(n) - log(n - 2)
    return gain - drawn.log_q - third.log_q


def _single(forest: Forest, proposal: JoinThree, target: Target, pieces: list[np.random.Generator]) -> Lengths:
    """A length for the branch to the third root, as the last single branch of an unrooted tree is drawn."""
    n_particles = forest.n_particles
    alone = Forest(**{**vars(forest), "roots": np.ascontiguousarray(forest.roots[:, [2, 2]])})
    zero, one = np.zeros(n_particles, dtype=np.int64), np.ones(n_particles, dtype=np.int64)
    return proposal.lengths.propose(alone, target, Merger(zero, one, np.zeros(n_particles)), pieces)


def _merged(forest: Forest, merger: Merger, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Merge; the gain in log-likelihood and in the topology prior 1/(2m-3)!! of the subtrees."""
    a, b = forests.pair(forest, merger.first, merger.second)
    rooted = np.array([0.0, *(log_n_rooted(m) for m in range(1, forest.n_taxa + 1))])
    before = forest.log_likelihood[a] + forest.log_likelihood[b] - rooted[forest.size[a]] - rooted[forest.size[b]]
    forests.merge_roots(forest, merger.first, merger.second, lengths)
    newest = forests.newest(forest)
    return forest.log_likelihood[newest] - rooted[forest.size[newest]] - before
