"""All numbers that the sampler is tuned by, in one place; they are recorded with the result."""

from dataclasses import dataclass, field, replace

from vaiphy.kernels.layout import ROW_AT
from vaiphy.posterior.ladder import Reach
from vaiphy.posterior.particles import Moves
from vaiphy.posterior.tree_law import Fitting
from vaiphy.target import Target


@dataclass(frozen=True)
class Settings:
    """What is asked for, and how it is gone about.

    Asked for: `accuracy`, the standard error of the log evidence; `min_effective`, the effective number of sampled trees;
    `max_deviation`, the average standard deviation of split frequencies between two halves of the bridges; `max_split_error`, the
    standard error of the frequency of a split (root mean square over doubtful ones), and better, down to `fine_split_error`, as
    long as the final bridges cost less than `balance` times what learning and pilots did; `replicates`, searches of their own
    and the least number of final bridges.

    Everywhere: `oversampling`, draws from the proposal for each particle (of a final bridge, at most).

    Learning: `kinds` of starts, dealt out to the replicates in turn; `learn_particles`, but from the prior `first_particles` and
    more from some temperatures on (`growth`), since trees mix well where it is hot and every island of trees needs particles of
    its own later: none is resampled from the temperature `apart` on; `learn_size`, the conditional effective size by which
    ladders are found (coarsely: only a proposal is wanted); `learn_moves` at each temperature, and at the posterior until the
    particles have settled, `most_settling` times at most. They have when the mean of their median log-posteriors over `window`
    sweeps has risen by less than `rise` standard deviations; trees after each of the last `window` sweeps are kept. Replicates
    are pooled with `by_evidence` of the weight given by their evidences, the rest equally; within each, weights are flattened
    until a share `lineages` of the particles counts, or small islands of trees would be lost by chance.

    All these particles, and those of pilots, are multiplied by up to `most_effort` where trees are cheap to move (`tuned_to`): a
    round of moves of a tree costs about `per_taxon` microseconds for each taxon and `per_number` for each taxon and number of a
    row of partials, and particles are added while it costs less than `cheap`.

    Drawing: the pooled proposal is tried by a pilot of `pilot_particles`, which finds its ladder at `pilot_size` (the first, more
    coarsely, at `first_pilot_size`: it only serves for a better proposal) and ends with `pilot_sweeps` sweeps; the proposal is
    refitted to the pilot's particles (with a share `kept_share` of what learning found) and tried again, from the third time on
    with twice as many each time, up to `most_pilot_particles`: `least_refits` times at least and `max_refits` at most, as long as
    the final bridges would cost more than `refit_worth` times the next pilot. A draw costs about `draw_cost` rounds of moves of
    a particle.

    The number of particles of a final bridge follows from the variance seen there, between `min_particles` and `max_particles`.
    Draws that reach the posterior at once are cheap: there are so many that `apiece` effective ones stand behind each particle.
    Elsewhere `ample` draws count at the first temperature for each particle, and at the end more sweeps add trees, about
    `sweep_share` times as many as the ladder has temperatures. If one ancestor has more than a share `lucky` of its bridge, and
    the variance of a bridge, by its genealogy, is more than `surprise` times the median of at least `least_compared`, the
    proposal is fitted to all of them and drawing begins anew, `max_restarts` times at most. No more than `max_bridges` bridges
    are made, or exactly `bridges`, if given, whatever their accuracy. A particle is taken to be worth `least_worth` independent
    trees at least when their number is chosen. A run whose time is up makes one pilot of at most `hasty` particles. What speaks
    against a result: fewer than `few_ancestors` surviving in a bridge, estimates more than `most_errors` standard errors apart.
    `reach`, `fitting`: how far draws are carried, and how proposals are fitted.
    """

    replicates: int = 4
    accuracy: float = 0.1
    min_effective: float = 50.0
    max_deviation: float = 0.01
    max_split_error: float = 0.01
    fine_split_error: float = 0.005
    balance: float = 0.5
    oversampling: int = 16
    kinds: tuple[str, ...] = ("prior", "bootstrap", "prior", "bootstrap")
    first_particles: int = 16
    growth: tuple[tuple[float, int], ...] = ((0.05, 32), (0.2, 64))
    apart: float = 0.4
    learn_particles: int = 32
    learn_size: float = 0.5
    learn_moves: Moves = field(default_factory=lambda: Moves(regrafts=2))
    most_settling: int = 48
    window: int = 4
    rise: float = 0.1
    by_evidence: float = 0.3
    lineages: float = 0.3
    most_effort: int = 8
    per_taxon: float = 70.0
    per_number: float = 0.028
    cheap: float = 5000.0
    pilot_particles: int = 256
    most_pilot_particles: int = 2048
    first_pilot_size: float = 0.75
    pilot_size: float = 0.9
    pilot_sweeps: int = 4
    kept_share: float = 0.15
    least_refits: int = 2
    max_refits: int = 6
    refit_worth: float = 4.0
    draw_cost: float = 0.1
    min_particles: int = 192
    apiece: float = 0.8
    ample: float = 2.0
    least_worth: float = 0.5
    max_particles: int = 2048
    moves: Moves = field(default_factory=Moves)
    sweep_share: float = 0.25
    surprise: float = 2.0
    lucky: float = 0.05
    least_compared: int = 3
    max_restarts: int = 2
    max_bridges: int = 32
    bridges: int | None = None
    hasty: int = 128
    few_ancestors: int = 5
    most_errors: float = 4.0
    reach: Reach = field(default_factory=Reach)
    fitting: Fitting = field(default_factory=Fitting)


def tuned_to(target: Target, settings: Settings) -> Settings:
    """More particles where trees are cheap to move: small data sets may have islands of trees, too, that few would find."""
    cost = target.n_taxa * (settings.per_taxon + settings.per_number * float(target.data.layout[ROW_AT, -1]))
    effort = 1
    while effort < settings.most_effort and 1.5 * effort * cost < settings.cheap:
        effort *= 2
    return replace(
        settings,
        first_particles=effort * settings.first_particles,
        growth=tuple((beta, effort * size) for beta, size in settings.growth),
        learn_particles=effort * settings.learn_particles,
        pilot_particles=min(effort, 2) * settings.pilot_particles,
    )
