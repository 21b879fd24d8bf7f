"""What log Z-hat estimates: two targets over trees, and the backward kernels that make every merge order count once.

*Rooted* (the paper's): uniform over the (2n-3)!! rooted binary topologies, 2n-2 branches with an exponential prior.
*Unrooted* (comparable with MrBayes and VBPI): uniform over the (2n-5)!! unrooted ones, 2n-3 branches; the last step joins
the last two subtrees by one branch.

A topology is reached by many orders of mergers, so the target is spread over them by a backward kernel, the probability
that a given merger was the last:

*uniform*: over the subtrees with two or more taxa; for the unrooted last step over the 2n-3 branches.
*ordered*: certainly the one that comes last when mergers are made in a fixed order of preference; valid only with a
merger proposal that keeps to that order, and then every tree is reached by one path. Its unrooted last step joins taxon 0.
"""

from dataclasses import dataclass, field
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.csmc.forest import Forest
from vaiphy.models.jc69 import JC69
from vaiphy.models.replacement import Replacement
from vaiphy.target import SimpleTarget
from vaiphy.trees.counts import log_n_rooted, log_n_unrooted

Kind = Literal["rooted", "unrooted"]
Backward = Literal["uniform", "ordered"]


@dataclass(frozen=True)
class Target:
    """A posterior over trees, up to its normalising constant: the evidence. `model_name` is what people call the model."""

    kind: Kind
    prior_rate: float = 10.0
    model: Replacement = field(default=JC69, compare=False)
    model_name: str = "JC69"

    def __post_init__(self) -> None:
        if self.kind not in ("rooted", "unrooted"):
            raise ValueError(f"target {self.kind!r} is neither 'rooted' nor 'unrooted'")
        if not self.prior_rate > 0:
            raise ValueError(f"the prior rate of branch lengths must be positive, not {self.prior_rate}")

    @property
    def rooted(self) -> bool:
        return self.kind == "rooted"

    def statement(self, n_taxa: int) -> str:
        """What the evidence is the evidence of, for people."""
        branches = 2 * n_taxa - 2 if self.rooted else 2 * n_taxa - 3
        return (
            f"log marginal likelihood under {self.model_name}, uniform prior over {self.kind} binary topologies, "
            f"{branches} branch lengths with an Exp({self.prior_rate:g}) prior"
        )

    def data(self, patterns: SitePatterns) -> SitePatterns:
        """The patterns that the model can tell apart."""
        return patterns.folded if self.model.exchangeable else patterns

    def for_search(self, patterns: SitePatterns) -> SimpleTarget:
        """What trees are judged by before there are particles: unrooted trees with the same model and prior."""
        return SimpleTarget(self.data(patterns), self.model, self.prior_rate)

    def log_topology_prior(self, n_taxa: int) -> float:
        return -(log_n_rooted(n_taxa) if self.rooted else log_n_unrooted(n_taxa))

    def log_length_prior(self, lengths: NDArray[np.float64], last: bool) -> NDArray[np.float64]:
        """Log prior density of the branches of one merger per particle, (K, 2); the unrooted last merger has one branch."""
        used = lengths[:, :1] if last and not self.rooted else lengths
        return used.shape[1] * log(self.prior_rate) - self.prior_rate * used.sum(axis=1)


def log_backward(kernel: Backward, target: Target, forest: Forest) -> NDArray[np.float64]:
    """Log probability, under the backward kernel, that the merger just made is the one undone first; (K,)."""
    n_particles = forest.n_particles
    if kernel == "ordered":
        return np.zeros(n_particles)
    if forest.n_roots == 1:
        return np.full(n_particles, 0.0 if target.rooted else -log(2 * forest.n_taxa - 3))
    return -np.log((forest.size[forest.roots] >= 2).sum(axis=1))
