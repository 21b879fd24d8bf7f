"""Probabilities of the states at the internal vertices of sampled trees, each under its own model parameters."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import marginals
from vaiphy.kernels.layout import PATTERNS, TIP_AT
from vaiphy.target import Target
from vaiphy.trees.sample import TreeSample


def sample_marginals(sample: TreeSample, index: int, target: Target) -> NDArray[np.float64]:
    """(n_taxa - 2, S, P): states of the vertices n_taxa, n_taxa + 1, ... of one sampled tree, S the most states of any part.

    P are the patterns of the alignment, which the parts of `target` must know (`target_of(..., fold=False)`). Rate categories
    and invariable sites are averaged with their posterior weights.
    """
    n = sample.n_taxa
    children = sample.children[sample.topology[index]].astype(np.int64)[None]
    z = np.zeros((1, target.n_parameters)) if sample.z is None else sample.z[index : index + 1]
    layout = target.data.layout
    rows = np.empty((1, n - 2, target.data.tips.shape[1]))
    point, top = np.zeros(1, dtype=np.int64), np.array([2 * n - 3])
    marginals.node_marginals(target.family(z), point, target.data, children, sample.lengths[index][None], top, rows)
    out = np.zeros((n - 2, max(part.model.n_states for part in target.parts), target.n_patterns))
    for k, part in enumerate(target.parts):
        n_states, width = part.model.n_states, int(layout[PATTERNS, k])
        own = rows[0, :, layout[TIP_AT, k] : layout[TIP_AT, k + 1]].reshape(n - 2, n_states, width)
        if part.patterns is None:
            raise ValueError("patterns were merged: the target must be made with fold=False")
        out[:, :n_states, part.patterns[part.order]] = own[:, :, : len(part.counts)]
    return out
