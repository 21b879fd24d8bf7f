"""VaiPhy: a variational distribution over trees, branch lengths and ancestral sequences, by coordinate ascent (paper, Alg. 1).

`fit` runs the iterations of `steps` and returns a `Fit`: weighted samples of augmented trees for the IWELBO and
MISELBO (`summary.evidence`), ancestral sequences, and trees for people (`augmented`).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches.law import LengthLaw, Moments
from vaiphy.likelihood import node_marginals
from vaiphy.topology.augmented import AugmentedLaw
from vaiphy.trees.augmented import AugmentedTrees, vertex_labels
from vaiphy.trees.sample import TreeSample
from vaiphy.trees.tree import Tree
from vaiphy.vi.augmented import resolve, tidy
from vaiphy.vi.settings import Settings
from vaiphy.vi.steps import (
    Info,
    State,
    edge_log_weights,
    edge_moments,
    initialise,
    length_rows,
    log_joint,
    step,
    tree_law,
)
from vaiphy.vi.updates import Columns, EdgeCounts, columns, expected_counts

Floats = NDArray[np.float64]


def fit(
    patterns: SitePatterns,
    *,
    initial: str | Tree = "bionj",
    rng: np.random.Generator,
    threads: int = 1,
    report: Callable[[Info], bool | None] | None = None,
    state: State | None = None,
    **options: Any,
) -> "Fit":
    """Fit q(tau) q(B | tau) q(Z) to an alignment's site patterns.

    `options` are the fields of `Settings`. `report` is called after each iteration and stops the fit by returning
    True. A `state` to continue from replaces the initialisation. The best iteration is kept: the last one with the
    exact distribution, whose ELBO never decreases.

    >>> import vaiphy
    >>> patterns = vaiphy.compress(vaiphy.datasets.load("DS1"))  # doctest: +SKIP
    >>> result = vaiphy.fit(patterns, rng=np.random.default_rng(1))  # doctest: +SKIP
    >>> result.elbo_trace[-1]  # doctest: +SKIP
    """
    settings = Settings(**options)
    if state is None:
        state = initialise(patterns, settings, initial=initial, rng=rng, threads=threads)
    data = columns(patterns)
    best, trace = state, [Info(state.iteration, state.elbo, state.score, inf, float("nan"))]
    for _ in range(settings.iterations):
        state, info = step(state, data, settings, rng=rng, threads=threads)
        trace.append(info)
        if state.score >= best.score or not np.isfinite(best.score):
            best = state
        if report is not None and report(info):
            break
        if not settings.sampled_score and abs(info.change) < settings.tolerance * settings.step_size:
            break
    return Fit(patterns, settings, best.ancestral, best.iteration, tuple(trace))


def align(fits: Sequence["Fit"]) -> list["Fit"]:
    """The fits with their internal vertices renamed to match those of the first as well as possible.

    Names of internal vertices are exchangeable, so this changes no fit's bound; but a mixture (MISELBO) gains only
    where its components mean the same vertices by the same names. Vertices are matched by the agreement of their
    sequences.
    """
    from scipy.optimize import linear_sum_assignment

    first = fits[0]
    aligned = [first]
    for other in fits[1:]:
        weighted = first.ancestral * first.columns.counts
        n_internal = len(weighted)
        agreement = weighted.reshape(n_internal, -1) @ other.ancestral.reshape(n_internal, -1).T
        _, order = linear_sum_assignment(-agreement)
        aligned.append(replace(other, ancestral=np.ascontiguousarray(other.ancestral[order])))
    return aligned


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted variational distribution; its proposals over trees and branch lengths are made from q(Z) alone.

    `ancestral` is q(Z) (n-2, 4, P') of the best iteration over the patterns `columns.kept`.
    """

    patterns: SitePatterns
    settings: Settings
    ancestral: Floats
    best_iteration: int
    trace: tuple[Info, ...]

    @property
    def elbo_trace(self) -> Floats:
        """ELBO after each iteration, from the initial state on."""
        return np.array([info.elbo for info in self.trace])

    @property
    def elbo(self) -> float:
        """ELBO of the iteration that was kept, a lower bound of the augmented model's log-evidence."""
        first = self.trace[0].iteration
        return self.trace[self.best_iteration - first].elbo

    @cached_property
    def columns(self) -> Columns:
        return columns(self.patterns)

    @cached_property
    def counts(self) -> EdgeCounts:
        """Expected counts on all edges (phi and its complement) from sufficiently observed columns."""
        return expected_counts(self.columns, self.ancestral, self.settings.min_observed)

    @cached_property
    def length_law(self) -> LengthLaw:
        """The distribution that branch lengths are sampled from."""
        rows = length_rows(self.settings, self.counts)
        log_norm = np.ascontiguousarray(self._moments.log_norm)
        return LengthLaw(rows, log_norm, self.settings.prior_share, self.settings.prior_rate)

    @cached_property
    def _moments(self) -> Moments:
        return edge_moments(length_rows(self.settings, self.counts))

    @cached_property
    def edge_log_weights(self) -> Floats:
        """Log-weights of all edges (2n-2, n-2) in the distribution that trees are sampled from."""
        return edge_log_weights(self.settings, self.counts, length_rows(self.settings, self.counts), self._moments)

    @cached_property
    def tree_law(self) -> AugmentedLaw:
        return tree_law(self.settings, self.edge_log_weights)

    def sample_trees(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> AugmentedTrees:
        """Independent draws from q(tau) q(B | tau), with log-densities."""
        tree_rng, length_rng = rng.spawn(2)
        parents, log_tree = self.tree_law.sample(n_trees, tree_rng, threads)
        lengths, log_lengths = self.length_law.sample_trees(parents, length_rng, threads)
        return AugmentedTrees(self.patterns.taxa, parents, lengths, log_tree + log_lengths)

    def log_density(self, trees: AugmentedTrees) -> Floats:
        """log q(tau, B) of any trees of the augmented space, rooted at an internal vertex."""
        return self.tree_law.log_density(trees.parents) + self.length_law.log_density_of_trees(trees.parents, trees.lengths)

    def log_joint(self, trees: AugmentedTrees, threads: int = 1) -> Floats:
        """log p(X, B, tau): likelihood with Z summed out, Exp prior on all 2n-3 branches, uniform augmented trees."""
        return log_joint(self.columns, trees.parents, trees.lengths, self.settings.prior_rate, threads)

    def sample_log_weights(self, n_samples: int, rng: np.random.Generator, threads: int = 1) -> Floats:
        """Importance log-weights log p(X, B, tau) - log q(B, tau) of fresh draws; for `evidence.iwelbo`."""
        trees = self.sample_trees(n_samples, rng, threads)
        return self.log_joint(trees, threads) - trees.log_density

    def sample_mixture_log_weights(
        self, components: Sequence["Fit"], n_samples: int, rng: np.random.Generator, threads: int = 1
    ) -> Floats:
        """As `sample_log_weights`, with the uniform mixture of all `components` as the density; for `evidence.miselbo`."""
        trees = self.sample_trees(n_samples, rng, threads)
        log_densities = np.stack([component.log_density(trees) for component in components])
        log_mixture = np.logaddexp.reduce(log_densities, axis=0) - np.log(len(components))
        return self.log_joint(trees, threads) - log_mixture

    def most_probable_tree(self, contract_below: float | None = None) -> Tree:
        """The tree of highest probability under q(tau), with mean branch lengths; internal vertices are labelled.

        With `contract_below` it is tidied for people: no dangling or degree-two vertices, and internal branches not
        above that length contracted, which leaves a multifurcating tree.
        """
        n = self.patterns.n_taxa
        weights = self.edge_log_weights
        parent = np.full(2 * n - 2, -1, dtype=np.int32)
        parent[:n] = n + weights[:n].argmax(axis=1)
        core = weights[n:]
        nearest, gain = np.zeros(n - 2, dtype=np.int32), core[0].copy()
        gain[0] = -inf
        for _ in range(n - 3):  # Prim's algorithm on the internal vertices
            vertex = int(gain.argmax())
            parent[n + vertex] = n + nearest[vertex]
            gain[vertex] = -inf
            closer = (core[vertex] > gain) & (gain > -inf)
            nearest[closer], gain[closer] = vertex, core[vertex][closer]
        length = np.zeros(2 * n - 2)
        inside = np.flatnonzero(parent >= 0)
        length[inside] = self._moments.length[inside, parent[inside] - n]
        tree = Tree(self.patterns.taxa, parent, length, vertex_labels(self.patterns.taxa))
        return tree if contract_below is None else tidy(tree, contract_below)

    def sample_binary(self, n_trees: int, rng: np.random.Generator, threads: int = 1) -> TreeSample:
        """Weighted unrooted binary trees: draws with their importance weights, resolved where they multifurcate.

        The weights are those of the augmented model, which is another posterior than that of unrooted binary trees.
        """
        draw_rng, resolve_rng = rng.spawn(2)
        trees = self.sample_trees(n_trees, draw_rng, threads)
        return resolve(trees, self.log_joint(trees, threads) - trees.log_density, resolve_rng)

    def ancestral_sequences(self, tree: Tree | None = None) -> Floats:
        """Probabilities of A, C, G, T (n_vertices, 4, n_patterns) at the vertices of a tidy tree.

        By default of `most_probable_tree(contract_below=0)`. Given the tree and its lengths they are exact posterior
        probabilities, not the mean-field q(Z).
        """
        return node_marginals(self.most_probable_tree(0.0) if tree is None else tree, self.patterns)

    def to_arrays(self) -> dict[str, NDArray]:
        """The fit without the alignment, as plain arrays for `from_arrays`."""
        trace = np.array([[i.iteration, i.elbo, i.score, i.change, i.effective_trees] for i in self.trace])
        settings = np.frombuffer(json.dumps(asdict(self.settings)).encode(), dtype=np.uint8)
        best = np.array(self.best_iteration)
        return {"ancestral": self.ancestral, "best_iteration": best, "trace": trace, "settings": settings}

    @classmethod
    def from_arrays(cls, patterns: SitePatterns, arrays: dict[str, NDArray]) -> "Fit":
        options = json.loads(bytes(arrays["settings"]).decode())
        options["jc_prior"] = tuple(options["jc_prior"])
        trace = tuple(Info(int(row[0]), *map(float, row[1:])) for row in arrays["trace"])
        return cls(patterns, Settings(**options), arrays["ancestral"], int(arrays["best_iteration"]), trace)
