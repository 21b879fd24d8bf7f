"""How many trees there are: logarithms of the numbers of unrooted, rooted and augmented topologies."""

from math import log

from scipy.special import gammaln


def log_double_factorial(n: int) -> float:
    """log n!! for odd n >= -1."""
    k = (n + 1) // 2
    return float(gammaln(2 * k + 1) - k * log(2.0) - gammaln(k + 1))


def log_n_unrooted(n_taxa: int) -> float:
    """Log number of unrooted binary topologies, (2n - 5)!!."""
    return log_double_factorial(2 * n_taxa - 5) if n_taxa >= 3 else 0.0


def log_n_rooted(n_taxa: int) -> float:
    """Log number of rooted binary topologies, (2n - 3)!!."""
    return log_double_factorial(2 * n_taxa - 3) if n_taxa >= 2 else 0.0


def log_n_augmented(n_taxa: int) -> float:
    """Log number of trees on 2n - 2 labelled vertices of which n are leaves, (n - 2)^(2n - 4)."""
    return (2 * n_taxa - 4) * log(n_taxa - 2) if n_taxa >= 3 else 0.0
