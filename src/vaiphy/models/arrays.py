"""Models as arrays: what the likelihood reads, for N parameter points at once; S states, C rate categories."""

from typing import NamedTuple

import numpy as np

from vaiphy.models.blocks import Floats


class EqualInput(NamedTuple):
    """Arrays of an equal-input model at N parameter points: S states, C categories."""

    pi: Floats  # (N, S)
    beta: Floats  # (N,)
    rates: Floats  # (N, C), divided by 1 - p_inv
    weights: Floats  # (N, C), summing to 1 - p_inv
    p_inv: Floats  # (N,)


class Spectral(NamedTuple):
    """Arrays of any reversible model at N parameter points."""

    pi: Floats  # (N, S)
    forward: Floats  # (N, S, S)
    backward: Floats  # (N, S, S)
    decay: Floats  # (N, S), the first exactly zero, none below
    rates: Floats  # (N, C), divided by 1 - p_inv
    weights: Floats  # (N, C), summing to 1 - p_inv
    p_inv: Floats  # (N,)


Arrays = EqualInput | Spectral


def decomposed(exchangeabilities: Floats, pi: Floats) -> tuple[Floats, Floats, Floats]:
    """(forward, backward, decay) of Q_ij = r_ij pi_j scaled to one substitution per unit length, for N points at once.

    The eigenvector of 0 is known, sqrt(pi). It is moved out of the way, to the top, and put back as it is, so that rows of
    P sum to one even where Q nearly falls apart and other eigenvalues are close to 0.
    """
    root = np.sqrt(pi)
    negative = -exchangeabilities * root[:, :, None] * root[:, None, :]
    leaving = np.einsum("nij,nj->ni", exchangeabilities, pi)
    states = np.arange(pi.shape[1])
    negative[:, states, states] = leaving
    scale = np.einsum("ni,ni->n", pi, leaving)
    above_all = 4.0 * leaving.max(axis=1)  # no eigenvalue exceeds twice the largest diagonal entry
    negative += above_all[:, None, None] * root[:, :, None] * root[:, None, :]
    decay, vectors = np.linalg.eigh(negative / scale[:, None, None])
    decay = np.concatenate((np.zeros((len(pi), 1)), np.maximum(decay[:, :-1], 0.0)), axis=1)
    vectors = np.concatenate((root[:, :, None], vectors[:, :, :-1]), axis=2)
    forward = np.ascontiguousarray(np.swapaxes(vectors, 1, 2)) * root[:, None, :]
    return forward, np.ascontiguousarray(vectors / root[:, :, None]), decay


def transition(arrays: Arrays, length: float) -> Floats:
    """Transition probabilities (C, S, S) along a branch at the first of the arrays' points, for each rate category."""
    along = arrays.rates[0] * length
    if isinstance(arrays, EqualInput):
        u = np.exp(-arrays.beta[0] * along)[:, None, None]
        return u * np.eye(arrays.pi.shape[1]) + (1.0 - u) * arrays.pi[0]
    kept = np.exp(-np.minimum(arrays.decay[0] * along[:, None], 1e3))
    # Rounding may leave -1e-17 where a change is impossible.
    return np.maximum((arrays.backward[0] * kept[:, None, :]) @ arrays.forward[0], 0.0)


def decomposition(arrays: Arrays) -> tuple[Floats, Floats, Floats]:
    """(forward, backward, decay) of a model, matrices flattened; an equal-input model is decomposed here."""
    n, s = arrays.pi.shape
    if isinstance(arrays, Spectral):
        forward, backward, decay = arrays.forward, arrays.backward, arrays.decay
    else:
        forward, backward, decay = decomposed(np.broadcast_to(1.0 - np.eye(s), (n, s, s)).copy(), arrays.pi)
    return forward.reshape(n, s * s), backward.reshape(n, s * s), decay
