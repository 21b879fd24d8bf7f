"""Alignments by name: DS1 to DS8, or `simulated-TAXAxSITES[-SEED]` drawn from the model with its true tree."""

import re

import numpy as np

from vaiphy import datasets
from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.models import simulate
from vaiphy.trees.tree import Tree


def alignment(name: str) -> Alignment:
    return datasets.load(name) if name.startswith("DS") else simulated(name)[1]


def patterns(name: str) -> SitePatterns:
    return compress(alignment(name))


def simulated(name: str) -> tuple[Tree, Alignment]:
    """The true tree (uniform topology, Exp(10) lengths) and the sequences that evolved along it."""
    found = re.fullmatch(r"simulated-(\d+)x(\d+)(?:-(\d+))?", name)
    if not found:
        raise ValueError(f"{name!r} is neither DS1 to DS8 nor simulated-TAXAxSITES[-SEED]")
    n_taxa, n_sites, seed = (int(part or 0) for part in found.groups())
    rng = np.random.default_rng([n_taxa, n_sites, seed])
    tree = simulate.random_tree(simulate.taxon_names(n_taxa), rng)
    return tree, simulate.random_alignment(tree, n_sites, rng)
