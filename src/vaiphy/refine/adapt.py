"""One replicate's way to a good law over topologies: explore, then draw, weigh and refit in rounds.

The mass of a topology is known without noise, so weights of a round are mass over density under the mixture of the last
rounds' laws; they are tempered until enough draws count, and the law is refitted. Trees that were found but not drawn
(neighbours of good trees) enter with their posterior probability. Rounds go on while they learn: no stop while the estimate
still moves.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vaiphy import search
from vaiphy.evidence import effective_sample_size, log_mean_exp, log_sum_exp
from vaiphy.refine import explore
from vaiphy.refine.explore import Archive
from vaiphy.topology import subsplit
from vaiphy.topology.subsplit import SubsplitLaw
from vaiphy.treesample import systematic

Floats = NDArray[np.float64]

EXPANSIONS, EXPANSIONS_PER_STEP = 32, 8
#: Log units below the tree itself within which neighbours are taken in, when exploring and between rounds.
EXPLORE_MARGIN, ROUND_MARGIN = 8.0, 6.0
EXPANSIONS_PER_ROUND = 8
#: Logarithm of the weight from which on trees are worth expanding, and of that beyond which they are not worth more.
NEGLECTED, LARGEST_WEIGHT = 0.5, 10.0
#: Draws of a round while few of them count, and once most do.
DRAWS_EARLY, DRAWS_LATE = 2500, 1000
ROUNDS_POOLED = 4
MIN_ROUNDS, MAX_ROUNDS = 5, 20
#: Share of the pool that must count after tempering.
TEMPERED_SHARE = 0.25
#: A clade keeps this much probability for splits never seen, and this many trees' worth of what it does beside other sisters.
FLOOR, SHARING = 1e-4, 500.0
#: Found trees this far below the evidence cannot matter.
NEGLIGIBLE = 12.0
#: Trees whose neighbourhoods the last law is given: at least and at most, and no more than this work (taxa^2 x patterns) allows;
#: how far down these neighbourhoods reach, and their share beside the draws.
GROWN, GROWTH_WORK, GROWTH_MARGIN, GROWTH_SHARE = (32, 192), 1.5e8, 9.0, 0.5


@dataclass(frozen=True)
class Round:
    """One round: the law drawn from and the archive places of its draws."""

    law: SubsplitLaw
    places: NDArray[np.int64]


@dataclass
class Replicate:
    """State of one replicate: archive, current law, the last rounds, and a trace (estimate, effective share) per round."""

    index: int
    archive: Archive
    n_steps: int = 0
    law: SubsplitLaw | None = None
    rounds: list[Round] = field(default_factory=list)
    trace: list[tuple[float, float]] = field(default_factory=list)
    ready: bool = False

    @property
    def stage(self) -> str:
        return "explore" if self.law is None else "adapt"


def advance(replicate: Replicate, seed: int, starts: tuple[str, ...], threads: int = 1) -> Replicate:
    """One bounded piece of work. All chance comes from (seed, replicate, step), so a restored replicate goes on identically."""
    rng = np.random.default_rng([seed, 1, replicate.index, replicate.n_steps])
    step = replicate.n_steps
    if step < len(starts):
        _climb_from(replicate, starts[step], rng, threads)
    elif replicate.law is None:
        _expand_some(replicate, rng, threads)
        if step + 1 == len(starts) + EXPANSIONS // EXPANSIONS_PER_STEP:
            replicate.law = _first_law(replicate.archive)
    elif not _settled(replicate.trace):
        _round(replicate, rng, threads)
    else:
        _grow(replicate, rng)
        replicate.ready = True
    replicate.n_steps += 1
    return replicate


def end_here(replicate: Replicate) -> None:
    """Make the replicate ready with what it has; without any round yet, its law comes from the trees found so far."""
    if replicate.law is None:
        replicate.law = _first_law(replicate.archive)
    replicate.ready = True


def _climb_from(replicate: Replicate, kind: str, rng: np.random.Generator, threads: int) -> None:
    """Climb from a starting tree; the very first of all is the BIONJ tree of the data themselves."""
    problem = replicate.archive.problem
    if replicate.index == 0 and replicate.n_steps == 0:
        kind = "bionj"
    tree, lengths = search.climb(problem, *explore.starting_tree(problem, kind, rng, threads))
    replicate.archive.add(tree[None], lengths[None], threads)


def _expand_some(replicate: Replicate, rng: np.random.Generator, threads: int) -> None:
    """Take in neighbourhoods of trees drawn by mass at temperature two: good ones, not only the best."""
    archive = replicate.archive
    for _ in range(EXPANSIONS_PER_STEP):
        score = np.array(archive.masses) / 2.0 + rng.gumbel(size=len(archive))
        score[list(archive.expanded)] = -np.inf
        if np.isfinite(score.max()):
            explore.expand(archive, int(score.argmax()), EXPLORE_MARGIN, threads)


def _first_law(archive: Archive) -> SubsplitLaw:
    """From all trees found, by mass, tempered until several of them count."""
    masses = np.array(archive.masses)
    _, weights = tempered(masses, min(0.25 * len(masses), 200.0))
    return subsplit.fit(archive.stack(np.arange(len(masses))), weights * 200.0, FLOOR, SHARING)


def _round(replicate: Replicate, rng: np.random.Generator, threads: int) -> None:
    archive = replicate.archive
    assert replicate.law is not None
    late = bool(replicate.trace) and replicate.trace[-1][1] > 0.3
    trees, _, _ = replicate.law.sample(DRAWS_LATE if late else DRAWS_EARLY, rng)
    places = archive.add(trees, threads=threads)
    replicate.rounds = [*replicate.rounds, Round(replicate.law, places)][-ROUNDS_POOLED:]

    pool = _weigh(replicate)
    replicate.trace.append((pool.estimate, pool.share))
    trees, weights = _learned(archive, pool)
    replicate.law = subsplit.fit(trees, weights, FLOOR, SHARING)
    for place in _neglected(replicate, pool.estimate):
        explore.expand(archive, place, ROUND_MARGIN, threads)


def _neglected(replicate: Replicate, estimate: float) -> list[int]:
    """Places of the trees to expand: those that the law gives too little, by what they add to the variance of the weights.

    A tree of probability p that the law gives q adds p w, with w = p / q. Around such trees there are more of them, an island
    that draws would hit too rarely to learn it, and that would give the draw that does hit it far too much weight. A weight
    counts up to about the number of draws: what is rarer still will not be hit.
    """
    archive, law = replicate.archive, replicate.law
    assert law is not None
    places = np.setdiff1d(np.arange(len(archive)), list(archive.expanded))
    log_p = np.array(archive.masses)[places] - estimate
    log_w = log_p - law.log_density(archive.stack(places))
    worst = np.argsort(-(log_p + np.minimum(log_w, LARGEST_WEIGHT)), kind="stable")
    return places[worst[log_w[worst] > NEGLECTED][:EXPANSIONS_PER_ROUND]].tolist()


def _grow(replicate: Replicate, rng: np.random.Generator) -> None:
    """Give the law the neighbourhoods of trees drawn by weight, each neighbour by its share of the drawn tree's probability.

    A split with probability 1/1000 is drawn by chance or not at all in a round, but it is a neighbour of most trees, and its
    lazy score says how probable it is. Without this the rarest splits get far too little, and the few draws that hit them far
    too much weight.
    """
    archive, pool = replicate.archive, _weigh(replicate)
    diversity = 1.0 / np.square(pool.weights).sum()
    patterns = archive.problem.patterns
    affordable = GROWTH_WORK / (patterns.n_taxa**2 * patterns.n_patterns)
    n_grown = int(np.clip(min(diversity / 4.0, affordable), *GROWN))
    chosen = systematic(pool.weights, n_grown, rng.random())
    trees, weights = _learned(archive, pool)
    grown, shares = [trees], [weights]
    for place, count in zip(*np.unique(pool.drawn[chosen], return_counts=True)):
        tree = archive.children[place]
        lengths = archive.fitted(tree[None]).modes[0]
        around, _, scores = search.neighbours(archive.problem, tree, lengths, GROWTH_MARGIN, explore.NEIGHBOURS_KEPT)
        grown.append(around)
        shares.append(weights.sum() * GROWTH_SHARE * count / n_grown * np.exp(np.minimum(scores, 1.0)))
    replicate.law = subsplit.fit(np.concatenate(grown), np.concatenate(shares), FLOOR, SHARING)


@dataclass(frozen=True)
class Pool:
    """The last rounds' draws: distinct places, tempered weights, how many draws these are worth, the estimate, the last share."""

    drawn: NDArray[np.int64]
    weights: Floats
    effective: float
    estimate: float
    share: float


