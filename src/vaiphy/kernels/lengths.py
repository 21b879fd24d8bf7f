"""One-dimensional branch-length distributions under JC69: normaliser, moments, exact sampling.

With v = 1 - exp(-4b/3) every distribution here has, in v on (0, 1), the density proportional to

    f(v) = (1 - v)^(a - 1) * v^d * (1 - 3v/4)^s1 * (1 - v/2)^s2 * (1 - v/4)^s3

where d counts changed sites and s_k sites at which a leaf's set of k possible bases holds the ancestor's base: p_same
= 1 - 3v/4, p_diff = v/4, p_same + p_diff = 1 - v/2, p_same + 2 p_diff = 1 - v/4. The prior Exp(rate) is a = 3 rate/4,
so a = 3 rate/4 gives the optimal mean-field distribution (paper, Eq. 8) and a = 1 the JC sampler (Eq. 14-15, truncated to p >
1/4).

A distribution is a row [a, d, s1, s2, s3].
"""

import numpy as np

from vaiphy.kernels.compile import inlined, kernel

# Rows of moments: log normaliser, E log v, E log(1 - 3v/4), E log(1 - v/2), E log(1 - v/4), E b.
N_MOMENTS = 6
NEGLIGIBLE = 1e-13
FOUR_THIRDS = 4.0 / 3.0


@inlined
def peak(a, d, s1, s2, s3):
    """The v at which d/v = a/(1-v) + sum_k c_k s_k/(1 - c_k v); 0 if d = 0, at most 1.

    v * (right side) is convex and increasing, so Newton's method from an upper bound of the root descends to it.
    """
    if d <= 0.0:
        return 0.0
    slope = a + 0.75 * s1 + 0.5 * s2 + 0.25 * s3
    v = 1.0 if a <= 0.0 else d / (a + d)
    if slope > 0.0:
        v = min(v, d / slope)
    for _ in range(100):
        r1, r2, r3 = 0.75 / (1.0 - 0.75 * v), 0.5 / (1.0 - 0.5 * v), 0.25 / (1.0 - 0.25 * v)
        r0 = 1.0 / (1.0 - v) if a > 0.0 else 0.0
        rate = a * r0 + s1 * r1 + s2 * r2 + s3 * r3
        excess = v * rate - d
        if excess <= 0.0:
            return v  # at the root, or (a = 0) the distribution still rises at v = 1
        step = excess / (rate + v * (a * r0 * r0 + s1 * r1 * r1 + s2 * r2 * r2 + s3 * r3 * r3))
        v -= step
        if step < 1e-13 * v:
            break
    return v


@inlined
def integrate(a, d, s1, s2, s3, out):
    """Fill `out` with the moments of one distribution, by the trapezoidal rule in x = log(v/(1-v)).

    In x the distribution is unimodal with exponential tails, so the rule converges geometrically in the number of nodes: the
    step below keeps the relative error around 1e-11 from an exponential (d = 0) to a nearly normal distribution (d large). The
    two moments that only ambiguous leaf sites need are left at 0 where s2 = s3 = 0.
    """
    shape = d + 1.0
    v = peak(a, shape, s1, s2, s3)
    r0, r1, r2, r3 = 1.0 / (1.0 - v), 0.75 / (1.0 - 0.75 * v), 0.5 / (1.0 - 0.5 * v), 0.25 / (1.0 - 0.25 * v)
    rate = a * r0 + s1 * r1 + s2 * r2 + s3 * r3
    curvature = v * (1.0 - v) ** 2 * (rate + v * (a * r0 * r0 + s1 * r1 * r1 + s2 * r2 * r2 + s3 * r3 * r3))
    step = min(0.7, 0.33 + 0.1 * np.log(max(1.0, curvature))) / np.sqrt(curvature)
    if v > 0.7:
        step *= 0.5  # towards saturation one side falls like exp(-exp(2x)) and needs twice the nodes
    centre = np.log(v) - np.log1p(-v)
    top = 0.0
    total = 0.0
    m1 = m2 = m3 = m4 = m5 = 0.0
    for side in range(2):
        k = 0 if side == 0 else 1
        while True:
            x = centre + (k * step if side == 0 else -k * step)
            # log v and log(1 - v), each without cancellation.
            if x > 0.0:
                e = np.exp(-x)
                log_v = -np.log1p(e)
                log_u = log_v - x
                v = 1.0 / (1.0 + e)
            else:
                e = np.exp(x)
                log_u = -np.log1p(e)
                log_v = log_u + x
                v = e / (1.0 + e)
            l1 = np.log1p(-0.75 * v)
            value = a * log_u + shape * log_v + s1 * l1
            l2 = l3 = 0.0
            if s2 > 0.0 or s3 > 0.0:
                l2 = np.log1p(-0.5 * v)
                l3 = np.log1p(-0.25 * v)
                value += s2 * l2 + s3 * l3
            if side == 0 and k == 0:
                top = value
            weight = np.exp(value - top)
            total += weight
            m1 += weight * log_v
            m2 += weight * l1
            m3 += weight * l2
            m4 += weight * l3
            m5 -= weight * log_u
            if weight < NEGLIGIBLE:
                break
            k += 1
    out[0] = top + np.log(total * step)
    out[1] = m1 / total
    out[2] = m2 / total
    out[3] = m3 / total
    out[4] = m4 / total
    out[5] = 0.75 * m5 / total


