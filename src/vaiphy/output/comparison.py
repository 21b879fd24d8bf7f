"""Two posteriors side by side: what differs, and by how much."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.summary.posterior import Posterior
from vaiphy.trees.tree import Split
from vaiphy.weights import ASDSF_MINIMUM, asdsf

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Supports of every non-trivial split in two posteriors, by falling difference, and figures made of them.

    `asdsf` is between the two, over splits of at least 0.1 in one of them. `expected_rf` is the mean Robinson-Foulds distance
    of a tree of the first and a tree of the second, `within` that of two trees of the same posterior. `overlap` is the
    probability that the two share over topologies, 1 - total variation.
    """

    splits: tuple[Split, ...]
    first: Floats
    second: Floats
    asdsf: float
    consensus_rf: int
    credible_rf: int
    expected_rf: float
    within: tuple[float, float]
    overlap: float

    @property
    def difference(self) -> Floats:
        return np.abs(self.first - self.second)

    @property
    def maximum(self) -> float:
        return float(self.difference.max(initial=0.0))


def compare(first: Posterior, second: Posterior) -> Comparison:
    """Compare two posteriors on the same taxa in the same order."""
    one = dict(zip(first.splits.splits[first.splits.n_trivial :], first.splits.support[first.splits.n_trivial :].tolist()))
    two = dict(zip(second.splits.splits[second.splits.n_trivial :], second.splits.support[second.splits.n_trivial :].tolist()))
    splits = sorted(one.keys() | two.keys(), key=lambda s: (-abs(one.get(s, 0.0) - two.get(s, 0.0)), s))
    p = np.array([one.get(s, 0.0) for s in splits])
    q = np.array([two.get(s, 0.0) for s in splits])
    here = dict(zip(first.topologies.topologies, first.topologies.probability.tolist()))
    there = dict(zip(second.topologies.topologies, second.topologies.probability.tolist()))
    return Comparison(
        tuple(splits),
        p,
        q,
        asdsf(np.stack([p, q]), ASDSF_MINIMUM),
        len(first.majority.topology ^ second.majority.topology),
        len(first.credible.topology ^ second.credible.topology),
        float((p * (1 - q) + q * (1 - p)).sum()),
        (float((2 * p * (1 - p)).sum()), float((2 * q * (1 - q)).sum())),
        sum(min(probability, there.get(topology, 0.0)) for topology, probability in here.items()),
    )
