"""Training by the bound of K samples (Zhang and Matsen 2019): VIMCO for trees, reparametrised draws for lengths, Adam for both.

`initialise(...) -> State` and `step(state, ...) -> (State, Info)`, pure: a state is plain arrays, and all chance comes from the
generator given, so that a saved state goes on exactly as it would have.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.kernels.adam import ascend
from vaiphy.kernels.subsplits import add_gradient
from vaiphy.trees.counts import log_n_unrooted
from vaiphy.vbpi import bases, flows
from vaiphy.vbpi.network import Network, Topologies, draw, split_numbers
from vaiphy.vbpi.score import LogLikelihood
from vaiphy.vbpi.settings import Settings
from vaiphy.vbpi.support import Support
from vaiphy.weights import log_mean_exp

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
#: Adam's constants.
FIRST, SECOND, EPSILON = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False)
class State:
    """Parameters and Adam's running moments, each one flat vector (see `parts`), after so many iterations."""

    iteration: int
    parameters: Singles
    first: Singles
    second: Singles


@dataclass(frozen=True)
class Info:
    """What a step shows: mean bounds of 1 and of K samples over its iterations, at the likelihood's present power."""

    iteration: int
    power: float
    bound_1: float
    bound_k: float


def parts(network: Network, settings: Settings) -> dict[str, slice]:
    """Where the parameters are: logits of trees, numbers of the base and of the flow by split and pair, shared ones."""
    sizes = {
        "trees": network.n_entries,
        "base": network.n_numbers * bases.N_COLUMNS,
        "flow": network.n_numbers * flows.n_columns(settings),
        "shared": flows.n_shared(settings),
    }
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends)}


def initialise(network: Network, support: Support, patterns: SitePatterns, settings: Settings, rng: np.random.Generator) -> State:
    """Trees as often as their subsplits occur in the support; lengths as fitted there, by split; a flow that does nothing."""
    where = parts(network, settings)
    parameters = np.zeros(where["shared"].stop, dtype=np.float32)
    parameters[where["trees"]] = np.log(network.seen)
    parameters[where["base"]] = _start_base(network, support, patterns, settings).ravel()
    parameters[where["flow"]] = flows.start_table(settings, network.n_numbers, network.n_branches, rng).ravel()
    return State(0, parameters, np.zeros_like(parameters), np.zeros_like(parameters))


def step(
    state: State, network: Network, patterns: SitePatterns, settings: Settings, n_iterations: int, rng: np.random.Generator
) -> tuple[State, Info]:
    """Some iterations; the state given stays as it was. `patterns` should be folded (`alignment.fold_states`)."""
    torch.set_num_threads(1)  # ten small trees are no work to share, and sums must not depend on how many share it
    parameters, first, second = state.parameters.copy(), state.first.copy(), state.second.copy()
    where = parts(network, settings)
    bounds = np.empty((n_iterations, 2))
    for k in range(n_iterations):
        iteration = state.iteration + k
        power = settings.power(iteration)
        gradients, bounds[k] = gradient(network, patterns, settings, parameters, power, rng)
        for name, found in gradients.items():
            part = where[name]
            rate = settings.rate(settings.tree_rate if name == "trees" else settings.length_rate, iteration)
            ascend(parameters[part], found, first[part], second[part], iteration + 1, rate, FIRST, SECOND, EPSILON)
    new = State(state.iteration + n_iterations, parameters, first, second)
    return new, Info(new.iteration, settings.power(new.iteration), *bounds.mean(axis=0).tolist())


