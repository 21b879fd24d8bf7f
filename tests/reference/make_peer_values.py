"""Log-likelihoods of given trees by PhyML and IQ-TREE, recorded in peer_values.json for the tests.

Run it from the top of the repository with both programs installed (Debian packages `phyml` and `iqtree`):

    PYTHONPATH=tests .venv/bin/python -m reference.make_peer_values

Each data set has two trees, both with branches of at least 0.001 (the programs have lower bounds of their own): its BIONJ
tree, and a random one whose branches are long and wrong. Taxa are called t1, t2, ... in the order of the alignment.
"""

import json
import os
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from reference.random_trees import random_binary_tree

from vaiphy import datasets
from vaiphy.alignment import Alignment, compress, decode
from vaiphy.formats import newick, phylip
from vaiphy.search.starts import bionj, distances

RECORD = Path(__file__).with_name("peer_values.json")
SHORTEST = 0.001
IQTREE = "iqtree2 -s data.phy -m JC -te tree.nwk -blfix -keep-ident -nt 1 -redo -quiet"
PHYML = "phyml -i data.phy -d nt -m JC69 -c 1 -v 0 -b 0 -u tree.nwk -o n"
PHYML_OPTIMISES = "phyml -i data.phy -d nt -m JC69 -c 1 -v 0 -b 0 -o l"


def alignment_named(name: str) -> Alignment:
    """A data set with its taxa called t1, t2, ...; `DS1+IUPAC` is DS1 with every eleventh base made ambiguous."""
    alignment = datasets.load(name.removesuffix("+IUPAC"))
    sites = alignment.sites
    if name.endswith("+IUPAC"):
        taxon, site = np.indices(sites.shape)
        chosen = (7 * taxon + 3 * site) % 11 == 0
        # Adding a base or two to a set: every one of the fifteen codes occurs.
        sites = np.where(chosen, sites | 1 + (taxon + 5 * site) % 15, sites).astype(np.uint8)
    return replace(alignment, taxa=tuple(f"t{i + 1}" for i in range(alignment.n_taxa)), sites=sites)


def trees_of(name: str, alignment: Alignment) -> dict[str, str]:
    matrix = distances(compress(alignment))
    rng = np.random.default_rng(sum(map(ord, name)))
    trees = {"bionj": bionj(matrix, alignment.taxa), "random": random_binary_tree(alignment.n_taxa, rng, alignment.taxa)}
    return {kind: newick.write(tree.with_lengths(np.maximum(tree.length, SHORTEST)), digits=6) for kind, tree in trees.items()}


def run(command: str, folder: Path, result: str, pattern: str) -> float:
    """What `pattern` finds in the file `result` that the command leaves in the folder."""
    # Debian's PhyML starts MPI unless told how many processes there are.
    subprocess.run(command.split(), cwd=folder, env={**os.environ, "PHYMLCPUS": "1"}, check=True, capture_output=True)
    found = re.search(pattern, (folder / result).read_text())
    assert found, f"{command}: no log-likelihood in {result}"
    return float(found.group(1))


def peer_values(name: str) -> list[dict]:
    alignment = alignment_named(name)
    records = []
    for kind, tree in trees_of(name, alignment).items():
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write(folder, alignment)
            (folder / "tree.nwk").write_text(tree + "\n")
            iqtree = run(IQTREE, folder, "data.phy.iqtree", r"Log-likelihood of the tree: (\S+)")
            phyml = run(PHYML, folder, "data.phy_phyml_stats.txt", r"Log-likelihood:\s*(\S+)")
        records.append({"data": name, "kind": kind, "tree": tree, "iqtree": iqtree, "phyml": phyml})
        print(name, kind, iqtree, phyml, flush=True)
    return records


def optimised_by_phyml(name: str) -> dict:
    """PhyML's own BIONJ tree with the branch lengths it finds best."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, alignment_named(name))
        value = run(PHYML_OPTIMISES, folder, "data.phy_phyml_stats.txt", r"Log-likelihood:\s*(\S+)")
        return {"data": name, "phyml": value, "tree": (folder / "data.phy_phyml_tree.txt").read_text().strip()}


def write(folder: Path, alignment: Alignment) -> None:
    (folder / "data.phy").write_text(phylip.write(alignment.taxa, [decode(row) for row in alignment.sites]))


def version(command: str, pattern: str) -> str:
    said = subprocess.run(command.split(), env={**os.environ, "PHYMLCPUS": "1"}, capture_output=True, text=True, check=False)
    found = re.search(pattern, said.stdout + said.stderr)
    return found.group(0) if found else "unknown"


def main() -> None:
    record = {
        "versions": {
            "iqtree": version("iqtree2 --version", r"IQ-TREE.* version \S+"),
            "phyml": version("phyml --version", r"PhyML version \S+"),
        },
        "commands": {"iqtree": IQTREE, "phyml": PHYML, "phyml, optimised": PHYML_OPTIMISES},
        "optimised": optimised_by_phyml("DS1"),
        "given": [value for name in [*(f"DS{k}" for k in range(1, 9)), "DS1+IUPAC"] for value in peer_values(name)],
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
