"""What a proposal is: a distribution of mergers and one of branch lengths, interchangeable, each with its exact density.

A proposal may also look ahead: `potential` is the logarithm of a positive function of the particle that multiplies the
intermediate target (a twist). It is divided out again at the next rank and absent from the last, so that it can make
resampling better or worse but never biased.
"""

from dataclasses import dataclass
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
    def potential(self, forest: Forest, expected: NDArray[np.float64]) -> NDArray[np.float64]:
        """Log of the twist for every particle, called after each rank but the last.

        `expected` is what the proposal expected its mergers so far to add to the log weight: the volumes of the branches
        minus the log-probabilities of the mergers.
        """
        ...


class Running(Protocol):
    """A proposal at work in one run."""

    @property
    def merger(self) -> MergerProposal: ...

    @property
    def lengths(self) -> LengthProposal: ...

    @property
    def look_ahead(self) -> LookAhead | None: ...


class AnyProposal(Protocol):
    """What the engine takes: something that can begin a run."""

    def begin(self, forest: Forest, target: Target) -> Running: ...


@dataclass(frozen=True)
class Proposal:
    """A merger distribution, a branch-length distribution and, perhaps, a look-ahead, none of which keep notes."""

    merger: MergerProposal
    lengths: LengthProposal
    look_ahead: LookAhead | None = None

    def begin(self, forest: Forest, target: Target) -> Running:
        """The proposal for one run; one that keeps notes on its particles would start them here."""
        return self
