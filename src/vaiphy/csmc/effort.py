"""How much work goes into a guide: every number by which its preparation is tuned."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """How much work goes into a guide. The result of a run records it.

    Search: `bootstraps` BIONJ trees of resampled sites (the first of the data themselves); hill climbing from the best `climbs`;
    then the neighbourhoods of `expansions` trees are taken in, `at_once` together: at most `neighbours` of a tree, those whose
    score is within `margin` log units of its own. Branches of topologies that come without lengths start at `start_length`.

    Pilots: at most `pilots` runs with `pilot_particles` particles, without resampling. Their weights are tempered until
    `pilot_share` of the particles count, trees below `pilot_least` of the largest weight are dropped, and the last
    `pilots_pooled` runs enter the guide. After `pilots_least` runs they end when two together find less than 2 `pilot_gain`
    (log units) more than the two before.

    Guide: at most `most_trees` trees by mass, tempered until at least `least_effective` of them count, none with less than
    `least_share` of the largest weight.
    """

    bootstraps: int = 40
    climbs: int = 6
    expansions: int = 8
    at_once: int = 4
    neighbours: int = 150
    margin: float = 8.0
    start_length: float = 0.05
    pilots: int = 10
    pilot_particles: int = 1024
    pilot_share: float = 0.1
    pilot_least: float = 1e-3
    pilots_pooled: int = 2
    pilots_least: int = 5
    pilot_gain: float = 0.5
    least_effective: float = 20.0
    most_trees: int = 1500
    least_share: float = 1e-4
