"""Splits under the names that MrBayes's `sumt` gives its tables: .parts, .tstat and .vstat."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vaiphy.formats.results import split_pattern
from vaiphy.interop.tables import MAX_CHARACTERS
from vaiphy.summary.posterior import SplitTable

#: MrBayes leaves out of .tstat and .vstat what is rarer than this in every run (its `minpartfreq`).
MIN_FREQUENCY = 0.1


def partition_files(table: SplitTable, n_trees: int) -> Iterator[tuple[str, str]]:
    """Suffix and content of the three tables; `n_trees` is the number of equal-weight trees that `#obs` counts in.

    As in MrBayes: splits have the same number in all three, a `*` is a taxon on the side without the first one; .tstat has the
    splits of two or more taxa on either side, intervals in .vstat are the shortest that hold 95 %.
    """
    kept = [i for i in range(len(table)) if i < table.n_trivial or table.replicate_support[:, i].max() >= MIN_FREQUENCY]
    number = {row: k + 1 for k, row in enumerate(kept)}
    runs = len(table.replicate_support)
    inner = [i for i in kept if i >= table.n_trivial]
    known = [i for i in kept if np.isfinite(table.mean[i])]
    own = table.replicate_support
    huge = len(table.taxa) * len(kept) > MAX_CHARACTERS
    parts: dict[str, list[Any]] = {
        "ID": list(number.values()),
        "Partition": ["" if huge else split_pattern(table.splits[i], len(table.taxa)) for i in kept],
    }
    probabilities: dict[str, list[Any]] = {
        "ID": [number[i] for i in inner],
        "#obs": [round(float(table.support[i]) * n_trees) for i in inner],
        "Probability(=s)": table.support[inner].tolist(),
        "Stddev(s)": table.deviation[inner].tolist(),
        "Min(s)": own[:, inner].min(axis=0).tolist(),
        "Max(s)": own[:, inner].max(axis=0).tolist(),
        "Nruns": [runs] * len(inner),
    }
    lengths: dict[str, list[Any]] = {
        "Parameter": [f"length[{number[i]}]" for i in known],
        "Mean": table.mean[known].tolist(),
        "Variance": table.variance[known].tolist(),
        "CredInt_Lower": table.hpd_lower[known].tolist(),
        "CredInt_Upper": table.hpd_upper[known].tolist(),
        "Median": table.median[known].tolist(),
        "PSRF": ["NA"] * len(known),  # there is no chain whose mixing it would measure
        "Nruns": [runs] * len(known),
    }
    yield from ((".parts", _text(parts)), (".tstat", _text(probabilities)), (".vstat", _text(lengths)))


def _text(columns: Mapping[str, Sequence[Any]]) -> str:
    rows = "".join("\t".join(_cell(value) for value in row) + "\n" for row in zip(*columns.values()))
    return "\t".join(columns) + "\n" + rows


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6e}" if np.isfinite(value) else "NA"
    return str(value)
