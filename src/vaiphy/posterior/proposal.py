"""What a bridge starts from: a distribution of trees, lengths and parameters that can be drawn from and evaluated exactly.

Trees and lengths: `kernels.clades` (each clade split given the clade it is part of, a Gamma for each branch). Parameters:
`parameter_law`. All are fitted to weighted trees; nothing learned at all is the prior.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clade_draws, clades, rooted
from vaiphy.parallel import chunks
from vaiphy.posterior import parameter_law
from vaiphy.posterior.parameter_law import ParameterLaw
from vaiphy.posterior.tree_law import LEAST_SHAPE, Fitting, clade_keys, fit_trees, log_constant, log_trees, n_words
from vaiphy.target import Target
from vaiphy.workers.spread import Shared, Workers, spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT = Fitting()
#: Trees drawn or evaluated in one piece of work.
PIECE = 64


@dataclass(frozen=True, eq=False)
class Proposal:
    """A distribution of (tree, lengths, parameters).

    `guard`: expected number of lengths in a guarded draw that come from wider distributions than they are fitted to.
    """

    target: Target
    trees: clades.Clades
    draws: clade_draws.Draws
    parameters: ParameterLaw
    guard: float = 0.0

    @cached_property
    def shared(self) -> Shared:
        """What drawing, moving and evaluating trees need of this, for workers."""
        return Shared((self.trees, self.draws, self.keys))

    @property
    def keys(self) -> NDArray[np.uint64]:
        return clade_keys(self.target.n_taxa)

    def sample(self, n: int, seed: list[int], threads: Workers = 1) -> tuple[Ints, Floats, Ints, Floats]:
        """n draws: children (n, n_taxa-2, 2), lengths (n, 2 n_taxa-2), tops (n,), z (n, d)."""
        return self._draws(n, seed, 0.0, threads)[:4]

    def guarded_sample(self, n: int, seed: list[int], threads: Workers = 1) -> "GuardedDraws":
        """As `sample`, some lengths drawn more widely."""
        return self._draws(n, seed, self.guard, threads)

    def _draws(self, n: int, seed: list[int], guard: float, threads: Workers) -> "GuardedDraws":
        terms = self.target.length_prior.terms(self.target.n_taxa)
        share = min(guard / (2 * self.target.n_taxa - 3), 0.5)
        wide = np.array([share, terms.alpha_outer, terms.rate, terms.alpha_inner, terms.rate], dtype=np.float64)
        pieces = [(self.target.n_taxa, wide, part.stop - part.start, (*seed, part.start)) for part in chunks(n, PIECE)]
        drawn = spread(draw_piece, (self.shared,), pieces, threads)
        children, lengths, tops, ratios, wide = (np.concatenate(column) for column in zip(*drawn))
        z = self.parameters.sample(n, np.random.default_rng([*seed, n, 1]))
        return GuardedDraws(children, lengths, tops, z, ratios, wide.astype(np.int64))

    def is_forbidden(self, children: Ints, tops: Ints) -> NDArray[np.bool_]:
        """Which trees have a split that they must not have: those are drawn, but the prior does not know them."""
        if not len(self.trees.rules.forbidden):
            return np.zeros(len(children), dtype=bool)
        names = np.empty((len(children), 2 * self.target.n_taxa - 2), dtype=np.uint64)
        rooted.vertex_identities(children, tops, self.keys, names)
        return np.asarray(np.isin(names, self.trees.rules.forbidden).any(axis=1))

    def log_density_of_trees(self, children: Ints, lengths: Floats, tops: Ints, threads: Workers = 1) -> Floats:
        pieces = [(children[part], lengths[part], tops[part]) for part in chunks(len(children), PIECE)]
        return np.concatenate(spread(density_piece, (self.shared,), pieces, threads))


class GuardedDraws(NamedTuple):
    """Draws as `Proposal.sample` gives them; the log of the density they were so drawn from over the proposal's, and how many
    lengths were drawn more widely (where none was, the draw is one from the proposal).
    """

    children: Ints
    lengths: Floats
    tops: Ints
    z: Floats
    log_ratio: Floats
    n_wide: Ints


def draw_piece(
    trees: clades.Clades, draws: clade_draws.Draws, keys: NDArray[np.uint64], n_taxa: int, guard: Floats, n: int,
    seed: tuple[int, ...],
) -> tuple[Ints, Floats, Ints, Floats, Ints]:  # fmt: skip
    """A few trees from the proposal, guarded as `clade_draws.sample` has it."""
    children, tops = np.empty((n, n_taxa - 2, 2), dtype=np.int64), np.empty(n, dtype=np.int64)
    lengths, ratios, wide = np.zeros((n, 2 * n_taxa - 2)), np.empty(n), np.empty(n, dtype=np.int64)
    rng = np.random.default_rng(seed)
    clade_draws.sample(trees, draws, keys, guard, rng, children, lengths, tops, ratios, wide)
    return children, lengths, tops, ratios, wide


def density_piece(
    trees: clades.Clades, draws: clade_draws.Draws, keys: NDArray[np.uint64], children: Ints, lengths: Floats, tops: Ints
) -> Floats:
    """Log-densities of a few trees under the proposal."""
    out = np.empty(len(children))
    clades.log_densities(trees, keys, children, lengths, tops, out)
    return out


def prior_proposal(target: Target) -> Proposal:
    """Topologies and parameters from the prior, lengths from a Gamma as near to the prior as independent Gammas are."""
    terms = target.length_prior.terms(target.n_taxa)
    n_branches = 2 * target.n_taxa - 3
    if terms.power:
        # gammadir: a branch has the mean E[T] / n_branches; shape below one keeps short and long ones.
        mean_length = terms.rate and (terms.power + n_branches * terms.alpha_inner) / terms.rate / n_branches
        shape, rate = LEAST_SHAPE, LEAST_SHAPE / min(max(mean_length, 1e-3), 0.1)
    else:
        shape, rate = terms.alpha_outer, terms.rate
    empty, none = np.zeros(2, dtype=np.uint64), np.zeros(2, dtype=np.int64)
    numbers = np.tile([shape, rate, log_constant(shape, rate)], 2)
    trees = clades.Clades(empty, np.zeros(2), empty, np.zeros((2, 4)), log_trees(target.n_taxa), numbers, target.rules)
    draws = clade_draws.Draws(none, none, np.zeros((1, n_words(target.n_taxa)), dtype=np.uint64), np.zeros(1))
    return Proposal(target, trees, draws, ParameterLaw(target))


def fit(
    target: Target, children: Ints, lengths: Floats, tops: Ints, z: Floats, weights: Floats, fitting: Fitting = DEFAULT
) -> Proposal:
    """The proposal fitted to weighted trees (weights sum to one)."""
    kept = weights > 0
    children, lengths, tops, z, weights = children[kept], lengths[kept], tops[kept], z[kept], weights[kept]
    effective = 1.0 / np.square(weights).sum()
    trees, draws = fit_trees(target, children, lengths, tops, weights, effective, fitting)
    return Proposal(target, trees, draws, parameter_law.fit(target, z, weights, fitting.parameters), fitting.guard)
