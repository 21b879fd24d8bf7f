"""Small alignments and finished runs for the tests of the tool, with a stand-in for the science where that is enough."""

import numpy as np
from reference.random_trees import random_binary_tree

from vaiphy.methods import METHODS

#: Module and class of the stand-in, as the table of methods has them.
STANDIN = ("reference.fake_posterior", "FakeMethod")
NAMES = ("Homo", "Pan", "Gorilla", "Pongo", "Hylobates", "Macaca", "Lemur", "Tarsius")
#: Names that break careless writers of Newick, NEXUS, tables and pages.
NASTY = ("<script>alert(1)</script>", "it's", "a b", "x;y", "p(q)", "r,s", '"quoted"', "&amp;", "100", "%s%d", "new_name", "[c]")


def fasta(taxa, n_sites=60, seed=1, rate=10.0):
    """Sequences evolved along a random tree under JC69, as FASTA."""
    rng = np.random.default_rng(seed)
    tree = random_binary_tree(len(taxa), rng, tuple(taxa), rate)
    bases = np.zeros((tree.n_vertices, n_sites), dtype=int)
    for vertex in tree.postorder[::-1].tolist():
        above = int(tree.parent[vertex])
        if above < 0:
            bases[vertex] = rng.integers(4, size=n_sites)
        else:
            changed = rng.random(n_sites) < 0.75 * (1 - np.exp(-4 / 3 * tree.length[vertex]))
            bases[vertex] = (bases[above] + changed * rng.integers(1, 4, size=n_sites)) % 4
    rows = ("".join("ACGT"[b] for b in bases[k]) for k in range(len(taxa)))
    return "".join(f">{name}\n{row}\n" for name, row in zip(taxa, rows))


def use_standin(monkeypatch):
    """`--method posterior` gives made-up trees in no time."""
    monkeypatch.setitem(METHODS, "posterior", STANDIN)