def _weigh(replicate: Replicate) -> Pool:
    """Weigh the draws of the last rounds by mass over density under the mixture of these rounds' laws."""
    archive, rounds = replicate.archive, replicate.rounds
    drawn, inverse = np.unique(np.concatenate([r.places for r in rounds]), return_inverse=True)
    inverse = inverse.ravel()
    topologies, masses = archive.stack(drawn), np.array(archive.masses)[drawn]
    sizes = np.array([len(r.places) for r in rounds], dtype=np.float64)
    densities = np.array([r.law.log_density(topologies) for r in rounds])
    mixture = np.logaddexp.reduce(densities + np.log(sizes / sizes.sum())[:, None], axis=0)
    log_weights = (masses - mixture)[inverse]
    newest = inverse[-len(rounds[-1].places) :]
    own = masses[newest] - densities[-1][newest]
    effective, weights = tempered(log_weights, TEMPERED_SHARE * len(log_weights))
    by_tree: Floats = np.bincount(inverse, weights=weights, minlength=len(drawn)).astype(np.float64)
    return Pool(drawn, by_tree, effective, log_mean_exp(log_weights), effective_sample_size(own) / len(own))


def _learned(archive: Archive, pool: Pool) -> tuple[NDArray[np.int32], Floats]:
    """Trees with weights to fit a law to: the pool's, and those found but not drawn by their posterior probability."""
    masses = np.array(archive.masses)
    extra = np.setdiff1d(np.flatnonzero(masses > pool.estimate - NEGLIGIBLE), pool.drawn)
    extra_weight = np.exp(masses[extra] - pool.estimate)
    extra_weight /= max(1.0, extra_weight.sum())
    trees = np.concatenate([archive.stack(pool.drawn), archive.stack(extra)])
    return trees, np.concatenate([pool.weights, extra_weight]) * pool.effective


def _settled(trace: list[tuple[float, float]]) -> bool:
    """Whether rounds have stopped learning: the estimate stands still and either most draws count or no more do than before."""
    if len(trace) < MIN_ROUNDS:
        return False
    if len(trace) >= MAX_ROUNDS:
        return True
    estimates = np.array([estimate for estimate, _ in trace])
    shares = np.array([share for _, share in trace])
    # A single draw from a corner not known before can spoil one round's share; the median of three is not moved by it.
    if np.ptp(estimates[-3:]) > 0.1:
        return False
    if np.median(shares[-3:]) > 0.3:
        return True
    return len(trace) >= 12 and np.median(shares[-4:]) < 1.2 * np.median(shares[-8:-4])


def tempered(log_weights: Floats, enough: float) -> tuple[float, Floats]:
    """Normalised weights, flattened by the largest exponent in (0, 1] leaving an effective size of `enough`; and that size."""
    power = 1.0
    while effective_sample_size(power * log_weights) < enough and power > 0.02:
        power *= 0.9
    scaled = power * log_weights
    return effective_sample_size(scaled), np.exp(scaled - log_sum_exp(scaled))
