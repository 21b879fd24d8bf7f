"""What a variational network is trained with: every number of Zhang (2020), and where ours differ."""

from dataclasses import dataclass
from typing import Literal

FLOWS = ("none", "planar", "realnvp")
BASES = ("lognormal", "jc")
#: Layers of each flow.
LAYERS = {"none": 0, "planar": 16, "realnvp": 10}


@dataclass(frozen=True)
class Settings:
    """How a network is trained. A run records it.

    Trees: the subsplits of `bootstraps` trees of resampled sites, each improved by a climb, and of the regraftings of the
    best `expansions` trees within `margin` log units (at most `neighbours` each); masses are tempered until `least_effective`
    trees count. Lengths: a `base` distribution, log-normal or the JC sampler's, and a `flow` on top, whose conditioners have
    `width` hidden units.

    Training: `iterations` steps of Adam on the bound of `particles` samples. The likelihood counts with a power that
    rises from `first_power` to 1 over the first `annealed` share of the iterations. Learning rates of trees and lengths
    are multiplied by `rate_decay` after each of `rate_steps` equal parts of the iterations. The schedule is that of the paper
    (400,000 iterations, 100,000 of them annealed, rates 0.75 times every 20,000) scaled to the number of iterations.
    """

    flow: Literal["none", "planar", "realnvp"] = "realnvp"
    base: Literal["lognormal", "jc"] = "lognormal"
    width: int = 8
    iterations: int = 400_000
    particles: int = 10
    prior_rate: float = 10.0
    bootstraps: int = 100
    margin: float = 8.0
    neighbours: int = 150
    expansions: int = 12
    least_effective: float = 20.0
    tree_rate: float = 0.001
    length_rate: float = 0.001
    rate_decay: float = 0.75
    rate_steps: int = 20
    first_power: float = 0.1
    annealed: float = 0.25

    def __post_init__(self) -> None:
        if self.flow not in FLOWS:
            raise ValueError(f"the flow {self.flow!r} is not one of {', '.join(FLOWS)}")
        if self.base not in BASES:
            raise ValueError(f"the base {self.base!r} is not one of {', '.join(BASES)}")
        if self.particles < 2:
            raise ValueError(f"the bound needs at least 2 samples, not {self.particles}: each is compared with the others")

    @property
    def n_layers(self) -> int:
        return LAYERS[self.flow]

    def power(self, iteration: int) -> float:
        """The power of the likelihood at an iteration, counted from 0."""
        rising = max(1.0, self.annealed * self.iterations)
        return min(1.0, self.first_power + (1.0 - self.first_power) * iteration / rising)

    def rate(self, first: float, iteration: int) -> float:
        """A learning rate at an iteration, given the first."""
        return first * self.rate_decay ** (iteration * self.rate_steps // max(1, self.iterations))
