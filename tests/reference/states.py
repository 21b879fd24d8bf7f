"""The likelihood of a tree as what it is, a sum over the states of all its vertices; and, for trees too large for that, a
recursion in logarithms. Neither shares anything with the kernels."""

import numpy as np
from scipy.special import logsumexp

from vaiphy.trees.tree import Tree


def transition(length: float) -> np.ndarray:
    """P(child state | parent state) under JC69, exact for short branches too."""
    change = -np.expm1(-4 / 3 * length) / 4
    return np.where(np.eye(4, dtype=bool), 1 - 3 * change, change)


def joint_by_vertex(tree: Tree, codes: np.ndarray) -> np.ndarray:
    """P(pattern, state of vertex v = a), shape (n_vertices, 4, n_patterns), by enumeration of all states of all vertices."""
    states = np.indices((4,) * tree.n_vertices).reshape(tree.n_vertices, -1)
    chance = np.full(states.shape[1], 0.25)
    for v, above in tree.edges():
        chance *= transition(tree.length[v])[states[above], states[v]]
    agrees = np.ones((states.shape[1], codes.shape[1]), dtype=bool)
    for v in range(tree.n_taxa):
        agrees &= (codes[v][None, :] >> states[v][:, None] & 1).astype(bool)
    joint = chance[:, None] * agrees
    return np.array([[joint[states[v] == a].sum(axis=0) for a in range(4)] for v in range(tree.n_vertices)])


def log_likelihood(tree: Tree, codes: np.ndarray, counts: np.ndarray) -> float:
    """The sum over all states, for trees of up to about eight vertices."""
    likelihoods = joint_by_vertex(tree, codes)[0].sum(axis=0)
    return float(counts @ np.log(likelihoods))


def log_likelihood_in_logs(tree: Tree, codes: np.ndarray, counts: np.ndarray) -> float:
    """Pruning with every number kept as its logarithm: slow, but nothing can underflow."""
    with np.errstate(divide="ignore"):
        observed = np.log(np.stack([codes >> a & 1 for a in range(4)], axis=1).astype(float))
    partial = np.zeros((tree.n_vertices, 4, codes.shape[1]))
    partial[: tree.n_taxa] = observed
    for v in tree.postorder.tolist():
        if v != tree.root:
            log_p = np.log(transition(tree.length[v]))
            partial[tree.parent[v]] += logsumexp(log_p[:, :, None] + partial[v][None], axis=1)
    return float(counts @ (logsumexp(partial[tree.root], axis=0) - np.log(4)))
