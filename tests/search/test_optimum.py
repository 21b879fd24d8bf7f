"""Given trees under any model: IQ-TREE's likelihoods, and optima that are at least as good as its."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from reference.make_model_values import EXAMPLES, RECORD, alignment_named

from vaiphy import likelihood
from vaiphy.alignment import Alignment, compress, encode
from vaiphy.alphabets import DNA
from vaiphy.errors import InputError
from vaiphy.formats import newick
from vaiphy.search.optimum import log_likelihood, optimum
from vaiphy.target import target_of
from vaiphy.trees.tree import simplified

VALUES = json.loads(Path(RECORD).read_text())
examples = pytest.mark.skipif(not EXAMPLES.exists(), reason="the alignments are in Debian's package mrbayes")


@cache
def patterns_named(name):
    return compress(alignment_named(name))


def of_record(record, **options):
    patterns = patterns_named(record["data"])
    tree = newick.read(record["tree"], newick.Names(patterns.taxa))
    return log_likelihood(target_of(patterns, record["model"], **options), tree)


@pytest.mark.parametrize("data", ["DS1", "DS4", "DS1+IUPAC"])
def test_nucleotides_as_iqtree(data):
    records = [record for record in VALUES["dna"] if record["data"] == data]
    assert [of_record(r) for r in records] == pytest.approx([r["iqtree"] for r in records], abs=1e-3)


@examples
@pytest.mark.parametrize("data", ["avian_ovomucoids", "cynmix", "cynmix+variable", "cynmix+binary"])
def test_other_alphabets_as_iqtree(data):
    records = [record for record in VALUES["others"] if record["data"] == data]
    found = [of_record(r, by_character=False) for r in records]
    assert found == pytest.approx([r["iqtree"] for r in records], abs=1e-3)


@examples
def test_characters_by_their_own_states_as_mrbayes():
    """MrBayes takes the probability of a constant character from two states for all of them; ours is each group's own."""
    for record in VALUES["by_character"]:
        assert of_record(record) == pytest.approx(record["mrbayes"], abs=0.1)


@pytest.mark.parametrize(
    ("model", "lengths", "iqtree"),
    [
        # iqtree2 2.0.7 -s DS1.phy -m MODEL -te TREE [-blfix] -keep-ident; GTR+I+G4 as GTR+FO+I+G4; TREE: DS1's bionj tree.
        ("JC", True, -6955.2035),
        ("HKY+F+G4", True, -6586.8345),
        ("GTR+I+G4", True, -6488.2174),
        ("GTR+I+G4", False, -6576.8869),
    ],
)
def test_optima_are_no_worse_than_those_of_iqtree(model, lengths, iqtree):
    patterns = patterns_named("DS1")
    tree = newick.read(VALUES["dna"][0]["tree"], newick.Names(patterns.taxa))
    target = target_of(patterns, model)
    best = optimum(target, tree, lengths)
    assert iqtree - 1e-3 <= best.log_likelihood <= iqtree + 0.15
    assert log_likelihood(target, best.tree, best.z) == pytest.approx(best.log_likelihood, abs=1e-4)
    if not lengths:
        assert best.tree is tree


@pytest.fixture
def small():
    rows = ["ACGTACGTAC-TTR", "ACGTACGAACGTTA", "ACGAAC-TACCTTA", "TCGAACRTACCTAA", "TCGATCGTACCTAC"]
    return compress(Alignment(tuple("abcde"), np.array([encode(row) for row in rows])))


@pytest.mark.parametrize(
    "text", ["((a:.1,b:.1):.2,(c:.1,d:.3):.1,e:.2);", "(a:.1,b:.1,c:.2,d:.3,e:.2);", "((a:.1,b:.1):.2,(c:.1,(d:.3,e:.2):.1):.3);"]
)
def test_polytomies_and_roots_as_the_path_for_jc69_has_them(small, text):
    tree = newick.read(text, newick.Names(small.taxa))
    target = target_of(small, "JC")
    assert log_likelihood(target, tree) == pytest.approx(likelihood.log_likelihood(tree, small), abs=1e-9)
    expected, value = likelihood.optimise(simplified(tree), small, tolerance=1e-9)
    best = optimum(target, tree)
    assert best.log_likelihood == pytest.approx(value, abs=1e-5)
    assert best.tree.topology == tree.topology
    assert np.sort(best.tree.length) == pytest.approx(np.sort(expected.length), abs=1e-3)


@pytest.mark.parametrize("model", ["JC", "HKY{2}+F{0.1,0.2,0.3,0.4}+G4{0.5}"])
def test_impossible_data_have_no_likelihood(small, model):
    tree = newick.read("((a:0,b:.1):.2,c:0,(d:0,e:.3):0);", newick.Names(small.taxa))
    assert log_likelihood(target_of(small, model), tree) == -np.inf


def test_trees_that_cannot_be_scored(small):
    two = compress(Alignment(("a", "b"), small.codes[:2]))
    with pytest.raises(InputError, match="at least 3"):
        log_likelihood(target_of(two, "K80{2}"), newick.read("(a:1,b:1);", newick.Names(two.taxa)))
    assert target_of(two, "K80{2}").parts[0].model.alphabet is DNA
