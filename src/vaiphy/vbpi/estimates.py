"""What a trained network says: weighted trees, lower bounds of one and of ten samples, and the evidence."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.trees.counts import log_n_unrooted
from vaiphy.vbpi.network import Network, draw
from vaiphy.vbpi.score import evaluate
from vaiphy.vbpi.settings import Settings
from vaiphy.vbpi.training import Singles, draw_lengths, parts
from vaiphy.weights import log_mean_exp

Floats = NDArray[np.float64]
#: Samples drawn at once, and the logarithm of the longest branch: its prior probability is zero in floating point.
BATCH, LONGEST = 250, 20.0


@dataclass(frozen=True, eq=False)
class Weighted:
    """Draws: topologies (T, n-2, 2), branch lengths (T, 2n-2) and log p(X, tree, B) - log q(tree, B)."""

    children: NDArray[np.int32]
    lengths: Floats
    log_weights: Floats


def sample(
    network: Network, patterns: SitePatterns, settings: Settings, parameters: Singles, n_samples: int, rng: np.random.Generator
) -> Weighted:
    """Independent draws from the trained distribution with their importance weights; `patterns` folded."""
    torch.set_num_threads(1)
    where = parts(network, settings)
    probability, log_probability = network.probabilities(parameters[where["trees"]])
    tensors = [torch.from_numpy(parameters[where[name]]) for name in ("base", "flow", "shared")]
    prior = np.log(settings.prior_rate) * network.n_branches - log_n_unrooted(network.n_taxa)
    found = []
    for begin in range(0, n_samples, BATCH):
        trees = draw(network, probability, log_probability, min(BATCH, n_samples - begin), rng)
        with torch.no_grad():
            log_lengths, log_q = draw_lengths(network, settings, tensors, trees, rng)
        # A flow's wildest draws are longer than any branch; such trees have weight zero, however they are written down.
        lengths = np.exp(np.minimum(log_lengths.numpy().astype(np.float64), LONGEST))
        likelihood, _ = evaluate(trees.children, lengths, patterns, with_slopes=False)
        joint = likelihood + prior - settings.prior_rate * lengths.sum(axis=1)
        found.append((trees.children, lengths, joint - log_q.numpy().astype(np.float64) - trees.log_q))
    children, lengths, log_weights = (np.concatenate(column) for column in zip(*found))
    return Weighted(children, np.pad(lengths, ((0, 0), (1, 0))), log_weights)


def lower_bounds(log_weights: Floats) -> dict[str, float]:
    """LB-1 and LB-10: means of log-weights, and of the logs of the means of ten weights each."""
    tens = log_weights[: len(log_weights) // 10 * 10].reshape(-1, 10)
    return {"LB-1": float(log_weights.mean()), "LB-10": float(np.mean([log_mean_exp(row) for row in tens]))}
