"""Blocks of free parameters: values as people know them, an unconstrained vector z for samplers, and their priors.

    simplex of k    z_i = log(x_i / x_k), i < k      flat Dirichlet
    positive        z = log x                        Exponential(1)
    unit interval   z = logit x                      Uniform(0, 1)

Densities are in z: the Jacobian of the change of variables is included, and each integrates to one over z.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, log_expit, log_softmax, logit

Floats = NDArray[np.float64]
#: Unconstrained values are read as if they were inside this range, far beyond what any posterior reaches.
MAX_Z = 600.0


@dataclass(frozen=True)
class Block:
    """A named group of parameters. `size` values that people see; `start` a place to begin, in these values."""

    name: str
    kind: Literal["simplex", "positive", "unit"]
    start: tuple[float, ...]

    @property
    def size(self) -> int:
        return len(self.start)

    @property
    def n_free(self) -> int:
        """Entries in z."""
        return self.size - 1 if self.kind == "simplex" else 1

    @property
    def prior(self) -> str:
        """The prior in words."""
        flat = f"Dirichlet({','.join('1' * self.size)})" if self.size <= 6 else f"Dirichlet(1,...,1) of {self.size}"
        return {"simplex": flat, "positive": "Exponential(1)", "unit": "Uniform(0,1)"}[self.kind]

    def log_values(self, z: Floats) -> Floats:
        """Logs of the values, (N, size), exact however small the values are."""
        z = np.clip(z, -MAX_Z, MAX_Z)
        if self.kind == "simplex":
            return log_softmax(np.concatenate((z, np.zeros((len(z), 1))), axis=1), axis=1)
        return z if self.kind == "positive" else log_expit(z)

    def values(self, z: Floats) -> Floats:
        """z (N, n_free) as values (N, size)."""
        return np.exp(self.log_values(z))

    def unconstrained(self, values: Floats) -> Floats:
        """The inverse of `values`."""
        if self.kind == "simplex":
            logs = np.log(values)
            return logs[:, :-1] - logs[:, -1:]
        return np.log(values) if self.kind == "positive" else logit(values)

    def log_prior(self, z: Floats) -> Floats:
        """Log prior density of z, (N,)."""
        if self.kind == "simplex":
            # Flat: (k-1)! on the simplex; |dx/dz| is the product of all k values.
            return gammaln(self.size) + self.log_values(z).sum(axis=1)
        if self.kind == "positive":
            return z[:, 0] - self.values(z)[:, 0]
        return (log_expit(z) + log_expit(-z))[:, 0]

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """n draws of z from the prior."""
        if self.kind == "simplex":
            logs = np.log(rng.standard_exponential((n, self.size)))
            return logs[:, :-1] - logs[:, -1:]
        if self.kind == "positive":
            return np.log(rng.standard_exponential((n, 1)))
        return rng.logistic(size=(n, 1))

    def complement(self, z: Floats) -> Floats:
        """1 - x for a value on the unit interval, with all its digits near one."""
        return expit(-z)
