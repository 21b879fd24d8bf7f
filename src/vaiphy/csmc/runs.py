"""What users call: one run, repeated runs, and the proposals by name."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches.law import LengthLaw
from vaiphy.csmc import authors, engine
from vaiphy.csmc.authors import JoinThree, authors_proposal
from vaiphy.csmc.effort import Effort
from vaiphy.csmc.engine import Particles
from vaiphy.csmc.jc_mixture import mixture_lengths
from vaiphy.csmc.pairwise import PairwiseLengths
from vaiphy.csmc.pilots import guided_proposal, prepare
from vaiphy.csmc.proposals import AnyProposal, Proposal
from vaiphy.csmc.support import support_merger
from vaiphy.csmc.targets import Kind, Target
from vaiphy.csmc.vanilla import PriorLengths, UniformMerger
from vaiphy.likelihood import log_likelihoods
from vaiphy.models.replacement import replacement_of
from vaiphy.models.substitution import model_of
from vaiphy.search.starts import distances
from vaiphy.trees.augmented import AugmentedTrees
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Tree
from vaiphy.weights import log_mean_exp

Name = Literal["guided", "pairwise", "paper", "authors", "vanilla"]
#: Trees of the fitted distribution that the paper's proposals are made from, and binary ones that start a guide.
SUPPORT_TREES, GUIDE_TREES = 3000, 200


class FittedLaw(Protocol):
    """What CSMC needs of a fitted VaiPhy distribution (`vaiphy.vi.Fit`)."""

    @property
    def length_law(self) -> LengthLaw: ...

    def sample_trees(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> AugmentedTrees: ...

    def sample_binary(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> TreeSample: ...

    def most_probable_tree(self, contract_below: float | None = None) -> Tree: ...


@dataclass(frozen=True, eq=False)
class Estimate:
    """The log evidence over repeated runs.

    `mean` and `sd` are those of log Z-hat over the runs, as the paper reports them, and `se` = sd / sqrt(runs). Z-hat is
    unbiased, log Z-hat is low by about half its variance: `combined` = log of the mean of Z-hat is the better estimate.
    `bias` is what the paper's authors' program adds to each; it is 0 unless their proposal was asked for.
    """

    log_evidences: NDArray[np.float64]
    statement: str
    bias: float = 0.0

    @property
    def mean(self) -> float:
        return float(self.log_evidences.mean())

    @property
    def sd(self) -> float:
        return float(self.log_evidences.std(ddof=1)) if len(self.log_evidences) > 1 else float("nan")

    @property
    def se(self) -> float:
        return self.sd / sqrt(len(self.log_evidences))

    @property
    def combined(self) -> float:
        return log_mean_exp(self.log_evidences)


def make_target(patterns: SitePatterns, kind: Kind, prior_rate: float = 10.0, model: str = "JC") -> Target:
    """What is estimated, of these data under a model given as a string."""
    own = model_of(model, patterns.alphabet, patterns.codes, patterns.counts)
    return Target(kind, prior_rate, replacement_of(own), "JC69" if own.name == "JC" else own.name)


def make_proposal(
    name: Name,
    patterns: SitePatterns,
    target: Target,
    rng: np.random.Generator,
    fit: FittedLaw | None = None,
    effort: Effort | None = None,
    threads: int = 1,
) -> AnyProposal | JoinThree:
    """A proposal by name.

    "vanilla": uniform mergers, lengths from the prior. "paper": split support and JC mixtures from trees of the fitted
    distribution (needs `fit`). "authors": what the paper's authors ran (needs `fit`; see `csmc.authors`). "pairwise": split
    support (uniform without `fit`) and lengths from the merged subtrees' own data. "guided": mergers, lengths and look-ahead
    from a guide; starts from trees of the fitted distribution if there is one.
    """
    if name == "vanilla":
        return Proposal(UniformMerger(), PriorLengths())
    if name == "guided":
        tree_rng, guide_rng = rng.spawn(2)
        trees = None if fit is None else fit.sample_binary(GUIDE_TREES, tree_rng, threads).children
        reference = prepare(patterns, target, guide_rng, trees, effort, threads)
        return guided_proposal(patterns, reference, target, threads)
    if name in ("paper", "authors") and fit is None:
        raise ValueError(f'the proposal "{name}" is made from a fitted distribution: pass fit=vaiphy.fit(patterns, rng=...)')
    if name not in ("paper", "authors", "pairwise"):
        raise ValueError(f"proposal {name!r} is not one of guided, pairwise, paper, authors, vanilla")
    if name == "authors" and fit is not None:
        return authors_proposal(fit)
    if fit is None:
        return Proposal(UniformMerger(), PairwiseLengths(distances(patterns, model=target.model)))
    sampled = fit.sample_trees(SUPPORT_TREES, rng, threads)
    heights = log_likelihoods(sampled.parents, sampled.lengths, target.data(patterns), threads, target.model)
    merger = support_merger(sampled, heights)
    if name == "paper":
        return Proposal(merger, mixture_lengths(sampled, fit.length_law))
    return Proposal(merger, PairwiseLengths(distances(patterns, model=target.model)))


def run(
    patterns: SitePatterns,
    *,
    rng: np.random.Generator,
    target: Kind = "unrooted",
    proposal: Name | AnyProposal | JoinThree = "guided",
    fit: FittedLaw | None = None,
    n_particles: int = 2048,
    resampling: str = "systematic",
    threshold: float = 0.5,
    prior_rate: float = 10.0,
    threads: int = 1,
    model: str = "JC",
) -> Particles:
    """One run of combinatorial SMC: weighted trees and log Z-hat of the stated target (`Particles.statement`).

    `model`: JC, or another equal-input model of nucleotides without free parameters, as "F81+F" or "F81+F{0.4,0.3,0.2,0.1}".
    A proposal given by name is prepared first (see `make_proposal`). Resamples (by "systematic", "stratified" or "multinomial"
    resampling) when the effective sample size is below `threshold` * n_particles: 0 never, 1 at every rank. The result does not
    depend on the number of threads. The proposal "authors" resamples as the authors did, whatever is asked.
    """
    aim = make_target(patterns, target, prior_rate, model)
    proposal_rng, run_rng = rng.spawn(2)
    if isinstance(proposal, str):
        proposal = make_proposal(proposal, patterns, aim, proposal_rng, fit, threads=threads)
    return _run(patterns, proposal, aim, run_rng, n_particles, resampling, threshold, threads)


def estimate(
    patterns: SitePatterns,
    *,
    rng: np.random.Generator,
    repeats: int = 10,
    target: Kind = "unrooted",
    proposal: Name | AnyProposal | JoinThree = "guided",
    fit: FittedLaw | None = None,
    n_particles: int = 2048,
    resampling: str = "systematic",
    threshold: float = 0.5,
    prior_rate: float = 10.0,
    threads: int = 1,
    model: str = "JC",
) -> Estimate:
    """Mean and standard deviation of log Z-hat over independent runs with one proposal; arguments as for `run`."""
    aim = make_target(patterns, target, prior_rate, model)
    proposal_rng, *run_rngs = rng.spawn(1 + repeats)
    if isinstance(proposal, str):
        proposal = make_proposal(proposal, patterns, aim, proposal_rng, fit, threads=threads)
    found = [
        _run(patterns, proposal, aim, stream, n_particles, resampling, threshold, threads).log_evidence for stream in run_rngs
    ]
    extra = authors.bias(n_particles, patterns.n_taxa) if isinstance(proposal, JoinThree) else 0.0
    return Estimate(np.array(found), aim.statement(patterns.n_taxa), extra)


def _run(
    patterns: SitePatterns,
    proposal: AnyProposal | JoinThree,
    target: Target,
    rng: np.random.Generator,
    n_particles: int,
    resampling: str,
    threshold: float,
    threads: int,
) -> Particles:
    """One run with a proposal that is ready; the authors' has a resampling, a target and an end of its own."""
    if not isinstance(proposal, JoinThree):
        return engine.run(patterns, proposal, target, rng, n_particles, resampling, threshold, threads)
    if target.rooted:
        raise ValueError('the proposal "authors" ends by joining three roots: its trees are unrooted, target="unrooted"')
    return authors.run(patterns, proposal, rng, n_particles, target.prior_rate, threads=threads)
