"""Exact evidence of four taxa under JC69 with Exp(rate) branch lengths, for tens of sites.

The likelihood is a polynomial in each u = exp(-4b/3), integrated exactly by Gauss-Jacobi quadrature as in `exact`; here the
five branches are taken apart (two ends and the middle), so that thirty nodes a branch are seconds and not hours.
"""

import numpy as np
from reference.exact import quadrature


def quartet_log_evidence(bases: np.ndarray, rate: float) -> float:
    """log p(X), trees uniform; `bases` (4, sites) holds 0 to 3."""
    patterns, counts = np.unique(bases, axis=1, return_counts=True)
    decay, weight = quadrature(bases.shape[1], rate)
    kept = weight > 0
    decay, log_weight = decay[kept], np.log(weight[kept])
    ends = np.add.outer(log_weight, log_weight).ravel()
    terms = []
    for a, b, c, d in ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)):
        left, right = (_cherry(patterns[i], patterns[j], decay) for i, j in ((a, b), (c, d)))
        for u, middle in zip(decay, log_weight):
            product = np.ones((len(ends), len(ends)))
            for p, count in enumerate(counts):
                one = (u / 4 * left[:, :, p]) @ right[:, :, p].T
                one += np.outer((1 - u) / 16 * left[:, :, p].sum(axis=1), right[:, :, p].sum(axis=1))
                for _ in range(count):
                    product *= one
            terms.append(np.log(np.exp(ends) @ product @ np.exp(ends)) + middle)
    return float(np.logaddexp.reduce(terms) - np.log(3))


def _cherry(one: np.ndarray, other: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """Partial likelihoods (nodes squared, 4, patterns) above two taxa, for all pairs of nodes."""
    tips = [decay[:, None, None] * np.eye(4)[x].T + (1 - decay[:, None, None]) / 4 for x in (one, other)]
    return (tips[0][:, None] * tips[1][None]).reshape(-1, 4, len(one))


def long_branch(seed: int, n_sites: int = 60, lengths: tuple[float, ...] = (1.2, 0.1, 0.1, 0.1, 0.1)) -> np.ndarray:
    """Four sequences along ((0,1),(2,3)) with one long branch, as 0 to 3."""
    rng = np.random.default_rng(seed)

    def evolved(above: np.ndarray, length: float) -> np.ndarray:
        changed = rng.random(n_sites) < 0.75 * (1 - np.exp(-4 / 3 * length))
        return (above + changed * rng.integers(1, 4, size=n_sites)) % 4

    first = rng.integers(4, size=n_sites)
    second = evolved(first, lengths[4])
    above = (first, first, second, second)
    return np.array([evolved(x, length) for x, length in zip(above, lengths)])
