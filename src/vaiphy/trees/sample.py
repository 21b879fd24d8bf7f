"""Weighted samples of unrooted binary trees: what the samplers hand to everything that summarises or writes trees.

A topology is stored once, as "binary arrays": internal vertex n + k has the two children `children[k]`, both smaller
than n + k, so ascending order is a postorder; the last vertex, 2n - 3, is the child of leaf 0, which is the root.
`lengths[v]` is the branch above vertex v in expected substitutions per site; `lengths[0]` is unused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.trees.tree import Tree, TreeError
from vaiphy.weights import effective_size, log_normalised, systematic

#: Marks columns of parameters among the arrays of a sample.
PARAMETER = "parameter "


@dataclass(frozen=True, eq=False)
class TreeSample:
    """Weighted trees over `taxa`.

    `children` (n_topologies, n-2, 2) int32: the distinct topologies; `topology` (n_samples,) int32: which of them each
    sample has; `lengths` (n_samples, 2n-2) float64; `log_weights` (n_samples,): normalised, so that their logsumexp
    is 0; `replicate` (n_samples,) int32: the independent run each sample comes from, counted from 0. If samples are
    weighed under the mixture of all replicates' proposals, `replicate_log_weights` holds their log-weights under the
    proposal of their own replicate alone (up to a constant in each replicate): a replicate by itself is judged by those.
    `parameters`: columns of model parameters by name, one entry for each sample; `z` (n_samples, d): the same as a sampler's
    unconstrained vector (`target`), from which models are made again; None where the model has none to record.
    """

    taxa: tuple[str, ...]
    children: NDArray[np.int32]
    topology: NDArray[np.int32]
    lengths: NDArray[np.float64]
    log_weights: NDArray[np.float64]
    replicate: NDArray[np.int32]
    replicate_log_weights: NDArray[np.float64] | None = None
    parameters: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    z: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        n, samples = len(self.taxa), len(self.topology)
        if self.children.ndim != 3 or self.children.shape[1:] != (n - 2, 2):
            raise TreeError(f"children has the shape {self.children.shape}, expected (n_topologies, {n - 2}, 2)")
        if self.lengths.shape != (samples, 2 * n - 2):
            raise TreeError(f"lengths has the shape {self.lengths.shape}, expected ({samples}, {2 * n - 2})")
        own = self.log_weights if self.replicate_log_weights is None else self.replicate_log_weights
        if {self.log_weights.shape, self.replicate.shape, own.shape} != {(samples,)}:
            raise TreeError("log_weights, replicate and replicate_log_weights need one entry for each sample")
        if any(column.shape != (samples,) for column in self.parameters.values()):
            raise TreeError("each parameter needs one entry for each sample")
        if self.z is not None and (self.z.ndim != 2 or len(self.z) != samples):
            raise TreeError(f"z has the shape {self.z.shape}, expected ({samples}, number of parameters)")

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_samples(self) -> int:
        return len(self.topology)

    @property
    def n_topologies(self) -> int:
        return len(self.children)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Normalised weights, summing to one."""
        weights = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.sum()

    @cached_property
    def replicate_weights(self) -> NDArray[np.float64]:
        """Weights that sum to one within each replicate, by the replicate's own proposal where that is known."""
        own = self.log_weights if self.replicate_log_weights is None else self.replicate_log_weights
        weights = np.empty(self.n_samples)
        for r in np.unique(self.replicate):
            chosen = self.replicate == r
            weights[chosen] = np.exp(log_normalised(own[chosen]))
        return weights

    @property
    def effective_size(self) -> float:
        """Kish's effective sample size, 1 / sum of squared normalised weights."""
        return effective_size(self.weights)

    @cached_property
    def parents(self) -> NDArray[np.int32]:
        """The parent of each vertex in each distinct topology, shape (n_topologies, 2n-2); -1 at leaf 0, the root."""
        return parents_of(self.children)

    def tree(self, sample: int) -> Tree:
        """One sampled tree, rooted at leaf 0."""
        return Tree(self.taxa, self.parents[self.topology[sample]], self.lengths[sample])

    def of_replicate(self, replicate: int) -> "TreeSample":
        """The samples of one replicate, weighed as that replicate alone would."""
        chosen = np.flatnonzero(self.replicate == replicate)
        own = self.log_weights if self.replicate_log_weights is None else self.replicate_log_weights
        return self.select(chosen, log_normalised(own[chosen]))

    def select(self, samples: NDArray[np.int64], log_weights: NDArray[np.float64] | None = None) -> "TreeSample":
        """The samples listed (repeats allowed), with equal weights unless `log_weights` are given."""
        if log_weights is None:
            log_weights = np.full(len(samples), -np.log(max(1, len(samples))))
        kept, topology = np.unique(self.topology[samples], return_inverse=True)
        return TreeSample(
            self.taxa,
            self.children[kept],
            topology.astype(np.int32).ravel(),
            self.lengths[samples],
            log_weights,
            self.replicate[samples],
            parameters={name: column[samples] for name, column in self.parameters.items()},
            z=None if self.z is None else self.z[samples],
        )

    def to_arrays(self) -> dict[str, NDArray]:
        """Everything but the taxa, for `from_arrays`."""
        names = ("children", "topology", "lengths", "log_weights", "replicate", "replicate_log_weights", "z")
        arrays = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return arrays | {PARAMETER + name: column for name, column in self.parameters.items()}

    @classmethod
    def from_arrays(cls, taxa: tuple[str, ...], arrays: dict[str, NDArray]) -> "TreeSample":
        own = {name: array for name, array in arrays.items() if not name.startswith(PARAMETER)}
        parameters = {name.removeprefix(PARAMETER): array for name, array in arrays.items() if name.startswith(PARAMETER)}
        return cls(taxa, **own, parameters=parameters)


