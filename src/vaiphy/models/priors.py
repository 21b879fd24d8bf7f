"""Priors of branch lengths: independent exponentials, or a gamma tree length divided by a Dirichlet.

Both have the form  log p(b) = constant + sum_i (alpha_i - 1) log b_i - rate T + power log T,  T the sum of all 2n - 3 lengths,
with one alpha for outer branches (next to a leaf) and one for inner ones:

    exp(RATE)               alpha = 1, power = 0
    gammadir(aT,bT,a,c)     T ~ Gamma(aT, rate bT), proportions ~ Dirichlet(a on outer, a c on inner branches);
                            MrBayes's default is gammadir(1,0.1,1,1) (Rannala, Zhu and Yang 2012)

Lengths are in "binary arrays" (see `treesample`): (N, 2n - 2), entry 0 unused, entry v the branch above vertex v; vertex
2n - 3 hangs from leaf 0, so its branch is an outer one.
"""

import re
from dataclasses import dataclass
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from vaiphy.errors import InputError
from vaiphy.ranges import PRIOR_NUMBERS, say_range

Floats = NDArray[np.float64]
_FORMS = "exp(RATE) or gammadir(aT,bT,a,c)"


class LengthTerms(NamedTuple):
    """The density for a number of taxa: constant + sum (alpha - 1) log b - rate T + power log T."""

    constant: float
    alpha_outer: float
    alpha_inner: float
    rate: float
    power: float


@dataclass(frozen=True)
class LengthPrior:
    """A prior of the branch lengths of an unrooted tree, in expected substitutions per site.

    `kind` is "exp" or "gammadir", `numbers` what stands in its brackets.

    >>> str(LengthPrior()), str(length_prior("GammaDir(1.0, 0.1, 1.0, 1.0)"))
    ('exp(10)', 'gammadir(1,0.1,1,1)')
    """

    kind: str = "exp"
    numbers: tuple[float, ...] = (10.0,)

    def __post_init__(self) -> None:
        wanted = {"exp": 1, "gammadir": 4}.get(self.kind)
        if wanted is None:
            raise InputError(f"prior of branch lengths '{self}': '{self.kind}' is unknown; known are {_FORMS}")
        if len(self.numbers) != wanted:
            raise InputError(f"prior of branch lengths '{self}': {len(self.numbers)} numbers, {self.kind} takes {wanted}")
        for number in self.numbers:
            if not PRIOR_NUMBERS[0] <= number <= PRIOR_NUMBERS[1]:
                raise InputError(
                    f"prior of branch lengths '{self}': numbers must be from {say_range(*PRIOR_NUMBERS)}, not {number:g}"
                )

    def __str__(self) -> str:
        return f"{self.kind}({','.join(f'{number:.15g}' for number in self.numbers)})"

    def terms(self, n_taxa: int) -> LengthTerms:
        """The numbers that a sampler needs for trees of this size."""
        if self.kind == "exp":
            (rate,) = self.numbers
            return LengthTerms((2 * n_taxa - 3) * log(rate), 1.0, 1.0, rate, 0.0)
        shape, rate, outer, ratio = self.numbers
        inner = outer * ratio
        total = n_taxa * outer + (n_taxa - 3) * inner
        constant = shape * log(rate) - gammaln(shape) + gammaln(total) - n_taxa * gammaln(outer) - (n_taxa - 3) * gammaln(inner)
        return LengthTerms(float(constant), outer, inner, rate, shape - total)

    def alphas(self, n_taxa: int) -> Floats:
        """alpha of each branch 1 .. 2n - 3 (the unused entry 0 left out)."""
        terms = self.terms(n_taxa)
        alphas = np.full(2 * n_taxa - 3, terms.alpha_outer)
        alphas[n_taxa - 1 : -1] = terms.alpha_inner
        return alphas

    def log_density(self, lengths: Floats, n_taxa: int) -> Floats:
        """Log prior density (N,) of lengths (N, 2n - 2); entry 0 of each row is unused."""
        branches = np.asarray(lengths, dtype=np.float64)[:, 1:]
        if branches.shape[1] != 2 * n_taxa - 3:
            raise InputError(f"{branches.shape[1] + 1} entries per tree, expected {2 * n_taxa - 2} for {n_taxa} taxa")
        terms = self.terms(n_taxa)
        tree_length = branches.sum(axis=1)
        log_density = terms.constant - terms.rate * tree_length
        if terms.power:
            log_density = log_density + terms.power * np.log(tree_length)
        powers = self.alphas(n_taxa) - 1.0
        if powers.any():
            log_density = log_density + np.log(branches) @ powers
        return log_density

    def draw(self, n_taxa: int, n: int, rng: np.random.Generator) -> Floats:
        """n sets of lengths from the prior, (n, 2n - 2); entry 0 is zero."""
        lengths = np.zeros((n, 2 * n_taxa - 2))
        if self.kind == "exp":
            lengths[:, 1:] = rng.exponential(1.0 / self.numbers[0], size=(n, 2 * n_taxa - 3))
            return lengths
        shape, rate = self.numbers[:2]
        tree_length = rng.gamma(shape, 1.0 / rate, size=(n, 1))
        lengths[:, 1:] = tree_length * rng.dirichlet(self.alphas(n_taxa), size=n)
        return lengths

    def words(self) -> str:
        """One sentence for people."""
        if self.kind == "exp":
            return f"Branch lengths: independent, Exponential({self.numbers[0]:g}), mean {1 / self.numbers[0]:g}."
        shape, rate, outer, ratio = self.numbers
        return (
            f"Branch lengths: {self}, that is a tree length from Gamma({shape:g}, rate {rate:g}), mean {shape / rate:g}, "
            f"divided by a Dirichlet with {outer:g} for outer and {outer * ratio:g} for inner branches."
        )


def length_prior(text: str) -> LengthPrior:
    """A prior from its text: `exp(10)`, `gammadir(1,0.1,1,1)`, as MrBayes writes them (also after `Unconstrained:`)."""
    found = re.fullmatch(r"\s*(?:unconstrained:\s*)?(\w+)\s*\(([^()]*)\)\s*", text, re.IGNORECASE)
    if found is None:
        raise InputError(f"prior of branch lengths '{text}' is not understood; write {_FORMS}")
    kind = {"exponential": "exp", "gammadirichlet": "gammadir"}.get(found.group(1).lower(), found.group(1).lower())
    try:
        numbers = tuple(float(word) for word in found.group(2).split(","))
    except ValueError:
        raise InputError(
            f"prior of branch lengths '{text}': '{found.group(2)}' is not a list of numbers; write {_FORMS}"
        ) from None
    return LengthPrior(kind, numbers)
