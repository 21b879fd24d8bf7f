"""Log-likelihoods under any reversible model, slowly: matrix exponentials of Q and plain pruning, or a sum over all states.

Nothing here knows eigenvectors or unconstrained vectors: a model is its exchangeabilities, frequencies, rates and weights
of categories, and share of invariable sites.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import expm


@dataclass(frozen=True)
class SlowModel:
    """`exchange` (S, S), `pi` (S,), `rates` and `weights` (C,) with weights summing to 1 - p_inv."""

    exchange: np.ndarray
    pi: np.ndarray
    rates: np.ndarray
    weights: np.ndarray
    p_inv: float = 0.0
    ascertained: bool = False

    @property
    def generator(self) -> np.ndarray:
        q = self.exchange * self.pi
        np.fill_diagonal(q, 0.0)
        np.fill_diagonal(q, -q.sum(axis=1))
        return q / -(self.pi @ np.diag(q))


def slow_model(model, z=None) -> SlowModel:
    """One of vaiphy's models at one point z (none for a model without free parameters)."""
    point = np.zeros((1, 0)) if z is None else np.asarray(z)[None, :]
    arrays = model.arrays(point)
    return SlowModel(
        model.exchangeabilities(point)[0],
        model.frequencies(point)[0],
        arrays.rates[0],
        arrays.weights[0],
        float(arrays.p_inv[0]),
        model.ascertained,
    )


def log_likelihood(tree, tips: np.ndarray, counts: np.ndarray, model: SlowModel) -> float:
    """log p(X | tree, lengths, model) by pruning; `tips` (n_taxa, S, P) are zeros and ones, or probabilities."""
    log_sites = site_log_likelihoods(tree, tips, model)
    total = float(counts @ log_sites)
    if not model.ascertained:
        return total
    states = np.eye(len(model.pi))
    constant = np.repeat(states[None], tips.shape[0], axis=0)
    return total - float(counts.sum()) * float(np.log1p(-np.exp(site_log_likelihoods(tree, constant, model)).sum()))


def site_log_likelihoods(tree, tips: np.ndarray, model: SlowModel) -> np.ndarray:
    """Log-likelihood of each pattern, (P,)."""
    logs = []
    for rate, weight in zip(model.rates, model.weights):
        partial, scale = _prune(tree, tips, model.generator * rate)
        logs.append(np.log(weight) + np.log(model.pi @ partial) + scale)
    if model.p_inv > 0:
        with np.errstate(divide="ignore"):
            logs.append(np.log(model.p_inv) + np.log(model.pi @ tips.prod(axis=0)))
    return np.logaddexp.reduce(logs)


def _prune(tree, tips: np.ndarray, generator: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n_states, n_patterns = tips.shape[1:]
    partials = [np.ones((n_states, n_patterns)) for _ in range(tree.n_vertices)]
    scale = np.zeros(n_patterns)
    for vertex in tree.postorder.tolist():
        if vertex < tree.n_taxa:
            partials[vertex] = partials[vertex] * tips[vertex]
        largest = partials[vertex].max(axis=0)
        partials[vertex] = partials[vertex] / largest
        scale += np.log(largest)
        if vertex != tree.root:
            up = expm(generator * tree.length[vertex]) @ partials[vertex]
            partials[tree.parent[vertex]] = partials[tree.parent[vertex]] * up
    return partials[tree.root], scale


def brute_site_likelihoods(tree, tips: np.ndarray, model: SlowModel) -> np.ndarray:
    """Likelihood of each pattern (P,): a sum over all states of all vertices, for trees of four or five taxa."""
    n_states = len(model.pi)
    total = model.p_inv * np.einsum("s,sp->p", model.pi, tips.prod(axis=0))
    branches = [v for v in range(tree.n_vertices) if v != tree.root]
    for rate, weight in zip(model.rates, model.weights):
        p = {v: expm(model.generator * rate * tree.length[v]) for v in branches}
        for states in product(range(n_states), repeat=tree.n_vertices):
            chance = weight * model.pi[states[tree.root]]
            for v in branches:
                chance = chance * p[v][states[tree.parent[v]], states[v]]
            total = total + chance * np.prod([tips[v, states[v]] for v in range(tree.n_taxa)], axis=0)
    return total


def brute_vertex_states(tree, tips: np.ndarray, model: SlowModel) -> np.ndarray:
    """Probabilities of the states of each vertex given the data, (n_vertices, S, P), by a sum over all states of all vertices."""
    n_states, n_patterns = tips.shape[1:]
    states = np.indices((n_states,) * tree.n_vertices).reshape(tree.n_vertices, -1)
    observed = np.ones((states.shape[1], n_patterns))
    for v in range(tree.n_taxa):
        observed *= tips[v][states[v]]
    classes = [*zip(model.rates, model.weights), (0.0, model.p_inv)]
    chance = np.zeros(states.shape[1])
    for rate, weight in classes:
        own = weight * model.pi[states[tree.root]]
        for v, above in tree.edges():
            own = own * expm(model.generator * rate * tree.length[v])[states[above], states[v]]
        chance += own
    joint = chance[:, None] * observed
    out = np.array([[joint[states[v] == a].sum(axis=0) for a in range(n_states)] for v in range(tree.n_vertices)])
    return out / out.sum(axis=1, keepdims=True)
