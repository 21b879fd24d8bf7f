"""Where a flow starts: independent branch lengths, two numbers each, summed over the branch's split and subsplit pairs.

A base draws standardised log-lengths y with their log-density; log b = centre + scale * y without a flow. "lognormal" is Zhang's:
y is normal. "jc" is the VaiPhy paper's guess of a better one: b has the distribution of the JC sampler (Alg. 2), whose expected
numbers of unchanged and changed sites are learned.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, betaln, polygamma, psi
from torch import Tensor

Floats = NDArray[np.float64]
#: Numbers of each split and subsplit pair that a base needs.
N_COLUMNS = 2
#: Relative step of numerical derivatives, and the mass beyond saturation below which truncation is not felt.
STEP, NEGLIGIBLE = 1e-4, 1e-13
#: A JC sampler's counts, at least and at most.
LEAST_COUNT, MOST_COUNT = 1e-3, 1e7


@dataclass(frozen=True)
class Drawn:
    """Standardised log-lengths with the sums (T,) of their log-densities, and what turns them into log-lengths."""

    y: Tensor
    log_density: Tensor
    centre: Tensor
    scale: Tensor


def start_columns(base: str, shapes: Floats, rates: Floats, n_sites: float) -> Floats:
    """The two numbers of branches whose lengths have the given Gamma distributions, (..., 2)."""
    if base == "lognormal":
        return np.stack([psi(shapes) - np.log(rates), 0.5 * np.log(polygamma(1, shapes))], axis=-1)
    # b is about Gamma with shape 1 + different and rate same + different.
    return np.log(np.stack([np.clip(shapes - 1.0, 0.05, None), np.clip(rates - shapes, 1.0, None)], axis=-1))


def draw(base: str, columns: Tensor, rng: np.random.Generator) -> Drawn:
    """One draw for each branch, given its two numbers (T, branches, 2)."""
    if base == "lognormal":
        return _lognormal(columns, rng)
    return _jc(columns, rng)


def _lognormal(columns: Tensor, rng: np.random.Generator) -> Drawn:
    y = torch.from_numpy(rng.standard_normal(columns.shape[:2], dtype=np.float32))
    log_density = -0.5 * (y * y).sum(dim=1) - 0.9189385332 * y.shape[1]
    return Drawn(y, log_density, columns[:, :, 0], torch.exp(columns[:, :, 1]))


def _jc(columns: Tensor, rng: np.random.Generator) -> Drawn:
    counts = torch.exp(columns.to(torch.float64)).clamp(LEAST_COUNT, MOST_COUNT)
    different, same = counts[:, :, 0] + 1.0, counts[:, :, 1] + 1.0
    changed, log_mass = TruncatedBeta.apply(different, same, rng)
    lengths = -0.75 * torch.log1p(-4.0 / 3.0 * changed)
    log_norm = torch.lgamma(different) + torch.lgamma(same) - torch.lgamma(different + same) + log_mass
    # The density of the changed share, times |d changed / d log b|.
    density = (different - 1.0) * torch.log(changed) + (same - 1.0) * torch.log1p(-changed) - log_norm
    density = density - 4.0 / 3.0 * lengths + torch.log(lengths)
    centre = torch.log(different / (different + same))
    scale = torch.rsqrt(different)
    y = (torch.log(lengths) - centre) / scale
    log_density = (density + torch.log(scale)).sum(dim=1)
    return Drawn(y.to(torch.float32), log_density.to(torch.float32), centre.to(torch.float32), scale.to(torch.float32))


class TruncatedBeta(torch.autograd.Function):
    """A share of changed sites from Beta(different, same) truncated to less than 3/4, and the log of the mass below 3/4.

    Derivatives of a draw are implicit: moving the parameters and the draw together leaves its distribution function as it is.
    """

    @staticmethod
    def forward(ctx: Any, different: Tensor, same: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        a, b = different.detach().numpy(), same.detach().numpy()
        mass = betainc(a, b, 0.75)
        drawn = rng.beta(a, b)
        outside = drawn >= 0.75
        if outside.any():
            drawn[outside] = betaincinv(a[outside], b[outside], mass[outside] * rng.random(int(outside.sum())))
        drawn = np.clip(drawn, 1e-12, 0.75 - 1e-12)
        ctx.parameters = a, b, mass, drawn
        return torch.from_numpy(drawn), torch.from_numpy(np.log(mass))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        a, b, mass, drawn = ctx.parameters
        to_drawn, to_mass = (gradient.numpy() for gradient in gradients)
        slope = np.exp((a - 1.0) * np.log(drawn) + (b - 1.0) * np.log1p(-drawn) - betaln(a, b))
        felt = mass < 1.0 - NEGLIGIBLE
        below = betainc(a[felt], b[felt], drawn[felt]) / mass[felt]
        found = []
        for da, db in ((STEP * a, 0.0 * b), (0.0 * a, STEP * b)):
            step = 2.0 * (da + db)
            change = (betainc(a + da, b + db, drawn) - betainc(a - da, b - db, drawn)) / step
            result = -change / slope * to_drawn
            if felt.any():
                f_da, f_db = da[felt], db[felt]
                dm = (betainc(a[felt] + f_da, b[felt] + f_db, 0.75) - betainc(a[felt] - f_da, b[felt] - f_db, 0.75)) / step[felt]
                result[felt] += below * dm / slope[felt] * to_drawn[felt] + dm / mass[felt] * to_mass[felt]
            found.append(torch.from_numpy(result))
        return found[0], found[1], None
