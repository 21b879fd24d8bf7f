"""The posterior of trees, branch lengths and parameters under any models, as arrays for the kernels.

A `Target` is made once, from parts (patterns with a model each) and a prior of branch lengths, and offers arrays for the kernels:
`data`, fixed; `family(z)`, the models at parameter points z; the prior's numbers. z (N, d) is one unconstrained vector for all
parts: each model's own parameters, one after the other (or one set for all), then the logs of the parts' relative rates.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, log_softmax

from vaiphy.kernels import families
from vaiphy.kernels.constraints import Rules
from vaiphy.kernels.layout import COUNTED, REPEATED
from vaiphy.models.arrays import EqualInput, decomposition
from vaiphy.models.priors import LengthPrior
from vaiphy.target.parts import Part
from vaiphy.trees.constraints import Constraint
from vaiphy.trees.counts import log_n_unrooted
from vaiphy.workers.spread import Shared

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """A posterior over unrooted binary trees, branch lengths and model parameters.

    With several parts, `linked_rates` False gives each part a rate of its own (flat Dirichlet on rates weighted by sites, so
    that their mean is one); True gives all parts the same lengths. `owners`: for each part, the index of the part whose
    parameters and rate it uses (their models may differ in the number of states alone); empty: each its own. `prior_only`
    leaves the data out: what is inferred is the prior itself. `constraint`: which trees are allowed (None: all).
    """

    taxa: tuple[str, ...]
    parts: tuple[Part, ...]
    length_prior: LengthPrior
    linked_rates: bool = True
    owners: tuple[int, ...] = ()
    prior_only: bool = False
    constraint: Constraint | None = None

    @property
    def n_taxa(self) -> int:
        return len(self.taxa)

    @property
    def n_sites(self) -> int:
        return round(sum(float(part.counts.sum()) for part in self.parts))

    @property
    def n_patterns(self) -> int:
        return sum(len(part.counts) for part in self.parts)

    @cached_property
    def n_rates(self) -> int:
        """Free relative rates of parts."""
        return 0 if self.linked_rates else len(self.own_parts) - 1

    @cached_property
    def n_parameters(self) -> int:
        return sum(self.parts[k].model.n_parameters for k in self.own_parts) + self.n_rates

    @cached_property
    def own_parts(self) -> tuple[int, ...]:
        """Indices of the parts with parameters and a rate of their own."""
        return tuple(sorted(set(self._owner_of)))

    @property
    def _owner_of(self) -> tuple[int, ...]:
        return self.owners or tuple(range(len(self.parts)))

    @cached_property
    def _slices(self) -> tuple[slice, ...]:
        """Where each part's parameters are in z."""
        ends = np.cumsum([0, *(self.parts[k].model.n_parameters for k in self.own_parts)]).tolist()
        own = {k: slice(a, b) for k, (a, b) in zip(self.own_parts, pairwise(ends))}
        return tuple(own[k] for k in self._owner_of)

    @property
    def _owners(self) -> tuple[tuple[Part, slice], ...]:
        """The parts with parameters of their own, and where these are in z."""
        return tuple((self.parts[k], self._slices[k]) for k in self.own_parts)

    @cached_property
    def log_topology_prior(self) -> float:
        return -log_n_unrooted(self.n_taxa) if self.constraint is None else -log(self.constraint.n_trees)

    @cached_property
    def rules(self) -> Rules:
        """Which trees are allowed, as the kernels read it."""
        return (self.constraint or Constraint(self.n_taxa)).rules

    @cached_property
    def prior_numbers(self) -> Floats:
        """(alpha of outer branches, alpha of inner ones, rate, power of the tree length), as the kernels read them."""
        terms = self.length_prior.terms(self.n_taxa)
        return np.array([terms.alpha_outer, terms.alpha_inner, terms.rate, terms.power])

    def log_length_prior(self, lengths: Floats, tops: NDArray[np.int64]) -> Floats:
        """Log prior density of lengths (N, 2n-2) of trees rooted at taxon 0, whose branch above tops[i] is an outer one."""
        n, terms = self.n_taxa, self.length_prior.terms(self.n_taxa)
        branches = lengths[:, 1:]
        total = branches.sum(axis=1)
        value = terms.constant - terms.rate * total
        if terms.power:
            value = value + terms.power * np.log(total)
        if terms.alpha_outer != 1.0 or terms.alpha_inner != 1.0:
            logs = np.log(branches)
            top = logs[np.arange(len(tops)), tops - 1]
            outer = logs[:, : n - 1].sum(axis=1) + top
            value = value + (terms.alpha_outer - 1.0) * outer
            value = value + (terms.alpha_inner - 1.0) * (logs.sum(axis=1) - outer)
        return value

    def log_parameter_prior(self, z: Floats) -> Floats:
        """Log prior density of z (N, d) in its own space."""
        value = np.zeros(len(z))
        for part, here in self._owners:
            value = value + part.model.log_prior(z[:, here])
        if self.n_rates:
            # Flat Dirichlet on the shares of all substitutions; the Jacobian of the log-ratios is the product of the shares.
            value = value + gammaln(len(self.own_parts)) + self._log_shares(z).sum(axis=1)
        return value

    def log_natural_prior(self, z: Floats) -> Floats:
        """Log prior density of the parameters as people know them (simplexes, alpha, p_inv), as other programs report it."""
        value, at = np.zeros(len(z)), 0
        for part, _ in self._owners:
            for block in part.model.blocks:
                own = block.values(z[:, at : at + block.n_free])
                at += block.n_free
                value = value + (gammaln(block.size) if block.kind == "simplex" else -own[:, 0] * (block.kind == "positive"))
        return value + (gammaln(len(self.own_parts)) if self.n_rates else 0.0)

    def draw_parameters(self, n: int, rng: np.random.Generator) -> Floats:
        """z from the prior, (n, d)."""
        columns = [part.model.draw_prior(n, rng) for part, _ in self._owners]
        if self.n_rates:
            logs = np.log(rng.standard_exponential((n, len(self.own_parts))))
            columns.append(logs[:, :-1] - logs[:, -1:])
        return np.concatenate([np.zeros((n, 0)), *columns], axis=1)

    def start_parameters(self) -> Floats:
        """A point z (d,) to begin with."""
        rates = np.log(self._site_shares[:-1] / self._site_shares[-1])[: self.n_rates]
        return np.concatenate([*(part.model.start() for part, _ in self._owners), rates])

    def columns(self, z: Floats) -> dict[str, Floats]:
        """Parameters under MrBayes's names; with several parts each name is followed by the part's number in braces."""
        out: dict[str, Floats] = {}
        for k, (part, here) in enumerate(self._owners):
            own = part.model.columns(z[:, here])
            out |= {name if len(self._owners) == 1 else f"{name}{{{k + 1}}}": values for name, values in own.items()}
        if self.n_rates:
            rates = self._part_rates(z)
            out |= {f"m{{{number}}}": rates[:, k] for number, k in enumerate(self.own_parts, start=1)}
        return out

    @cached_property
    def data(self) -> families.Data:
        """The patterns as the kernels read them."""
        spectral = self._spectral
        # Invariable sites are a rate category like the others here, of rate zero.
        states = np.array([part.model.n_states for part in self.parts], dtype=np.int64)
        categories = np.array([part.model.n_categories + part.model.invariable for part in self.parts], dtype=np.int64)
        tips, counts = zip(*(part.unobserved if self.prior_only else part.observed for part in self.parts))
        patterns = np.array([len(count) for count in counts], dtype=np.int64)
        terms = categories * (states - 1) if spectral else categories
        ascertained = np.array([part.counts.sum() * (part.model.ascertained and not self.prior_only) for part in self.parts])
        rows = [
            states, categories, patterns, categories * states * patterns, states * patterns, patterns, states, categories, terms,
            (terms + 1) * patterns,
        ]  # fmt: skip
        layout = np.zeros((12, len(self.parts) + 1), dtype=np.int64)
        layout[:3, :-1] = rows[:3]
        layout[3:10] = [_starts(row) for row in rows[3:]]
        layout[REPEATED, :-1] = [int(((count != 1.0) & (count != 0.0)).sum()) for count in counts]
        layout[COUNTED, :-1] = [int((count != 0.0).sum()) for count in counts]
        flat = np.ascontiguousarray(np.concatenate([tip.reshape(self.n_taxa, -1) for tip in tips], axis=1))
        return families.Data(layout, flat, np.concatenate(counts), ascertained)

    @cached_property
    def shared(self) -> Shared:
        """Data and the prior's numbers, for workers."""
        return Shared((self.data, self.prior_numbers))

    def family(self, z: Floats) -> families.EqualInput | families.Spectral:
        """The models at N parameter points z (N, d), as the kernels read them."""
        arrays = [part.model.arrays(z[:, here]) for part, here in zip(self.parts, self._slices)]
        part_rates = self._part_rates(z)
        rates, weights = [], []
        for k, (part, a) in enumerate(zip(self.parts, arrays)):
            own, share = a.rates * part_rates[:, k : k + 1], a.weights
            if part.model.invariable:
                own = np.concatenate([np.zeros((len(z), 1)), own], axis=1)
                share = np.concatenate([a.p_inv[:, None], share], axis=1)
            rates.append(own)
            weights.append(share)
        pi, rate, weight = (np.ascontiguousarray(np.concatenate(x, axis=1)) for x in ([a.pi for a in arrays], rates, weights))
        if not self._spectral:
            return families.EqualInput(
                pi, np.ascontiguousarray(np.stack([a.beta for a in arrays if isinstance(a, EqualInput)], axis=1)), rate, weight
            )
        spectra = [decomposition(a) for a in arrays]
        forward, backward, decay = (np.ascontiguousarray(np.concatenate(x, axis=1)) for x in zip(*spectra))
        return families.Spectral(pi, forward, backward, decay, rate, weight)

    def words(self) -> list[str]:
        """Models and priors in plain sentences."""
        free = "Topologies: all unrooted binary trees equally likely."
        last = [self.length_prior.words(), free if self.constraint is None else self.constraint.words(self.taxa)]
        if self.prior_only:
            last.append("The data are left out: what is sampled is the prior.")
        lines: list[str] = []
        for k, sites in zip(self.own_parts, self._sites):
            lines += self._part_words(k, f"Part {self.parts[k].name} ({sites:.0f} sites): " if len(self.own_parts) > 1 else "")
        if len(self.own_parts) > 1:
            lines.append(
                "Parts have the same branch lengths." if self.linked_rates
                else "Parts share branch lengths up to a rate each; flat Dirichlet on the rates, whose mean over sites is one."
            )  # fmt: skip
        return lines + last

    def _part_words(self, k: int, prefix: str) -> list[str]:
        """A part's model, with the numbers of states of all that share its parameters."""
        model = self.parts[k].model
        own = [part for part, owner in zip(self.parts, self._owner_of) if owner == k]
        if len(own) == 1:
            return [prefix + model.words()[0], *model.words()[1:]]
        groups = ", ".join(f"{part.counts.sum():.0f} of {part.model.n_states}" for part in own)
        states = f"characters by their number of states (the highest label plus one): {groups}"
        return [f"{prefix}Model {model.name} for {model.alphabet.kind}, {states}.", *model.words()[1:]]

    @cached_property
    def _spectral(self) -> bool:
        return any(part.model.family == "spectral" for part in self.parts)

    @cached_property
    def _sites(self) -> Floats:
        """Number of sites of each part with parameters of its own, those that share them included."""
        sites = np.zeros(len(self.parts))
        np.add.at(sites, list(self._owner_of), [part.counts.sum() for part in self.parts])
        return sites[list(self.own_parts)]

    @cached_property
    def _site_shares(self) -> Floats:
        return self._sites / self._sites.sum()

    def _log_shares(self, z: Floats) -> Floats:
        return log_softmax(np.concatenate([z[:, self.n_parameters - self.n_rates :], np.zeros((len(z), 1))], axis=1), axis=1)

    def _part_rates(self, z: Floats) -> Floats:
        """Relative rates of the parts (N, n_parts); their mean, weighted by sites, is one."""
        if not self.n_rates:
            return np.ones((len(z), len(self.parts)))
        rates = np.exp(self._log_shares(z)) / self._site_shares
        return rates[:, [self.own_parts.index(owner) for owner in self._owner_of]]


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
