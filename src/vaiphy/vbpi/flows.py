"""Flows over the branches of a tree (Zhang 2020): the same parameters serve every tree that has the split or subsplit pair.

A flow turns standardised log-lengths y (T, branches) into others, with the log-determinant of its Jacobian. What it needs to know
of a branch is a row of numbers, the sum of the rows of the branch's split and subsplit pairs, so that it does not matter in
what order branches come. Branches above taxa (the first n - 1) and above inner vertices (n - 2) take turns in RealNVP.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vaiphy.vbpi.settings import Settings


def n_columns(settings: Settings) -> int:
    """Numbers that a flow keeps for each split and subsplit pair."""
    if settings.flow == "realnvp":
        return 3 * settings.width * (settings.n_layers // 2)
    return 2 * settings.n_layers


def n_shared(settings: Settings) -> int:
    """Numbers that a flow keeps for all branches together: a bias for each hidden unit."""
    return settings.n_layers * (settings.width if settings.flow == "realnvp" else 1)


def start_table(settings: Settings, n_numbers: int, n_branches: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Where training starts: conditioners at random, what they do to other branches at zero, so that the flow does nothing."""
    table = np.zeros((n_numbers, n_columns(settings)), dtype=np.float32)
    spread = 1.0 / np.sqrt(n_branches)
    if settings.flow == "realnvp":
        blocks = table.reshape(n_numbers, 3, -1)
        blocks[:, 0] = spread * rng.standard_normal(blocks[:, 0].shape)
    elif settings.flow == "planar":
        table[:, : settings.n_layers] = spread * rng.standard_normal((n_numbers, settings.n_layers))
    return table


def apply(settings: Settings, rows: Tensor, shared: Tensor, y: Tensor, n_taxa: int) -> tuple[Tensor, Tensor]:
    """The flow at y (T, branches), given `rows` (T, branches, n_columns); returns the result and the log-determinants (T,)."""
    if settings.flow == "none":
        return y, torch.zeros(len(y))
    if settings.flow == "planar":
        return _planar(rows, shared, y)
    return _realnvp(settings, rows, shared, y, n_taxa)


def _realnvp(settings: Settings, rows: Tensor, shared: Tensor, y: Tensor, n_taxa: int) -> tuple[Tensor, Tensor]:
    """Affine couplings: one half of the branches sets the hidden units, these scale and shift the other half."""
    n_trees, n_pairs, width = len(y), settings.n_layers // 2, settings.width
    bias = shared.view(settings.n_layers, width).unbind()
    # What a branch tells the hidden units, and what they do to its scale and shift; one block a layer, each contiguous.
    told, moved = rows.view(n_trees, -1, 3, n_pairs, width).permute(2, 3, 0, 1, 4).split([1, 2])
    halves = [n_taxa - 1, n_taxa - 2]
    tells = [part.contiguous().unbind() for part in told[0].split(halves, dim=2)]
    moves = [part.permute(1, 2, 0, 3, 4).reshape(n_pairs, n_trees, -1, width).unbind() for part in moved.split(halves, dim=3)]
    sides = list(y.split(halves, dim=1))
    log_det = torch.zeros(n_trees)
    for layer in range(settings.n_layers):
        giver, taker, pair = layer % 2, 1 - layer % 2, layer // 2
        hidden = torch.tanh(torch.baddbmm(bias[layer], sides[giver].unsqueeze(1), tells[giver][pair]))
        scale, shift = torch.bmm(moves[taker][pair], hidden.transpose(1, 2)).squeeze(2).split(halves[taker], dim=1)
        sides[taker] = torch.addcmul(shift, sides[taker], torch.exp(scale))
        log_det = log_det + scale.sum(dim=1)
    return torch.cat(sides, dim=1), log_det


def _planar(rows: Tensor, shared: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """y + u tanh(w.y + b) layer by layer, u corrected so that w.u > -1 and each layer can be inverted."""
    n_layers = len(shared)
    log_det = torch.zeros(len(y))
    for layer in range(n_layers):
        w, u = rows[:, :, layer], rows[:, :, n_layers + layer]
        along = (w * u).sum(dim=1, keepdim=True)
        u = u + (torch.nn.functional.softplus(along) - 0.693147 - along) * w / (1e-6 + (w * w).sum(dim=1, keepdim=True))
        hidden = torch.tanh((w * y).sum(dim=1, keepdim=True) + shared[layer])
        y = y + u * hidden
        log_det = log_det + torch.log1p((1.0 - hidden[:, 0] ** 2) * (w * u).sum(dim=1))
    return y, log_det
