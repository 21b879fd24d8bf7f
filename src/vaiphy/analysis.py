"""Settings to Analysis: the steps of a method one after another, checkpoints between them, and everything that is known
about a finished run in one value.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import MISSING, SitePatterns
from vaiphy.ancestral import AncestralStates, ancestral_states
from vaiphy.consensus import ladderised, named, rooted_at
from vaiphy.methods import NotYet, method_of
from vaiphy.outcome import Estimate, LabelledSample, Outcome, Progress
from vaiphy.posterior import Posterior, summarise
from vaiphy.settings import Settings
from vaiphy.splitsample import from_trees
from vaiphy.tree import Tree, TreeError, simplified
from vaiphy.treesample import TreeSample, systematic

#: Seconds between two checkpoints, at least.
SAVE_EVERY = 1.0
#: Seconds of a time limit that are kept back for summaries and files.
RESERVE = 2.0


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from."""

    version: str
    command: str
    file: str
    sha256: str
    threads: int


@dataclass(frozen=True, eq=False)
class Analysis:
    """A finished run: what was asked, what came out, and summaries of it (computed when first asked for).

    `complete` is False if a time limit ended it early; the outcome is then the best that could be had. `timings` are wall
    seconds by stage.
    """

    settings: Settings
    provenance: Provenance
    patterns: SitePatterns
    outcome: Outcome
    complete: bool
    timings: dict[str, float]
    warnings: tuple[str, ...] = ()

    @property
    def estimate(self) -> Estimate:
        """The estimate the run was for."""
        return self.outcome.estimates[self.outcome.main]

    @property
    def log_evidence(self) -> float:
        return self.estimate.log_evidence

    @property
    def std_error(self) -> float:
        return self.estimate.std_error

    @property
    def trust_ok(self) -> bool:
        return self.outcome.trust_ok and self.complete

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the result can or cannot be trusted."""
        early = () if self.complete else ("the time limit ended the run before it was finished",)
        return early + self.outcome.reasons

    @cached_property
    def posterior(self) -> Posterior | None:
        """Summaries of the sampled trees; None if the method gives no trees."""
        if self.outcome.sample is not None:
            return summarise(self.outcome.sample)
        if self.outcome.labelled is not None:
            trees = self.outcome.labelled
            return summarise(from_trees((simplified(trees.tree(i)) for i in range(trees.n_samples)), trees.weights.tolist()))
        return None

    @cached_property
    def consensus(self) -> Tree | None:
        """The majority-rule consensus, rooted for drawing, internal vertices named Node1, Node2, ..."""
        return None if self.posterior is None else self.prepared(self.posterior.majority)

    @cached_property
    def credible_tree(self) -> Tree | None:
        """The maximum clade credibility tree, rooted and named likewise."""
        return None if self.posterior is None else self.prepared(self.posterior.credible)

    @cached_property
    def trees(self) -> TreeSample | None:
        """Equal-weight sample of the posterior, resampled systematically."""
        sample = self.outcome.sample
        return None if sample is None else equal_weights(sample, self.settings.n_trees)

    @cached_property
    def labelled_trees(self) -> tuple[Tree, ...]:
        """Equal-weight sample of the augmented space's trees, vertices named, dangling and degree-two ones removed."""
        labelled: LabelledSample | None = self.outcome.labelled
        if labelled is None:
            return ()
        return tuple(simplified(labelled.tree(i)) for i in systematic(labelled.weights, self.settings.n_trees, 0.5).tolist())

    @cached_property
    def states(self) -> AncestralStates | None:
        """Ancestral states at the named vertices of the consensus (or of the labelled trees)."""
        if self.outcome.labelled is not None:
            names = tuple(name for name in self.outcome.labelled.labels if name)
            used = np.full(len(names), self.outcome.labelled.n_samples)
            states = self.outcome.labelled.states
            return AncestralStates(names, states, used, self.outcome.labelled.n_samples, self.patterns.site_pattern)
        if self.outcome.sample is None or self.consensus is None:
            return None
        reference = self.patterns.taxa.index(self.settings.outgroup[0]) if self.settings.outgroup else 0
        return ancestral_states(self.outcome.sample, self.patterns, self.consensus, reference, threads=self.provenance.threads)

    @property
    def missing_share(self) -> float:
        """Share of the alignment that is gaps or missing data."""
        per_pattern = (self.patterns.codes == MISSING).mean(axis=0)
        return float(per_pattern @ self.patterns.counts / max(1, self.patterns.n_sites))

    def prepared(self, tree: Tree) -> Tree:
        """A summary tree as it is written and drawn: rooted beside the outgroup (default: the first taxon), named."""
        try:
            rooted = rooted_at(tree, self.settings.outgroup or self.patterns.taxa[:1])
        except TreeError:  # several taxa that are no group in this tree
            rooted = rooted_at(tree, self.settings.outgroup[:1])
        return named(ladderised(rooted))

    def _repr_html_(self) -> str:
        """A summary for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{value.log_evidence:.2f} ± {value.std_error:.2g}</td>"
            f"<td>{escape(value.target)}</td></tr>"
            for name, value in self.outcome.estimates.items()
        )
        verdict = "can be trusted" if self.trust_ok else "cannot be trusted"
        reasons = "; ".join(escape(reason) for reason in self.reasons)
        return (
            f"<p><b>{escape(self.provenance.file)}</b>: {self.patterns.n_taxa} taxa, {self.patterns.n_sites} sites. "
            f"The result {verdict}: {reasons}.</p>"
            f"<table><tr><th>estimate</th><th>log evidence</th><th>target</th></tr>{rows}</table>"
        )


def equal_weights(sample: TreeSample, size: int) -> TreeSample:
    """`size` trees of equal weight that stand for the weighted sample.

    Systematic resampling along the topologies and, within one, along the tree length: each topology occurs as often as its
    probability says, give or take one tree. The order of the trees is then mixed, since other programs read a tree file
    as a chain. The same sample always gives the same trees.
    """
    order = np.lexsort((sample.lengths[:, 1:].sum(axis=1), sample.topology))
    chosen = order[systematic(sample.weights[order], size, 0.5)]
    return sample.select(np.random.default_rng(0).permutation(chosen))


@dataclass(frozen=True)
class Stopped:
    """Where the steps of a method ended."""

    outcome: Outcome
    complete: bool
    state: dict[str, NDArray]
    timings: dict[str, float]


Save = Callable[[dict[str, NDArray], dict[str, float]], None]


class Interrupted(KeyboardInterrupt):
    """The user stopped the run; `saved` says whether a checkpoint is there to go on from."""

    def __init__(self, saved: bool) -> None:
        super().__init__()
        self.saved = saved


def run_steps(
    patterns: SitePatterns,
    settings: Settings,
    *,
    threads: int = 1,
    state: dict[str, NDArray] | None = None,
    timings: dict[str, float] | None = None,
    time_limit: float | None = None,
    save: Save | None = None,
    tell: Callable[[Progress], None] = lambda progress: None,
    clock: Callable[[], float] = time.monotonic,
) -> Stopped:
    """Step after step until the method is done or the time is up; `save` is called between steps now and then.

    `state` (arrays of an earlier state) goes on where it was saved. How often is saved depends on the clock, what is
    saved does not: any saved state leads to the same outcome.
    """
    began = saved_at = clock()
    method = method_of(settings)
    seconds = dict(timings or {})
    now: Any = None
    save_took = 0.0
    fresh = True  # whether the present state is newer than the last one saved
    held: dict[str, NDArray] | None = None  # the state before it was hurried: a later run goes on from there
    try:
        now = method.initialise(patterns, settings) if state is None else method.from_arrays(state, patterns, settings)
        while not method.is_done(now):
            if time_limit is not None and clock() - began > time_limit - RESERVE:
                try:
                    outcome = method.outcome(now)
                except NotYet:  # nothing honest to report yet: go the quickest way until there is
                    if held is None:
                        with suppress(NotYet):
                            before = method.to_arrays(now)
                            now = method.hurried(now)
                            held = before
                else:
                    return Stopped(outcome, False, held or method.to_arrays(now), seconds)
            step_began = clock()
            now, progress = method.step(now, threads)
            if time_limit is not None and clock() - began > time_limit:
                progress = replace(
                    progress, message=f"{progress.message} (past the time limit, there is no result to report yet)"
                )
            fresh = True
            seconds[progress.stage] = seconds.get(progress.stage, 0.0) + clock() - step_began
            tell(progress)
            if save is not None and held is None and clock() - saved_at > max(SAVE_EVERY, 20 * save_took):
                saved_at = clock()
                save(method.to_arrays(now), seconds)
                save_took, fresh = clock() - saved_at, False
        return Stopped(method.outcome(now), held is None, held or method.to_arrays(now), seconds)
    except KeyboardInterrupt:
        if save is not None and now is not None and fresh:
            save(held or method.to_arrays(now), seconds)
        raise Interrupted(save is not None and now is not None) from None
