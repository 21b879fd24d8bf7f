"""Splits and topologies as plain columns: what .splits.tsv, .json and data frames hold."""

from typing import Any

import numpy as np

from vaiphy.formats import results
from vaiphy.formats.newick import quoted
from vaiphy.summary.consensus import summary_tree
from vaiphy.summary.posterior import Posterior, SplitTable
from vaiphy.trees.tree import taxa_of

#: Splits with less support are left out.
MIN_SUPPORT = 0.001
#: Taxa x splits beyond which the splits are not spelled out: the table would grow with the square of the taxa.
MAX_CHARACTERS = 100_000_000


def split_columns(table: SplitTable, minimum: float = MIN_SUPPORT) -> dict[str, list[Any]]:
    """One row for each split: the trivial ones in the order of the taxa, then the others by falling support."""
    rows = [i for i in range(len(table)) if table.support[i] >= minimum]
    n = len(table.taxa)
    huge = n * len(rows) > MAX_CHARACTERS
    columns: dict[str, list[Any]] = {
        "split": ["" if huge else results.split_pattern(table.splits[i], n) for i in rows],
        "support": [float(table.support[i]) for i in rows],
        "sd_between_runs": [float(table.deviation[i]) for i in rows],
    }
    for key in ("mean", "median", "lower", "upper", "hpd_lower", "hpd_upper"):
        columns[f"length_{key}"] = [float(getattr(table, key)[i]) for i in rows]
    columns |= {f"support_{r + 1}": [float(row[i]) for i in rows] for r, row in enumerate(table.replicate_support)}
    columns["size"] = [table.splits[i].bit_count() for i in rows]
    names = [quoted(taxon) for taxon in table.taxa]
    columns["taxa"] = ["" if huge else ",".join([names[t] for t in taxa_of(table.splits[i])]) for i in rows]
    return columns


def topology_columns(posterior: Posterior) -> dict[str, list[Any]]:
    """One row for each topology in order of decreasing probability: `probability`, the sum so far, and the tree as Newick."""
    table = posterior.topologies
    names = [quoted(taxon) for taxon in posterior.taxa]
    trees = (summary_tree(posterior.taxa, sorted(splits), dict.fromkeys(splits, 1.0), {}) for splits in table.topologies)
    return {
        "probability": table.probability.tolist(),
        "cumulative": np.minimum(np.cumsum(table.probability), 1.0).tolist(),
        "newick": [results.annotated(tree, names, lengths=False) for tree in trees],
    }
