"""The smallest and largest numbers that are accepted, in one place; light, so that the command line can name them at once."""

from collections.abc import Iterable

#: Setting -> what it is called in messages, and the smallest and largest value accepted.
RANGES: dict[str, tuple[str, float, float]] = {
    "seed": ("the seed", 0, 2**63 - 1),
    "replicates": ("the number of replicates", 2, 1000),
    "accuracy": ("the accuracy (a standard error of the log marginal likelihood)", 1e-4, 1000),
    "bridges": ("the number of bridges", 2, 100_000),
    "iterations": ("the number of iterations", 1, 10**9),
    "particles": ("the number of particles", 2, 10**8),
    "n_trees": ("the number of trees to write", 1, 10**6),
}
#: Numbers of a prior of branch lengths: rates, shapes.
PRIOR_NUMBERS = (0.02, 1e6)


def outside(values: Iterable[tuple[str, float | None]]) -> list[str]:
    """What is wrong with settings (name, value) that are outside their range; None is a default and always right."""
    return [
        f"{words} must be from {say_range(low, high)}, not {value}"
        for (words, low, high), value in ((RANGES[name], value) for name, value in values)
        if value is not None and not low <= value <= high
    ]


def say_range(low: float, high: float) -> str:
    """A range as people write it.

    >>> say_range(1e-3, 1e6)
    '0.001 to 1,000,000'
    """
    return f"{_bound(low)} to {_bound(high)}"


def _bound(value: float) -> str:
    if value == 2**63 - 1:
        return "2^63 - 1"
    return f"{int(value):,}" if value == int(value) else f"{value:g}"
