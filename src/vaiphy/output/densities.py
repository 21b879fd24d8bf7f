"""Posterior densities of the model's parameters and of the tree length, drawn for the page, each with its figures in words."""

import re
from dataclasses import dataclass
from math import floor, inf, log10

from vaiphy.output import svg
from vaiphy.output.analysis import Analysis
from vaiphy.summary.parameters import Parameter, density

#: What the columns of a .p file are, by how their names begin, and the values that they can take.
_KINDS = (
    (r"kappa$", "rate of transitions over that of transversions", (0.0, inf)),
    (r"alpha$", "shape of the gamma distribution of rates across sites", (0.0, inf)),
    (r"pinvar$", "share of invariable sites", (0.0, 1.0)),
    (r"pi\((.+)\)$", "frequency of {}", (0.0, 1.0)),
    (r"r\((.+)<->(.+)\)$", "rate between {} and {}, as a share of all rates", (0.0, 1.0)),
    (r"m$", "rate", (0.0, inf)),
    (r"TL$", "tree length in expected substitutions per site", (0.0, inf)),
)


@dataclass(frozen=True)
class Drawing:
    """A parameter by its name in the files, what it is, its mean and 95 % interval in words, and its density as SVG."""

    name: str
    meaning: str
    figures: str
    svg: str


def drawings(analysis: Analysis) -> list[Drawing]:
    """All parameters of the model, then the tree length; empty if the method samples neither."""
    sample = analysis.outcome.sample
    if sample is None:
        return []
    rows = [*analysis.parameters, *(row for row in analysis.tree_parameters if row.name == "TL")]
    out = []
    for row in rows:
        meaning, bounds = describe(row.name)
        figures = _figures(row)
        points, height = density(sample.parameters[row.name], sample.weights, bounds=bounds)
        label = f"Posterior density of {row.name}{f' ({meaning})' if meaning else ''}: {figures}"
        out.append(Drawing(row.name, meaning, figures, svg.density(points, height, row.mean, (row.lower, row.upper), label)))
    return out


def describe(column: str) -> tuple[str, tuple[float, float]]:
    """What a column of a .p file is, and between which values it lies; a number in braces is that of a part."""
    parted = re.fullmatch(r"(.+)\{(\d+)\}", column)
    name, of = (parted[1], f" of part {parted[2]}") if parted else (column, "")
    for pattern, meaning, bounds in _KINDS:
        found = re.match(pattern, name)
        if found:
            return meaning.format(*found.groups()) + of, bounds
    return of.strip(), (-inf, inf)


def _figures(row: Parameter) -> str:
    """Mean and interval with as many decimals as the standard deviation makes worth reading."""
    decimals = min(8, max(0, 2 - floor(log10(row.sd)))) if row.sd > 1e-12 * abs(row.mean) else 4
    mean, low, high = (f"{value:.{decimals}f}" for value in (row.mean, row.lower, row.upper))
    return f"mean {mean}, 95 % interval {low} to {high}"
