"""phi-CSMC's merger proposal (paper, appendix D.2): support of splits in trees sampled from the fitted distribution.

Two subtrees are merged with probability proportional to the likelihood-weighted share of sampled trees in which a branch
separates exactly their taxa from the rest, plus a floor that keeps every merger possible. Likelihoods differ by hundreds of log
units, so that at temperature 1 (the paper's) the best tree has all the weight; `power` < 1 softens them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc.forest import CHUNK, Forest, taxon_hashes
from vaiphy.csmc.proposals import Merger, Streams
from vaiphy.csmc.targets import Backward, Target
from vaiphy.kernels import support as kernels
from vaiphy.parallel import chunks, map_threads
from vaiphy.trees.augmented import AugmentedTrees


@dataclass(frozen=True, eq=False)
class SupportMerger:
    """Clades by hash (ascending) with their support, from 0 to 1, and the floor added to every pair's."""

    hashes: NDArray[np.uint64]
    support: NDArray[np.float64]
    floor: float = 1e-4
    backward: Backward = "uniform"

    def __post_init__(self) -> None:
        if not self.floor > 0:
            raise ValueError("the floor must be positive: without it some trees can never be proposed")

    def choose(self, forest: Forest, target: Target, streams: Streams) -> Merger:
        n_particles = forest.n_particles
        first, second = np.empty(n_particles, dtype=np.int64), np.empty(n_particles, dtype=np.int64)
        log_q = np.empty(n_particles)
        parts = chunks(n_particles, CHUNK)

        def work(piece: int) -> None:
            part = parts[piece]
            kernels.choose_supported(
                streams[piece], forest.roots[part], forest.clade_hash, self.hashes, self.support, self.floor,
                first[part], second[part], log_q[part],
            )  # fmt: skip

        map_threads(work, list(range(len(parts))), forest.threads)
        return Merger(first, second, log_q)


def support_merger(
    trees: AugmentedTrees, log_likelihoods: NDArray[np.float64], power: float = 1.0, floor: float = 1e-4
) -> SupportMerger:
    """The merger proposal of trees sampled from the fitted distribution, each weighted by its likelihood to the given power."""
    taxa = taxon_hashes(len(trees.taxa))
    below = np.empty(trees.parents.shape, dtype=np.uint64)
    kernels.clades_of_parents(trees.parents, taxa, below)
    weights = np.exp(power * (log_likelihoods - log_likelihoods.max()))
    weights /= weights.sum()
    everything = np.bitwise_xor.reduce(taxa)
    # Both sides of a branch; the root may be on either. A tree counts once for a clade, however many branches separate it.
    hashes = np.sort(np.concatenate([below, below ^ everything], axis=1), axis=1)
    fresh = np.ones(hashes.shape, dtype=bool)
    fresh[:, 1:] = hashes[:, 1:] != hashes[:, :-1]
    tree, _ = np.nonzero(fresh)
    clades, number = np.unique(hashes[fresh], return_inverse=True)
    support = np.bincount(number.ravel(), weights=weights[tree], minlength=len(clades)).astype(np.float64)
    return SupportMerger(clades, support, floor)
