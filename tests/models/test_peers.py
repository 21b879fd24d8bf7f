"""Log-likelihoods under every family of models equal those of IQ-TREE, PhyML and MrBayes (reference/make_model_values.py)."""

import json
from pathlib import Path

import numpy as np
import pytest
from reference.make_model_values import EXAMPLES, RECORD, alignment_named, without_open_columns
from reference.slow_models import log_likelihood, site_log_likelihoods, slow_model

from vaiphy.alignment import compress
from vaiphy.alphabets import MORPH
from vaiphy.formats import newick
from vaiphy.models.alphabets import group_by_states, narrowed
from vaiphy.models.substitution import model_of

VALUES = json.loads(Path(RECORD).read_text())
examples = pytest.mark.skipif(not EXAMPLES.exists(), reason="the alignments are in Debian's package mrbayes")


def named(record):
    return f"{record['data']}-{record.get('kind', len(record['tree']))}-{record['model'].split('{')[0]}-{len(record['model'])}"


def value(record, alignment):
    patterns = compress(alignment)
    tree = newick.read(record["tree"], newick.Names(patterns.taxa))
    model = model_of(record["model"], alignment.alphabet, patterns.codes, patterns.counts)
    return log_likelihood(tree, alignment.alphabet.indicators(patterns.codes), patterns.counts, slow_model(model))


def check(record):
    alignment = alignment_named(record["data"])
    assert value(record, alignment) == pytest.approx(record["iqtree"], abs=1e-3)
    if "phyml" in record:
        assert value(record, without_open_columns(alignment)) == pytest.approx(record["phyml"], abs=1e-3)


@pytest.mark.parametrize("record", VALUES["dna"], ids=named)
def test_nucleotides(record):
    check(record)


@examples
@pytest.mark.parametrize("record", VALUES["others"], ids=named)
def test_other_alphabets(record):
    check(record)


@examples
@pytest.mark.parametrize("record", VALUES["by_character"], ids=named)
def test_characters_with_states_of_their_own(record):
    """MrBayes's convention: a character has as many states as its highest label needs.

    MrBayes takes the probability of a constant character from two states for all of them; so does this test, while our
    +ASC has each group's own. For binary characters these are the same.
    """
    alignment = alignment_named(record["data"])
    tree = newick.read(record["tree"], newick.Names(alignment.taxa))
    total, proper = 0.0, 0.0
    for n_states, sites in group_by_states(alignment.sites, alignment.alphabet).items():
        tips = MORPH(n_states).indicators(narrowed(alignment.sites[:, sites], n_states))
        counts = np.ones(len(sites))
        total += log_likelihood(tree, tips, counts, slow_model(model_of(record["model"].removesuffix("+ASC"), MORPH(n_states))))
        proper += log_likelihood(tree, tips, counts, slow_model(model_of(record["model"], MORPH(n_states))))
    binary = slow_model(model_of(record["model"], MORPH(2)))
    constant = np.exp(site_log_likelihoods(tree, np.repeat(np.eye(2)[None], alignment.n_taxa, axis=0), binary)).sum()
    assert total - alignment.n_sites * np.log1p(-constant) == pytest.approx(record["mrbayes"], abs=1e-3)
    assert proper == pytest.approx(record["mrbayes"], abs=0.1)
