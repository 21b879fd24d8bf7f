"""Targets of any alphabet: default models, characters by their states, +ASC, and the prior alone."""

import numpy as np
import pytest

from vaiphy.alignment import Alignment, compress
from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA
from vaiphy.errors import InputError
from vaiphy.kernels import sweep
from vaiphy.models.defaults import default_model
from vaiphy.models.priors import length_prior
from vaiphy.target import target_of


def patterns_of(alphabet, rows):
    taxa = tuple(f"t{i + 1}" for i in range(len(rows)))
    return compress(Alignment(taxa, np.array([alphabet.encode(row) for row in rows]), alphabet=alphabet))


@pytest.mark.parametrize(
    ("alphabet", "rows", "model"),
    [
        (DNA, ["AC", "AG", "AT"], "GTR+G4"),
        (RNA, ["AC", "AG", "AU"], "GTR+G4"),
        (AA, ["AR", "AN", "AD"], "LG+G4"),
        (BIN, ["01", "10", "10"], "MK+ASC"),
        (BIN, ["011", "101", "101"], "MK"),
        (MORPH(4), ["0?3", "120", "013"], "MK+ASC"),
        (MORPH(4), ["0?3", "1?2", "0?3"], "MK"),  # a character without data is constant too
    ],
)
def test_the_usual_model_of_an_alphabet(alphabet, rows, model):
    patterns = patterns_of(alphabet, rows)
    assert default_model(patterns) == model
    target = target_of(patterns)
    assert target.n_sites == patterns.n_sites
    assert target.parts[0].model.alphabet.name == alphabet.name


def test_asc_is_refused_where_characters_are_constant():
    with pytest.raises(InputError, match="1 of 3 are constant"):
        target_of(patterns_of(BIN, ["011", "101", "101"]), "MK+ASC")


def test_characters_by_states_share_their_parameters():
    patterns = patterns_of(MORPH(4), ["0123", "1103", "0022", "1131"])
    target = target_of(patterns, "MK+G4")
    assert [part.model.n_states for part in target.parts] == [2, 4]
    assert target.n_parameters == 1
    z = np.array([[-1.0], [0.5]])
    assert list(target.columns(z)) == ["alpha"]
    assert target.log_parameter_prior(z) == pytest.approx(z[:, 0] - np.exp(z[:, 0]))  # once, not once for each part
    assert target.log_natural_prior(z) == pytest.approx(-np.exp(z[:, 0]))
    assert target.draw_parameters(3, np.random.default_rng(1)).shape == (3, 1)
    family = target.family(z)
    assert (family.rates[:, :4] == family.rates[:, 4:]).all()
    assert target.start_parameters().shape == (1,)
    assert "2 of 2, 2 of 4" in target.words()[0]
    alone = target_of(patterns, "MK+G4", by_character=False)
    assert [part.model.n_states for part in alone.parts] == [4]


@pytest.mark.parametrize("model", ["GTR+I+G4", "JC"])
def test_the_prior_alone_has_the_likelihood_one(model):
    patterns = patterns_of(DNA, ["ACGT", "ACGA", "ACCA", "TCCA"])
    target = target_of(patterns, model, prior_only=True)
    assert target.n_sites == 4
    rng = np.random.default_rng(1)
    z = target.draw_parameters(5, rng)
    children = np.broadcast_to(np.array([[2, 3], [1, 4]]), (5, 2, 2)).copy()
    out = np.empty(5)
    lengths = length_prior("exp(10)").draw(4, 5, rng)
    points = np.arange(5)
    sweep.log_likelihoods(target.family(z), points, target.data, children, lengths, np.full(5, 5), out)
    assert (out == 0).all()
    assert any("prior" in line and "left out" in line for line in target.words())


def test_the_prior_alone_of_variable_characters():
    target = target_of(patterns_of(BIN, ["01", "10", "10"]), "MK+ASC", prior_only=True)
    assert target.data.ascertained.tolist() == [0]
