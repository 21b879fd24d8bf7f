"""Published split frequencies and evidence: default settings, first try.

The golden files hold split frequencies averaged over ten long MrBayes runs by others; they lie beside the repository
and are not part of it. Evidence: the published consensus under Exp(10), on which MrBayes's stepping stone, VBPI, ARTree
and PhyloGFN agree within their errors.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from vaiphy import datasets, refine
from vaiphy.alignment import compress

GOLDEN = Path(__file__).parents[3] / "shared" / "golden"
CONSENSUS = {"DS1": -7108.4, "DS2": -26367.7, "DS3": -33735.1, "DS4": -13329.9}


def split_frequencies(found: refine.Refinement, taxa: list[str], reference: str) -> dict[frozenset[int], float]:
    """Weighted frequency of every split, as the side without the reference taxon, by indices into `taxa`."""
    sample = found.sample
    index = [taxa.index(name) for name in sample.taxa]
    everything, without = frozenset(range(len(taxa))), taxa.index(reference)
    frequency: dict[frozenset[int], float] = {}
    by_topology = np.bincount(sample.topology, weights=sample.weights, minlength=sample.n_topologies)
    for children, weight in zip(sample.children, by_topology.tolist()):
        clades = [frozenset([i]) for i in index]
        for a, b in children.tolist():
            clades.append(clades[a] | clades[b])
        for clade in clades[len(index) : -1]:
            side = everything - clade if without in clade else clade
            frequency[side] = frequency.get(side, 0.0) + weight
    return frequency


@pytest.mark.parametrize("name", ["DS1", *(pytest.param(name, marks=pytest.mark.slow) for name in ("DS2", "DS3", "DS4"))])
def test_against_long_mrbayes_runs(name: str) -> None:
    file = GOLDEN / f"{name}.json"
    if not file.exists():
        pytest.skip(f"reference values not found: {file.name} belongs in a folder shared/golden beside the repository")
    golden = json.loads(file.read_text())
    state = refine.initialise(compress(datasets.load(name)), refine.Settings(), seed=1)
    while not state.done:
        state, _ = refine.step(state, threads=2)
    found = refine.result(state)
    assert found.trust_ok, found.reasons
    assert found.log_evidence == pytest.approx(CONSENSUS[name], abs=0.2)
    assert found.std_error <= 0.05
    ours = split_frequencies(found, golden["taxa"], golden["reference_taxon"])
    theirs = {frozenset(split["taxa"]): split["frequency"] for split in golden["splits"]}
    pairs = np.array([(ours.get(split, 0.0), theirs.get(split, 0.0)) for split in ours.keys() | theirs.keys()])
    assert np.abs(pairs[:, 0] - pairs[:, 1]).max() <= 0.02
    counted = pairs[pairs.max(axis=1) >= 0.1]
    assert counted.std(axis=1, ddof=1).mean() <= 0.005
