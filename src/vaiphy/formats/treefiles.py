"""Tree samples from files: anybody's, with burn-in and weights; one run a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vaiphy.errors import InputError
from vaiphy.formats import read_trees
from vaiphy.trees.splits import SplitSample, from_trees, joined


def tree_files(name: str) -> list[Path]:
    """The files a name stands for: PREFIX.run1.t, PREFIX.run2.t, ... as MrBayes and VaiPhy write them, or a file itself.

    Runs come first: the prefix of a run is by default the name of its alignment, which is a file as well.
    """
    path = Path(name)
    if name == "-":
        return [path]
    found: list[Path] = []
    while (run := path.with_name(f"{path.name}.run{len(found) + 1}.t")).is_file():
        found.append(run)
    if found:
        return found
    for single in (path, path.with_name(f"{path.name}.trees.nwk")):
        if single.is_file():
            return [single]
    raise InputError(f"{name}: there is no such file, nor a tree file {name}.run1.t or {name}.trees.nwk")


def load_sample(
    paths: Sequence[str | Path], burnin: float = 0.0, taxa: tuple[str, ...] | None = None, weighted: bool = True
) -> SplitSample:
    """The trees of files as one sample, each file with the same total weight and as a replicate of its own.

    `burnin` leaves out the first trees of each file: below 1 a share of them, from 1 on a number. Weights in the files
    (`[&W 0.3]`) count if `weighted`. Taxa are numbered as in `taxa`, else as in the first file.
    """
    samples: list[SplitSample] = []
    for path in paths:
        entries = read_trees(path, taxa)
        if entries[0].tree.n_taxa < 3:
            raise InputError(f"{path}: the trees have {entries[0].tree.n_taxa} taxa; at least 3 are needed")
        skip = int(burnin * len(entries)) if burnin < 1 else int(burnin)
        if skip >= len(entries):
            raise InputError(f"{path}: a burn-in of {skip} leaves none of its {len(entries)} trees")
        entries = entries[skip:]
        weights = None
        if weighted and any(entry.weight is not None for entry in entries):
            weights = [1.0 if entry.weight is None else entry.weight for entry in entries]
            if not np.sum(weights) > 0:
                raise InputError(f"{path}: all tree weights are zero")
        samples.append(from_trees((entry.tree for entry in entries), weights))
        taxa = samples[0].taxa
    return joined(samples)
