"""Runs under constraints: their evidences and numbers of trees fit together, and results say what was required."""

import json
from functools import cache

import numpy as np
import pytest

import vaiphy
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.trees.constraints import n_unrooted

TAXA = taxon_names(6)


def data():
    rng = np.random.default_rng(3)
    return random_alignment(random_tree(TAXA, rng), 10, rng, 0.0)


@cache
def analysed(kind):
    clade = [TAXA[2], TAXA[3]]
    options = {"all": {}, "with": {"monophyletic": [clade]}, "without": {"not_monophyletic": [",".join(clade)]}}[kind]
    return vaiphy.run(data(), model="JC", seed=1, threads=1, accuracy=0.05, **options)


def test_evidences_with_and_without_a_clade_give_its_probability():
    """Z = share * Z with + (1 - share) * Z without, and the clade's probability is the first term's part of it."""
    share = 15 / 105
    found = {kind: analysed(kind) for kind in ("all", "with", "without")}
    terms = share * np.exp(found["with"].log_evidence), (1 - share) * np.exp(found["without"].log_evidence)
    error = np.sqrt(sum(one.std_error**2 for one in found.values()))
    assert error < 0.1
    assert found["all"].log_evidence == pytest.approx(np.log(sum(terms)), abs=4 * error)
    implied = terms[0] / sum(terms)
    assert 0.02 < implied < 0.98
    assert probability(found["all"]) == pytest.approx(implied, abs=0.08)
    assert probability(found["with"]) == 1.0
    assert probability(found["without"]) == 0.0


def probability(analysis):
    """Weight of the trees in which taxa 2 and 3 are together."""
    sample = analysis.weighted
    pairs = np.sort(sample.children, axis=2) == [2, 3]
    together = pairs.all(axis=2).any(axis=1)[sample.topology]
    weights = np.exp(sample.log_weights - sample.log_weights.max())
    return float(weights[together].sum() / weights.sum())


def test_results_name_the_constraint(tmp_path):
    prefix = tmp_path / "out"
    # The first taxon is not in the constraint tree: another comes first.
    tree = f"(({TAXA[2]},{TAXA[3]}),{TAXA[4]},{TAXA[1]});"
    analysis = vaiphy.run(data(), prefix=prefix, model="JC", seed=1, threads=1, accuracy=1.0, constraint=tree, safe_names=True)
    assert analysis.patterns.taxa[0] == TAXA[1]
    sentence = f"equally likely are those {n_unrooted(6) // 3} of the {n_unrooted(6)} unrooted binary trees"
    stored = json.loads(prefix.with_suffix(".json").read_text())
    assert any(sentence in line for line in stored["model"])
    assert stored["settings"]["constraints"][0].startswith("among: ")
    assert "2 taxa may be anywhere" in " ".join(prefix.with_suffix(".vaiphy").read_text().split())
    assert "taxa may be anywhere" in prefix.with_suffix(".html").read_text()
    with pytest.raises(vaiphy.InputError, match="constraints"):
        vaiphy.run(data(), prefix=prefix, model="JC", seed=1, threads=1, accuracy=1.0)
