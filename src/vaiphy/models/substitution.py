"""Substitution models: reversible, with rates across sites and invariable sites, as arrays that the likelihood reads.

Q_ij = r_ij pi_j, scaled to one expected substitution per site and unit length. Two families:

    equal input   all r_ij equal (JC, F81, Mk, binary, Poisson): P(b) = u I + (1 - u) 1 pi', u = exp(-beta rate b),
                  beta = 1 / (1 - sum pi^2)
    spectral      any other: P(b) = backward diag(exp(-decay rate b)) forward, with forward = U' diag(sqrt pi) and
                  backward = diag(pi)^-1 forward', U the orthonormal eigenvectors of diag(sqrt pi) Q diag(sqrt pi)^-1

A share p_inv of sites has rate zero, the rates of the others are divided by 1 - p_inv; that class is no category.
Parameters are blocks (see `blocks`) of one unconstrained vector z, in the order rates, frequencies, alpha, p_inv.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vaiphy.alphabets import Alphabet
from vaiphy.errors import InputError
from vaiphy.models.alphabets import frequencies_of
from vaiphy.models.arrays import Arrays, EqualInput, Spectral, decomposed, transition
from vaiphy.models.blocks import Block, Floats
from vaiphy.models.columns import frequencies_from, frequency_columns, rate_columns, rates_from
from vaiphy.models.grammar import AA_MODELS, ModelString, parse, rate_code
from vaiphy.models.rates import category_means
from vaiphy.models.words import model_words

#: Free frequencies and shares of rates are kept above these inside the arrays, so that nothing is divided by zero and the
#: eigenvalues of Q span fewer digits than there are; no posterior notices.
MIN_FREQUENCY, MIN_RATE = 1e-10, 1e-8
#: A state that does not occur in the data gets this frequency where frequencies are counted; IQ-TREE's is as small.
MIN_COUNTED = 1e-8
#: 1 - p_inv is kept above this, so that rates stay finite.
MIN_VARIABLE = 1e-100


@dataclass(frozen=True, eq=False)
class Model:
    """A substitution model with its priors; make one with `model_of`.

    `rate_classes` says which distinct rate each pair of states i < j has (row by row); `fixed_rates` are the distinct
    rates and `fixed_frequencies` the frequencies where these are no parameters, else None; `counted` are the frequencies
    in the data if known, where frequencies start.
    """

    alphabet: Alphabet
    string: ModelString
    rate_classes: NDArray[np.int64]
    fixed_rates: Floats | None = None
    fixed_frequencies: Floats | None = None
    counted: Floats | None = None

    @property
    def name(self) -> str:
        """The canonical model string."""
        return str(self.string)

    @property
    def n_states(self) -> int:
        return self.alphabet.n_states

    @property
    def n_categories(self) -> int:
        """Rate categories, one without +G; invariable sites are not one of them."""
        return self.string.n_categories

    @property
    def invariable(self) -> bool:
        """Whether some sites cannot change (+I)."""
        return self.string.invariable

    @property
    def ascertained(self) -> bool:
        """Whether the likelihood is given that no character is constant (+ASC)."""
        return self.string.ascertained

    @property
    def family(self) -> Literal["equal_input", "spectral"]:
        return "equal_input" if not self.rate_classes.any() else "spectral"

    @property
    def exchangeable(self) -> bool:
        """Whether all states are alike, so that their names may be permuted."""
        equal = self.fixed_frequencies is not None and bool(np.all(self.fixed_frequencies == self.fixed_frequencies[0]))
        return self.family == "equal_input" and equal

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The free parameters."""
        blocks = []
        if self.fixed_rates is None:
            n_rates = int(self.rate_classes.max()) + 1
            blocks.append(Block("rates", "simplex", (1.0 / n_rates,) * n_rates))
        if self.fixed_frequencies is None:
            start = np.full(self.n_states, 1.0) if self.counted is None else self.counted + 0.01
            blocks.append(Block("frequencies", "simplex", tuple((start / start.sum()).tolist())))
        if self.string.gamma and self.string.alpha is None:
            blocks.append(Block("alpha", "positive", (1.0,)))
        if self.string.invariable and self.string.p_inv is None:
            blocks.append(Block("p_inv", "unit", (0.1,)))
        return tuple(blocks)

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where each block is in z."""
        ends = np.cumsum([0, *(block.n_free for block in self.blocks)]).tolist()
        return {block.name: slice(a, b) for block, a, b in zip(self.blocks, ends, ends[1:])}

    @property
    def n_parameters(self) -> int:
        """d, the length of z."""
        return sum(block.n_free for block in self.blocks)

    def start(self) -> Floats:
        """z (d,) to begin with."""
        return self.unconstrained({block.name: np.array([block.start]) for block in self.blocks})[0]

    def draw_prior(self, n: int, rng: np.random.Generator) -> Floats:
        """n draws of z from the prior, (n, d)."""
        return np.concatenate([np.zeros((n, 0)), *(block.draw(n, rng) for block in self.blocks)], axis=1)

    def log_prior(self, z: Floats) -> Floats:
        """Log prior density of z (N, d) in z's own space, (N,)."""
        return sum((block.log_prior(z[:, self.slices[block.name]]) for block in self.blocks), np.zeros(len(z)))

    def constrained(self, z: Floats) -> dict[str, Floats]:
        """Values by block: simplexes (N, k), alpha and p_inv (N,)."""
        values = {block.name: block.values(z[:, self.slices[block.name]]) for block in self.blocks}
        return {name: value if self._block(name).kind == "simplex" else value[:, 0] for name, value in values.items()}

    def unconstrained(self, values: dict[str, Floats]) -> Floats:
        """The inverse of `constrained`: z (N, d)."""
        if not self.blocks:
            return np.zeros((len(next(iter(values.values()))) if values else 1, 0))
        columns = []
        for block in self.blocks:
            value = np.asarray(values[block.name], dtype=np.float64)
            columns.append(block.unconstrained(value.reshape(len(value), -1)))
        return np.concatenate(columns, axis=1)

    def columns(self, z: Floats) -> dict[str, Floats]:
        """Parameters under MrBayes's names, one column each (N,): kappa, r(A<->C), pi(A), alpha, pinvar."""
        values = self.constrained(z)
        columns: dict[str, Floats] = {}
        if "rates" in values:
            columns |= rate_columns(values["rates"], self.rate_classes, self.alphabet)
        if "frequencies" in values:
            columns |= frequency_columns(values["frequencies"], self.alphabet)
        return columns | {shown: values[name] for name, shown in (("alpha", "alpha"), ("p_inv", "pinvar")) if name in values}

    def from_columns(self, columns: Mapping[str, Floats]) -> Floats:
        """The inverse of `columns`: z (N, d) of a model with parameters; other columns do not matter."""
        read = {
            "rates": lambda: rates_from(columns, self.rate_classes, self.alphabet),
            "frequencies": lambda: frequencies_from(columns, self.alphabet),
            "alpha": lambda: columns["alpha"],
            "p_inv": lambda: columns["pinvar"],
        }
        return self.unconstrained({block.name: read[block.name]() for block in self.blocks})

    def arrays(self, z: Floats) -> Arrays:
        """What the likelihood needs at N parameter points z (N, d)."""
        z = np.asarray(z, dtype=np.float64)
        pi = self.frequencies(z)
        rates, weights, p_inv = self._rates_across_sites(z)
        if self.family == "equal_input":
            changed = np.einsum("ni,ij,nj->n", pi, 1.0 - np.eye(self.n_states), pi)  # 1 - sum pi^2, without cancellation
            return EqualInput(pi, 1.0 / changed, rates, weights, p_inv)
        constant = self.fixed_rates is not None and self.fixed_frequencies is not None
        few = slice(0, min(1, len(z))) if constant else slice(None)
        forward, backward, decay = decomposed(self.exchangeabilities(z[few]), pi[few])
        if constant and len(z) > 1:
            forward, backward, decay = (np.repeat(part, len(z), axis=0) for part in (forward, backward, decay))
        return Spectral(pi, forward, backward, decay, rates, weights, p_inv)

    def transition(self, z: Floats, length: float) -> Floats:
        """Transition probabilities (C, S, S) along a branch at one point z (d,), for each rate category."""
        return transition(self.arrays(np.asarray(z, dtype=np.float64)[None, :]), length)

    def frequencies(self, z: Floats) -> Floats:
        """Frequencies of the states (N, S)."""
        if self.fixed_frequencies is None:
            pi = self._block("frequencies").values(z[:, self.slices["frequencies"]])
        else:
            pi = np.repeat(self.fixed_frequencies[None, :], len(z), axis=0)
        pi = np.maximum(pi, MIN_FREQUENCY)
        return pi / pi.sum(axis=1, keepdims=True)

    def exchangeabilities(self, z: Floats) -> Floats:
        """Symmetric r (N, S, S) with zero diagonal."""
        if self.fixed_rates is None:
            rates = np.maximum(self._block("rates").values(z[:, self.slices["rates"]]), MIN_RATE)
        else:
            rates = np.repeat(self.fixed_rates[None, :], len(z), axis=0)
        first, second = np.triu_indices(self.n_states, k=1)
        full = np.zeros((len(z), self.n_states, self.n_states))
        full[:, first, second] = full[:, second, first] = rates[:, self.rate_classes]
        return full

    def words(self) -> list[str]:
        """The model and all its priors in plain sentences."""
        return model_words(self.string, self.alphabet, self.blocks, self.fixed_frequencies)

    def _block(self, name: str) -> Block:
        return next(block for block in self.blocks if block.name == name)

    def _rates_across_sites(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        string = self.string
        if "alpha" in self.slices:
            alpha = self._block("alpha").values(z[:, self.slices["alpha"]])[:, 0]
        else:
            alpha = np.full(len(z), string.alpha if string.alpha is not None else 1.0)
        if "p_inv" in self.slices:
            block, here = self._block("p_inv"), self.slices["p_inv"]
            p_inv, variable = block.values(z[:, here])[:, 0], block.complement(z[:, here])[:, 0]
        else:
            p_inv = np.full(len(z), string.p_inv or 0.0)
            variable = 1.0 - p_inv
        variable = np.maximum(variable, MIN_VARIABLE)
        rates = category_means(alpha, self.n_categories) / variable[:, None]
        weights = np.repeat(variable[:, None] / self.n_categories, self.n_categories, axis=1)
        return rates, weights, p_inv


def model_of(text: str, alphabet: Alphabet, codes: NDArray | None = None, counts: NDArray[np.float64] | None = None) -> Model:
    """The model that a string names, for data of this alphabet.

    `codes` (n_taxa, P) and `counts` (P,) are the data's patterns; frequencies that are counted (+F) need them.
    """
    string = parse(text, alphabet)
    counted = None
    if codes is not None:
        weights = np.ones(codes.shape[1]) if counts is None else counts
        counted = np.maximum(frequencies_of(codes, weights, alphabet), MIN_COUNTED)
        counted = counted / counted.sum()
    classes, fixed_rates, own = _exchange(string, alphabet)
    if string.frequencies == "empirical":
        if counted is None:
            raise InputError(f"model '{text}': +F counts frequencies in the data, and there are none; use +FQ, +FO or +F{{..}}")
        frequencies: Floats | None = counted
    else:
        given = None if string.frequencies_given is None else np.array(string.frequencies_given)
        equal = np.full(alphabet.n_states, 1.0 / alphabet.n_states)
        frequencies = {"equal": equal, "matrix": own, "free": None, "fixed": given}[string.frequencies]
    return Model(alphabet, string, classes, fixed_rates, frequencies, counted)


def _exchange(string: ModelString, alphabet: Alphabet) -> tuple[NDArray[np.int64], Floats | None, Floats | None]:
    """Rate classes of the pairs, the distinct rates where they are fixed, and the frequencies that belong to them."""
    n = alphabet.n_states
    n_pairs = n * (n - 1) // 2
    if string.name in AA_MODELS and string.name != "Poisson":
        from vaiphy.models.amino_acids import matrix

        rates, own = matrix(string.name)
        return np.arange(n_pairs), rates, own
    if string.name == "ORDERED" and n > 2:
        first, second = np.triu_indices(n, k=1)
        return (second - first > 1).astype(np.int64), np.array([1.0, 0.0]), None
    if alphabet.name in ("DNA", "RNA"):
        classes = np.array([int(digit) for digit in rate_code(string.name)])
        if classes.any():
            return classes, None if string.rates is None else np.array(string.rates), None
    return np.zeros(n_pairs, dtype=np.int64), np.ones(1), None
