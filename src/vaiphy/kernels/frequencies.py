"""Sums over the four states, by their frequencies: plain sums where these are equal.

`weights` are the four frequencies, or None if they are equal. What is wanted is scale(weights) * total(weights, ...); with None
Numba leaves the other branch out, so that JC69 does not pay for the frequencies of F81.
"""

from vaiphy.kernels.compile import inlined


@inlined
def scale(weights):
    if weights is None:
        return 0.25
    return 1.0


@inlined
def total(weights, a, b, c, d):
    if weights is None:
        return (a + b) + (c + d)
    return (weights[0] * a + weights[1] * b) + (weights[2] * c + weights[3] * d)
