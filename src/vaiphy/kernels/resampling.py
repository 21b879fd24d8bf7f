"""Which particles survive: the inverse of the weights' distribution function at sorted uniforms."""

from vaiphy.kernels.compile import kernel


@kernel
def inverse_cdf(sorted_uniforms, weights, ancestors):
    """ancestors[j] = smallest i with weights[0] + ... + weights[i] > sorted_uniforms[j]; `weights` sum to one."""
    last = weights.shape[0] - 1
    i = 0
    total = weights[0]
    for j in range(sorted_uniforms.shape[0]):
        while total <= sorted_uniforms[j] and i < last:
            i += 1
            total += weights[i]
        ancestors[j] = i
