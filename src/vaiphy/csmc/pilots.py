"""From an alignment to a guided proposal: starting trees, a short search, and pilot runs that correct it.

Any proposal gives an unbiased evidence as long as it is fixed before the run; a good one makes it precise. Starting trees are
bootstrapped BIONJ trees and, for phi-CSMC, trees of the fitted VaiPhy distribution. The best are improved by hill climbing and
their neighbourhoods; then small pilot runs show which topologies the guide has missed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.csmc import guide as guides
from vaiphy.csmc.effort import Effort
from vaiphy.csmc.engine import run
from vaiphy.csmc.guide import Reference
from vaiphy.csmc.guided import GuidedProposal
from vaiphy.csmc.search import Archive, Drawn, bootstrap_trees
from vaiphy.csmc.targets import Target
from vaiphy.search.rearrange import topology_hashes
from vaiphy.search.starts import distances
from vaiphy.weights import tempered


def prepare(
    patterns: SitePatterns,
    target: Target,
    rng: np.random.Generator,
    trees: NDArray[np.int32] | None = None,
    effort: Effort | None = None,
    threads: int = 1,
    report: Callable[[str, float], None] | None = None,
) -> Reference:
    """Weighted reference trees for `guided_proposal`.

    `trees` are topologies to start from besides the bootstrapped ones, as binary arrays (T, n-2, 2); `report` is told what is
    being done and how much of it, from 0 to 1, is finished.
    """
    effort = effort or Effort()
    boot_rng, *pilot_rngs = rng.spawn(1 + effort.pilots)
    say = report or (lambda stage, share: None)
    say("starting trees", 0.0)
    archive = Archive(target.for_search(patterns), effort)
    archive.add(*bootstrap_trees(archive.target, effort.bootstraps, boot_rng), threads)
    if trees is not None and len(trees):
        archive.add(trees, np.full((len(trees), 2 * patterns.n_taxa - 2), effort.start_length), threads)
    if patterns.n_taxa > 3:
        say("hill climbing", 0.1)
        archive.climb(archive.best(effort.climbs), threads)
        say("neighbourhoods", 0.4)
        _widen(archive, effort.expansions, threads)
    drawn: list[Drawn] = []
    found_so_far: list[float] = []
    for number, pilot_rng in enumerate(pilot_rngs):
        say(f"pilot run {number + 1} of at most {effort.pilots}", 0.6 + 0.4 * number / effort.pilots)
        proposal = guided_proposal(patterns, archive.reference(drawn[-effort.pilots_pooled :]), target, threads)
        # Without resampling: the pilot is to show many topologies.
        found = run(patterns, proposal, target, pilot_rng, effort.pilot_particles, threshold=0.0, threads=threads)
        weights = tempered(found.log_weights, effort.pilot_share * effort.pilot_particles)
        good = np.flatnonzero(weights > effort.pilot_least * weights.max())
        children, lengths = found.unrooted
        drawn.append((archive.add(children[good], lengths[good], threads), weights[good] / weights[good].sum()))
        if patterns.n_taxa > 3:
            _widen(archive, effort.expansions // 2, threads)
        found_so_far.append(found.log_evidence)
        if number >= effort.pilots_least and sum(found_so_far[-2:]) - sum(found_so_far[-4:-2]) < 2 * effort.pilot_gain:
            break
    return archive.reference(drawn[-effort.pilots_pooled :])


def guided_proposal(
    patterns: SitePatterns, reference: Reference, target: Target, threads: int = 1, **settings: float
) -> GuidedProposal:
    """The guided proposal of a reference set; `settings` are fields of `GuidedProposal`."""
    guide = guides.build(patterns, reference, target, threads)
    return GuidedProposal(guide, distances(target.data(patterns), model=target.model), **settings)  # type: ignore[arg-type]


def starting_topologies(
    patterns: SitePatterns, n_trees: int, rng: np.random.Generator, prior_rate: float = 10.0, threads: int = 1
) -> NDArray[np.int32]:
    """Diverse binary topologies to start a search from, (at most n_trees, n-2, 2), the heaviest particle first.

    One small run guided by bootstrapped trees, without any climbing: particles combine parts of several of them.
    """
    target = Target("unrooted", prior_rate)
    effort = Effort(climbs=0, expansions=0, pilots=0)
    boot_rng, run_rng = rng.spawn(2)
    proposal = guided_proposal(patterns, prepare(patterns, target, boot_rng, effort=effort, threads=threads), target, threads)
    found = run(patterns, proposal, target, run_rng, max(256, 4 * n_trees), threshold=0.0, threads=threads)
    order = np.argsort(-found.log_weights, kind="stable")
    children, _ = found.unrooted
    _, first = np.unique(topology_hashes(children[order]), return_index=True)
    return children[order][np.sort(first)[:n_trees]]


def _widen(archive: Archive, n_expansions: int, threads: int) -> None:
    """Take in the neighbourhoods of the best trees, a few at a time, so that better ones found on the way come next."""
    at_once = archive.effort.at_once
    for _ in range(-(-n_expansions // at_once)):
        places = archive.best(at_once, unexpanded=True)
        if places:
            archive.expand(places, threads)
