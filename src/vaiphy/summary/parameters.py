"""Model parameters in figures: means, intervals, effective sizes and densities of the weighted columns of a sample."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.summary.posterior import shortest_interval, weighted_quantiles
from vaiphy.trees.sample import TreeSample

Floats = NDArray[np.float64]
#: Columns that describe a tree as a whole and not the model.
OF_TREES = ("LnL", "LnPr", "TL")


@dataclass(frozen=True)
class Parameter:
    """One column: mean, standard deviation, median, central 95 % interval, shortest 95 % interval and effective size.

    The effective size is how many independent draws would give a mean as sure as this one. Two errors of the mean are
    estimated, one from the weights as if samples were independent and one from the means of the replicates; the larger counts.
    """

    name: str
    mean: float
    sd: float
    median: float
    lower: float
    upper: float
    hpd_lower: float
    hpd_upper: float
    ess: float

    def to_json(self) -> dict[str, float]:
        return {name: value for name, value in asdict(self).items() if name != "name"}


def model_parameters(sample: TreeSample) -> tuple[Parameter, ...]:
    """Summaries of the parameters of the model."""
    return tuple(_summary(name, sample) for name in sample.parameters if name not in OF_TREES)


def tree_parameters(sample: TreeSample) -> tuple[Parameter, ...]:
    """Summaries of log-likelihood (LnL), log-prior (LnPr) and tree length (TL)."""
    return tuple(_summary(name, sample) for name in OF_TREES if name in sample.parameters)


def density(
    values: Floats, weights: Floats, n_points: int = 101, bounds: tuple[float, float] = (-np.inf, np.inf)
) -> tuple[Floats, Floats]:
    """A smooth density of weighted values, for drawing: where and how high. Bandwidth by Silverman's rule.

    What a Gaussian kernel would put outside `bounds` is reflected back inside, so that nothing is lost where values crowd at
    an end of their range. Values that are all the same have no density: one point of infinite height.
    """
    rank = np.argsort(values)
    values, weights = values[rank], weights[rank] / weights.sum()
    mean = float(weights @ values)
    sd = float(np.sqrt(weights @ (values - mean) ** 2))
    low, high = weighted_quantiles(values, weights, np.array([0.25, 0.75]))
    spread = min(sd, (high - low) / 1.349) if high > low else sd
    width = 0.9 * spread * float(1.0 / np.square(weights).sum()) ** -0.2
    if not width > 1e-12 * abs(mean):
        return values[:1], np.array([np.inf])  # the value itself: a weighted mean of equal values may be off in its last digit
    ends = weighted_quantiles(values, weights, np.array([0.001, 0.999]))
    first, last = max(ends[0] - 3 * width, values[0] - width), min(ends[1] + 3 * width, values[-1] + width)
    points = np.linspace(max(first, bounds[0]), min(last, bounds[1]), n_points)
    height = _kernel_sum(points, values, weights, width)
    for end in bounds:
        near = np.abs(values - end) < 6 * width
        if near.any():
            height += _kernel_sum(points, 2 * end - values[near], weights[near], width)
    return points, height


def _kernel_sum(points: Floats, values: Floats, weights: Floats, width: float) -> Floats:
    """Sum of Gaussian kernels around the values, at the points."""
    height = np.zeros(len(points))
    for part in range(0, len(values), 4096):  # a few at a time: the table is as wide as there are points
        x, w = values[part : part + 4096], weights[part : part + 4096]
        height += np.exp(-0.5 * ((points[:, None] - x) / width) ** 2) @ w
    return height / (width * np.sqrt(2.0 * np.pi))


def _summary(name: str, sample: TreeSample) -> Parameter:
    values, weights = sample.parameters[name], sample.weights
    mean = float(weights @ values)
    variance = float(weights @ (values - mean) ** 2)
    rank = np.argsort(values)
    ordered, mass = values[rank], weights[rank]
    median, lower, upper = weighted_quantiles(ordered, mass, np.array([0.5, 0.025, 0.975])).tolist()
    error = max(float(np.square(weights * (values - mean)).sum()), _between(values, sample, mean))
    ess = variance / error if error > 0 else float(sample.n_samples)
    return Parameter(
        name, mean, variance**0.5, median, lower, upper, *shortest_interval(ordered, mass), min(ess, sample.n_samples)
    )


def _between(values: Floats, sample: TreeSample, mean: float) -> float:
    """Variance of the pooled mean by the means of the replicates; 0 if there is one."""
    share = np.bincount(sample.replicate, weights=sample.weights)
    own = np.bincount(sample.replicate, weights=sample.weights * values)[share > 0]
    share = share[share > 0]
    if len(share) < 2:
        return 0.0
    return float(np.square(own - share * mean).sum() * len(share) / (len(share) - 1))
