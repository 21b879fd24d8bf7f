"""Adam (Kingma and Ba 2015): one step of stochastic ascent over a flat vector of parameters."""

import numpy as np

from vaiphy.kernels.compile import kernel


@kernel
def ascend(parameters, gradient, first, second, iteration, rate, decay_first, decay_second, epsilon):
    """Move `parameters` along `gradient`; `first` and `second` are the running moments, `iteration` counts from 1."""
    one = np.float32(1.0)
    b1, b2 = np.float32(decay_first), np.float32(decay_second)
    scale = np.float32(rate * np.sqrt(1.0 - decay_second**iteration) / (1.0 - decay_first**iteration))
    small = np.float32(epsilon * np.sqrt(1.0 - decay_second**iteration))
    for i in range(parameters.shape[0]):
        g = gradient[i]
        m = b1 * first[i] + (one - b1) * g
        v = b2 * second[i] + (one - b2) * g * g
        first[i] = m
        second[i] = v
        parameters[i] += scale * m / (np.sqrt(v) + small)