@inlined
def log_kernel(a, d, s1, s2, s3, v):
    """log f(v); d = 0 at v = 0 and a = 1 at v = 1 are finite."""
    value = s1 * np.log1p(-0.75 * v)
    if d > 0.0:
        value += d * np.log(v)
    if a != 1.0:
        value += (a - 1.0) * np.log1p(-v)
    if s2 > 0.0 or s3 > 0.0:
        value += s2 * np.log1p(-0.5 * v) + s3 * np.log1p(-0.25 * v)
    return value


@kernel
def moments(laws, out):
    """Moments (E, 6) of the distributions (E, 5)."""
    for e in range(laws.shape[0]):
        integrate(laws[e, 0], laws[e, 1], laws[e, 2], laws[e, 3], laws[e, 4], out[e])


@inlined
def draw(law, log_norm, rng):
    """One exact draw of v: rejection for log-concave densities with known mode (Devroye), one draw in four accepted.

    f is log-concave for a >= 1 and d >= 0, and then f(v)/f(mode) <= min(1, exp(1 - |v - mode| f(mode)/norm)).
    """
    a, d, s1, s2, s3 = law[0], law[1], law[2], law[3], law[4]
    mode = peak(a - 1.0, d, s1, s2, s3)
    top = log_kernel(a, d, s1, s2, s3, mode)
    scale = np.exp(log_norm - top)
    while True:
        r = 2.0 * rng.random()
        bound = 1.0
        y = r
        if r > 1.0:
            bound = r - 1.0
            y = 1.0 - np.log(bound)
        if mode > 0.0 and (mode >= 1.0 or rng.random() < 0.5):
            y = -y
        v = mode + y * scale
        if 0.0 < v < 1.0 and rng.random() * bound <= np.exp(log_kernel(a, d, s1, s2, s3, v) - top):
            return v


@inlined
def log_length_density(law, log_norm, length, prior_share, prior_rate):
    """Log-density of a branch length under (1 - share) * distribution + share * Exp(prior_rate)."""
    v = -np.expm1(-FOUR_THIRDS * length)
    value = -np.inf
    if 0.0 < v < 1.0 or (v == 0.0 and law[1] == 0.0):
        # dv/db = 4/3 (1 - v)
        value = log_kernel(law[0], law[1], law[2], law[3], law[4], v) - log_norm + np.log(FOUR_THIRDS) - FOUR_THIRDS * length
    if prior_share > 0.0:
        other = np.log(prior_share * prior_rate) - prior_rate * length
        value += np.log1p(-prior_share)
        top = max(value, other)
        value = top + np.log(np.exp(value - top) + np.exp(other - top))
    return value


@inlined
def draw_length(law, log_norm, rng):
    """A branch length: `draw`, as a length."""
    return -0.75 * np.log1p(-draw(law, log_norm, rng))


@kernel
def sample(laws, log_norms, rng, prior_share, prior_rate, lengths, log_density):
    """One branch length and its log-density for each distribution (E, 5)."""
    for e in range(laws.shape[0]):
        if prior_share > 0.0 and rng.random() < prior_share:
            lengths[e] = -np.log1p(-rng.random()) / prior_rate
        else:
            lengths[e] = draw_length(laws[e], log_norms[e], rng)
        log_density[e] = log_length_density(laws[e], log_norms[e], lengths[e], prior_share, prior_rate)


@kernel
def log_densities(laws, log_norms, lengths, prior_share, prior_rate, out):
    """Log-densities of branch lengths, one for each distribution."""
    for e in range(laws.shape[0]):
        out[e] = log_length_density(laws[e], log_norms[e], lengths[e], prior_share, prior_rate)


@kernel
def sample_trees(parents, laws, log_norms, rng, prior_share, prior_rate, lengths, log_density):
    """Branch lengths for trees (T, N): the branch between v and its parent p follows `laws[v, p - n_taxa]`.

    The parent of every vertex is internal. `log_density` (T,) receives the sums over branches.
    """
    n_vertices = parents.shape[1]
    n_taxa = n_vertices - laws.shape[1]
    for t in range(parents.shape[0]):
        total = 0.0
        for vertex in range(n_vertices):
            above = parents[t, vertex]
            if above < 0:
                lengths[t, vertex] = 0.0
                continue
            law = laws[vertex, above - n_taxa]
            log_norm = log_norms[vertex, above - n_taxa]
            if prior_share > 0.0 and rng.random() < prior_share:
                length = -np.log1p(-rng.random()) / prior_rate
            else:
                length = draw_length(law, log_norm, rng)
            lengths[t, vertex] = length
            total += log_length_density(law, log_norm, length, prior_share, prior_rate)
        log_density[t] = total


@kernel
def log_densities_of_trees(parents, laws, log_norms, prior_share, prior_rate, lengths, out):
    """Sum over branches of the log-density, for trees (T, N) with lengths (T, N)."""
    n_vertices = parents.shape[1]
    n_taxa = n_vertices - laws.shape[1]
    for t in range(parents.shape[0]):
        total = 0.0
        for vertex in range(n_vertices):
            above = parents[t, vertex]
            if above >= 0:
                total += log_length_density(
                    laws[vertex, above - n_taxa],
                    log_norms[vertex, above - n_taxa],
                    lengths[t, vertex],
                    prior_share,
                    prior_rate,
                )
        out[t] = total
