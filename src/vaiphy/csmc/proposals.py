"""What a proposal is: a law of mergers and a law of branch lengths, interchangeable, each with its exact density.

A proposal may also look ahead: `potential` is the logarithm of a positive function of the particle that multiplies the
intermediate target (a twist). It is divided out again at the next rank and absent from the last, so that it can make
resampling better or worse but never biased.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vaiphy.csmc.forest import Forest
from vaiphy.csmc.targets import Backward, Target

Streams = list[np.random.Generator]


@dataclass(frozen=True)
class Merger:
    """Columns of the two roots to merge in each particle, with the log-probability of that choice."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    log_q: NDArray[np.float64]


@dataclass(frozen=True)
class Lengths:
    """Branch lengths to the two merged roots, (K, 2), with their log-density.

    `log_volume` is what the branches are expected to add to the weight, log(prior / density) at typical lengths; it only
    serves the look-ahead.
    """

    lengths: NDArray[np.float64]
    log_q: NDArray[np.float64]
    log_volume: NDArray[np.float64] | None = None


class MergerProposal(Protocol):
    """`backward` names the kernel that the mergers are made for (see `targets`)."""

    @property
    def backward(self) -> Backward: ...

    def choose(self, forest: Forest, target: Target, streams: Streams) -> Merger: ...


class LengthProposal(Protocol):
    def propose(self, forest: Forest, target: Target, merger: Merger, streams: Streams) -> Lengths: ...


class LookAhead(Protocol):
    def potential(self, forest: Forest, log_volume: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of the twist for every particle; `log_volume` is the sum over its mergers so far."""
        ...


@dataclass(frozen=True)
class Proposal:
    """A merger law, a branch-length law and, perhaps, a look-ahead."""

    merger: MergerProposal
    lengths: LengthProposal
    look_ahead: LookAhead | None = None
    name: str = field(default="")

    def begin(self, forest: Forest, target: Target) -> "Proposal":
        """The proposal for one run; one that keeps notes on its particles starts them here."""
        return self
