"""What a bridge starts from: a distribution of trees, lengths and parameters that can be drawn from and evaluated exactly.

Trees and lengths: laws as of `kernels.clades` (each clade split given the clade it is part of, a Gamma for each branch), one for
each island. Parameters:
`parameter_law`. All are fitted to weighted trees; nothing learned at all is the prior.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clade_draws, clades, rooted
from vaiphy.kernels.mixtures import Mixture
from vaiphy.parallel import chunks
from vaiphy.posterior import parameter_law
from vaiphy.posterior.islands import islands
from vaiphy.posterior.length_response import no_response
from vaiphy.posterior.mixing import NO_GUARD, densities, mixture_of
from vaiphy.posterior.parameter_law import LengthScaling, ParameterLaw, length_scaling
from vaiphy.posterior.rare import emphasised
from vaiphy.posterior.tree_law import LEAST_SHAPE, Fitting, TreeLaw, Trees, clade_keys, fit_law, log_constant, log_trees, n_words
from vaiphy.target import Target
from vaiphy.weights import systematic
from vaiphy.workers.spread import Shared, Workers, spread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DEFAULT = Fitting()
#: Trees drawn or evaluated in one piece of work.
PIECE = 64


@dataclass(frozen=True, eq=False)
class Proposal:
    """A distribution of (tree, lengths, parameters): a mixture of laws of trees, with shares, and one of parameters.

    Islands of trees (or of lengths) have laws of their own, since one law of many tables would blend them. `guard`: expected
    number of lengths in a guarded draw that come from wider distributions than they are fitted to. Lengths of guarded draws also
    know each other (`kernels.clade_draws`) and the parameters (`scaling`).

    On the way to the posterior the mixture becomes sum_c share_c law_c^(1 - beta): given the law c, that is law_c^(1 - beta), so
    each tree is moved under one law, drawn anew at every stage.
    """

    target: Target
    laws: tuple[TreeLaw, ...]
    log_shares: Floats
    parameters: ParameterLaw
    guard: float = 0.0
    scaling: LengthScaling | None = None

    @cached_property
    def shared(self) -> Shared:
        """What drawing, moving and evaluating trees need of this, for workers."""
        return Shared((self.laws, mixture_of(self.laws), self.keys))

    @property
    def keys(self) -> NDArray[np.uint64]:
        return clade_keys(self.target.n_taxa)

    def log_path(self, log_laws: Floats, beta: float) -> Floats:
        """Log of the mixture on the way, from log-densities (n, laws) under each law; at beta = 0 that of the proposal."""
        if len(self.laws) == 1:
            return np.asarray((1.0 - beta) * log_laws[:, 0])
        terms = (1.0 - beta) * log_laws + self.log_shares
        top = terms.max(axis=1)
        return np.asarray(top + np.log(np.exp(terms - top[:, None]).sum(axis=1)))

    def choose_laws(self, log_laws: Floats, beta: float, rng: np.random.Generator) -> Ints:
        """One law for each tree, given the tree."""
        if len(self.laws) == 1:
            return np.zeros(len(log_laws), dtype=np.int64)
        shares = np.exp((1.0 - beta) * log_laws + self.log_shares - self.log_path(log_laws, beta)[:, None])
        return np.minimum((np.cumsum(shares, axis=1) < rng.random((len(shares), 1))).sum(axis=1), len(self.laws) - 1)

    def sample(self, n: int, seed: list[int], threads: Workers = 1) -> tuple[Ints, Floats, Ints, Floats]:
        """n draws: children (n, n_taxa-2, 2), lengths (n, 2 n_taxa-2), tops (n,), z (n, d)."""
        return replace(self, guard=0.0).guarded_sample(n, seed, threads)[:4]

    def guarded_sample(self, n: int, seed: list[int], threads: Workers = 1) -> "GuardedDraws":
        """As `sample`, some lengths drawn more widely."""
        pieces, rng = [], np.random.default_rng([*seed, n, 2])
        laws = systematic(np.exp(self.log_shares), n, rng.random()) if len(self.laws) > 1 else np.zeros(n, dtype=np.int64)
        laws = np.sort(laws)
        z = self.parameters.sample(n, np.random.default_rng([*seed, n, 1]))
        scales = self._scales(z)
        for law in range(len(self.laws)):
            begin = int(np.searchsorted(laws, law))
            for part in chunks(int((laws == law).sum()), PIECE):
                own = scales[begin + part.start : begin + part.stop]
                pieces.append((self.target.n_taxa, self._wide, law, own, (*seed, law, part.start)))
        drawn = spread(draw_piece, (self.shared,), pieces, threads)
        children, lengths, tops, wide = (np.concatenate(column) for column in zip(*drawn))
        return GuardedDraws(children, lengths, tops, z, wide, laws)

    def log_guarded(
        self, children: Ints, lengths: Floats, tops: Ints, z: Floats, threads: Workers = 1
    ) -> tuple[Floats, Floats, Floats]:
        """Log-densities of guarded draws, of those in which no length is drawn more widely, and under each law (n, laws)."""
        log_laws, guarded, plain = self._densities(children, lengths, tops, self._wide, self._scales(z), threads)
        return self.log_path(log_laws + guarded, 0.0), self.log_path(log_laws + plain, 0.0), log_laws

    def log_laws(self, children: Ints, lengths: Floats, tops: Ints, threads: Workers = 1) -> Floats:
        """Log-densities (n, laws) of trees and lengths under each law."""
        return self._densities(children, lengths, tops, NO_GUARD, np.ones(len(children)), threads)[0]

    def _densities(
        self, children: Ints, lengths: Floats, tops: Ints, guard: Floats, scales: Floats, threads: Workers
    ) -> tuple[Floats, Floats, Floats]:
        parts = chunks(len(children), PIECE)
        pieces = [(guard, scales[part], children[part], lengths[part], tops[part]) for part in parts]
        log_laws, guarded, plain = (
            np.concatenate(column) for column in zip(*spread(density_piece, (self.shared,), pieces, threads))
        )
        return log_laws, guarded, plain

    def _scales(self, z: Floats) -> Floats:
        return np.ones(len(z)) if self.scaling is None else self.scaling.factors(z)

    @property
    def _wide(self) -> Floats:
        terms = self.target.length_prior.terms(self.target.n_taxa)
        share = min(self.guard / (2 * self.target.n_taxa - 3), 0.5)
        prior = [terms.alpha_outer, terms.rate, terms.alpha_inner, terms.rate]
        return np.array([share, *prior, log_constant(*prior[:2]), log_constant(*prior[2:])], dtype=np.float64)

    def is_forbidden(self, children: Ints, tops: Ints) -> NDArray[np.bool_]:
        """Which trees have a split that they must not have: those are drawn, but the prior does not know them."""
        forbidden = self.target.rules.forbidden
        if not len(forbidden):
            return np.zeros(len(children), dtype=bool)
        names = np.empty((len(children), 2 * self.target.n_taxa - 2), dtype=np.uint64)
        rooted.vertex_identities(children, tops, self.keys, names)
        return np.asarray(np.isin(names, forbidden).any(axis=1))


class GuardedDraws(NamedTuple):
    """Draws as `Proposal.sample` gives them, how many lengths of each were drawn more widely (none: it is one of those), and the
    law that it is drawn from.
    """

    children: Ints
    lengths: Floats
    tops: Ints
    z: Floats
    n_wide: Ints
    laws: Ints


def draw_piece(
    laws: tuple[TreeLaw, ...], mixture: Mixture, keys: NDArray[np.uint64], n_taxa: int, guard: Floats, law: int, scales: Floats,
    seed: tuple[int, ...],
) -> tuple[Ints, Floats, Ints, Ints]:  # fmt: skip
    """A few trees from one of the laws, guarded as `clade_draws.sample` has it."""
    n = len(scales)
    children, tops = np.empty((n, n_taxa - 2, 2), dtype=np.int64), np.empty(n, dtype=np.int64)
    lengths, wide = np.zeros((n, 2 * n_taxa - 2)), np.empty(n, dtype=np.int64)
    rng = np.random.default_rng(seed)
    clade_draws.sample(laws[law].clades, laws[law].draws, keys, guard, scales, rng, children, lengths, tops, wide)
    return children, lengths, tops, wide


def density_piece(
    laws: tuple[TreeLaw, ...], mixture: Mixture, keys: NDArray[np.uint64], guard: Floats, scales: Floats, children: Ints,
    lengths: Floats, tops: Ints,
) -> tuple[Floats, Floats, Floats]:  # fmt: skip
    """Log-densities of a few trees under each law; those of draws, with and without the guard, over these."""
    return densities(mixture, keys, guard, scales, children, lengths, tops)


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
    tables = clades.Clades(empty, np.zeros(2), empty, np.zeros((2, 4)), log_trees(target.n_taxa), numbers, target.rules)
    draws = clade_draws.Draws(
        none, none, np.zeros((1, n_words(target.n_taxa)), dtype=np.uint64), np.zeros(1), no_response(np.zeros(2))
    )
    return Proposal(target, (TreeLaw(tables, draws),), np.zeros(1), ParameterLaw(target))


def fit(
    target: Target, children: Ints, lengths: Floats, tops: Ints, z: Floats, weights: Floats, fitting: Fitting = DEFAULT
) -> Proposal:
    """The proposal fitted to weighted trees (weights sum to one)."""
    kept = weights > 0
    trees, z, weights = Trees(children[kept], lengths[kept], tops[kept]), z[kept], weights[kept]
    groups = islands(target, trees, weights, fitting)
    shares = np.array([weights[group].sum() for group in groups])
    scaling = length_scaling(z, trees.lengths, weights, fitting.parameters.pseudo)[0] if z.shape[1] else None
    scales = np.ones(len(z)) if scaling is None else scaling.factors(z)
    laws = [fit_law(target, trees.take(group), weights[group], fitting, scales[group]) for group in groups]
    shares = (1.0 - fitting.islands.alike) * shares + fitting.islands.alike / len(groups)
    rare = emphasised(target, trees, weights, fitting)
    if rare:
        laws += [fit_law(target, trees, own, fitting, scales) for own in rare]
        shares = np.concatenate([(1.0 - fitting.rare.share) * shares, np.full(len(rare), fitting.rare.share / len(rare))])
    parameters = parameter_law.fit(target, z, weights, fitting.parameters)
    return Proposal(target, tuple(laws), np.log(shares / shares.sum()), parameters, fitting.guard, scaling)
