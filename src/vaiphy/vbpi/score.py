"""Log-likelihoods of trees as PyTorch sees them: values and derivatives in the branch lengths come from our own kernels."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.kernels.branch_slopes import log_likelihoods_and_slopes
from vaiphy.models.jc69 import JC69

Floats = NDArray[np.float64]


def evaluate(
    children: NDArray[np.int32], lengths: Floats, patterns: SitePatterns, with_slopes: bool = True
) -> tuple[Floats, Floats]:
    """Log-likelihoods (T,) and their derivatives (T, 2n-3) in the branches above vertices 1 to 2n-3, whose lengths are given."""
    padded = np.zeros((len(lengths), lengths.shape[1] + 1))
    padded[:, 1:] = lengths
    values, slopes = np.empty(len(lengths)), np.empty_like(padded)
    log_likelihoods_and_slopes(
        JC69.weights, JC69.beta, children, padded, patterns.tips, patterns.counts, with_slopes, values, slopes
    )
    return values, slopes[:, 1:]


class LogLikelihood(torch.autograd.Function):
    """log p(X | tree, lengths) of each tree, (T,), differentiable in `lengths` (T, 2n-3)."""

    @staticmethod
    def forward(ctx: Any, lengths: torch.Tensor, children: NDArray[np.int32], patterns: SitePatterns) -> torch.Tensor:
        values, slopes = evaluate(children, lengths.detach().numpy().astype(np.float64), patterns, ctx.needs_input_grad[0])
        ctx.slopes = torch.from_numpy(slopes)
        return torch.from_numpy(values)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        (gradient,) = gradients
        return (gradient[:, None] * ctx.slopes).to(torch.float32), None, None