def gradient(
    network: Network, patterns: SitePatterns, settings: Settings, parameters: Singles, power: float, rng: np.random.Generator
) -> tuple[dict[str, Singles], tuple[float, float]]:
    """A stochastic gradient of the bound of K samples, by part, and the bounds of one and of K samples that it came from."""
    where = parts(network, settings)
    probability, log_probability = network.probabilities(parameters[where["trees"]])
    trees = draw(network, probability, log_probability, settings.particles, rng)
    tensors = [torch.from_numpy(parameters[where[name]]).requires_grad_() for name in ("base", "flow", "shared")]
    log_ratio = log_joint_ratio(network, patterns, settings, tensors, trees, power, rng)
    values = log_ratio.detach().numpy() - trees.log_q
    bound = log_mean_exp(values)
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    used = [tensor for tensor in tensors if tensor.numel()]
    found = torch.autograd.grad(log_ratio, used, torch.from_numpy(weights))
    result = dict(zip(("base", "flow", "shared"), (g.numpy() for g in found)))
    result["trees"] = np.zeros(network.n_entries, dtype=np.float32)
    coefficient = learning_signals(values) - weights
    add_gradient(network.start, network.row_of, probability, trees.chosen, coefficient, result["trees"])
    return result, (float(values.mean()), bound)


def learning_signals(values: Floats) -> Floats:
    """VIMCO (Mnih and Rezende 2016): the bound minus what it would be with each sample replaced by the others' geometric mean."""
    k = len(values)
    others = (values.sum() - values) / (k - 1)
    replaced = np.where(np.eye(k, dtype=bool), others[:, None], values[None, :])
    top = values.max()
    return np.asarray(np.log(np.exp(values - top).sum()) - np.log(np.exp(replaced - top).sum(axis=1)), dtype=np.float64)


def log_joint_ratio(
    network: Network,
    patterns: SitePatterns,
    settings: Settings,
    tensors: list[torch.Tensor],
    trees: Topologies,
    power: float,
    rng: np.random.Generator,
) -> torch.Tensor:
    """power * log p(X | tree, B) + log p(tree, B) - log q(B | tree) at one draw of lengths for each tree, (T,)."""
    log_lengths, log_q = draw_lengths(network, settings, tensors, trees, rng)
    lengths = torch.exp(log_lengths)
    likelihood = LogLikelihood.apply(lengths, trees.children, patterns)
    prior = np.log(settings.prior_rate) * network.n_branches - log_n_unrooted(network.n_taxa)
    return power * likelihood + (prior - settings.prior_rate * lengths.sum(dim=1) - log_q).to(torch.float64)


def draw_lengths(
    network: Network, settings: Settings, tensors: list[torch.Tensor], trees: Topologies, rng: np.random.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-lengths of the branches above vertices 1 to 2n-3, (T, 2n-3), and the log-density of the lengths, (T,)."""
    base, flow, shared = tensors
    drawn = bases.draw(settings.base, _rows(base, network, trees), rng)
    rows = _rows(flow, network, trees) if settings.n_layers else flow
    y, log_det = flows.apply(settings, rows, shared, drawn.y, network.n_taxa)
    log_lengths = drawn.centre + drawn.scale * y
    return log_lengths, drawn.log_density - log_det - torch.log(drawn.scale).sum(dim=1) - log_lengths.sum(dim=1)


def _rows(table: torch.Tensor, network: Network, trees: Topologies) -> torch.Tensor:
    """The rows of each branch's split and subsplit pairs, added up: (T, branches, columns)."""
    n_trees, n_branches, _ = trees.numbers.shape
    numbers = torch.from_numpy(trees.numbers.reshape(-1, 3))
    rows = torch.nn.functional.embedding_bag(numbers, table.view(network.n_numbers, -1), mode="sum")
    return rows.view(n_trees, n_branches, -1)


def _start_base(network: Network, support: Support, patterns: SitePatterns, settings: Settings) -> Floats:
    """Averages over the support's trees for each split; nothing for subsplit pairs."""
    splits = split_numbers(network, support.trees)
    values = bases.start_columns(settings.base, support.shapes[:, 1:], support.rates[:, 1:], float(patterns.counts.sum()))
    table = np.zeros((network.n_numbers, bases.N_COLUMNS))
    times = np.bincount(splits.ravel(), minlength=network.n_numbers)
    for column in range(bases.N_COLUMNS):
        total = np.bincount(splits.ravel(), weights=values[..., column].ravel(), minlength=network.n_numbers)
        table[:, column] = total / np.maximum(times, 1)
    return table