def parents_of(children: NDArray[np.int32]) -> NDArray[np.int32]:
    """Parent arrays (..., 2n-2) of topologies given as binary arrays (..., n-2, 2)."""
    n = children.shape[-2] + 2
    flat = children.reshape(-1, n - 2, 2)
    parents = np.full((len(flat), 2 * n - 2), -1, dtype=np.int32)
    parents[:, 2 * n - 3] = 0
    rows = np.arange(len(flat))[:, None]
    above = np.arange(n, 2 * n - 2, dtype=np.int32)[None, :]
    for side in range(2):
        parents[rows, flat[:, :, side]] = above
    return parents.reshape(*children.shape[:-2], 2 * n - 2)


def binary_arrays(tree: Tree) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """`children` (n-2, 2) and `lengths` (2n-2,) of an unrooted binary tree, whatever its root."""
    if not tree.is_binary:
        raise TreeError("the tree is not an unrooted binary tree (a root of degree two must be suppressed first)")
    n = tree.n_taxa
    rooted = tree.rerooted(0)
    number = {v: v for v in range(n)}
    children = np.empty((n - 2, 2), dtype=np.int32)
    lengths = np.zeros(2 * n - 2)
    for vertex in rooted.postorder.tolist():
        if vertex >= n:
            number[vertex] = len(number)
            children[number[vertex] - n] = [number[below] for below in rooted.children[vertex]]
        if vertex != 0:
            lengths[number[vertex]] = rooted.length[vertex]
    return children, lengths


def equal_draws(sample: TreeSample, size: int) -> NDArray[np.int64]:
    """Which samples, repeats among them, stand as `size` trees of equal weight for the weighted sample.

    Systematic resampling along the topologies and, within one, along the tree length: each topology occurs as often as its
    probability says, give or take one tree. The order of the trees is then mixed, since other programs read a tree file
    as a chain. The same sample always gives the same trees.
    """
    order = np.lexsort((sample.lengths[:, 1:].sum(axis=1), sample.topology))
    chosen = order[systematic(sample.weights[order], size, 0.5)]
    return np.random.default_rng(0).permutation(chosen)


def equal_weights(sample: TreeSample, size: int) -> TreeSample:
    """`size` trees of equal weight that stand for the weighted sample (`equal_draws`)."""
    return sample.select(equal_draws(sample, size))
