"""Runs under models and alphabets other than JC69's, with a sampler that is made quick: what is said, written and read back."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from vaiphy.alphabets import alphabet_named
from vaiphy.errors import InputError
from vaiphy.formats import write_alignment
from vaiphy.methods import posterior
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.models.substitution import model_of
from vaiphy.output.words import methods_paragraph
from vaiphy.runner.run import Listener, run
from vaiphy.runner.saved import load_analysis

TUNING = {
    "accuracy": 1.0, "min_effective": 10.0, "max_deviation": 1.0, "max_split_error": 1.0,
    "oversampling": 5, "learn_particles": 16,
    "most_settling": 8, "pilot_particles": 32, "min_particles": 64, "max_particles": 64, "sweep_share": 0.25, "max_bridges": 4,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    tuning_for = posterior.tuning_for
    monkeypatch.setattr(posterior, "tuning_for", lambda *given: replace(tuning_for(*given), **TUNING))


def data_of(folder, model, seqtype, n_sites=40, states=4, missing=0.05):
    rng = np.random.default_rng(1)
    evolution = model_of(model, alphabet_named(seqtype, states))
    alignment = random_alignment(random_tree(taxon_names(5), rng), n_sites, rng, missing, evolution)
    path = folder / "x.nex"
    path.write_text(write_alignment(alignment, "nexus"))
    return path


@pytest.mark.parametrize(
    ("simulated", "seqtype", "model", "columns", "cited"),
    [
        (
            "HKY{3}+F{0.4,0.2,0.2,0.2}",
            "DNA",
            "HKY+I+G4",
            ["kappa", "pi(A)", "alpha", "pinvar"],
            ["Hasegawa", "Yang Z (1994)", "Gu X"],
        ),
        ("LG", "AA", "LG+G4", ["alpha"], ["Le SQ", "Yang Z (1994)"]),
        ("MK", "MORPH", "MK", [], ["Lewis PO"]),
    ],
)
def test_a_run_under_a_model(tmp_path, simulated, seqtype, model, columns, cited):
    path = data_of(tmp_path, simulated, seqtype)
    said = []
    result = run(path, prefix=tmp_path / "out", seed=1, model=model, seqtype=seqtype, threads=1, listener=Listener(said.append))
    assert result.patterns.alphabet.name == seqtype
    assert any(f"Model {model} for" in line for line in said)
    assert any("Branch lengths: independent, Exponential(10)" in line for line in said)
    assert "Topologies: all unrooted binary trees equally likely." in (tmp_path / "out.log").read_text()
    report = (tmp_path / "out.vaiphy").read_text()
    assert f"Model {model} for" in report
    # One share a state: characters may have fewer states than nucleotides.
    shares = (tmp_path / "out.html").read_text().split("Composition:")[1].split("</p>")[0]
    assert shares.count(",") == result.patterns.alphabet.n_states - 1
    assert ("\nPARAMETERS\n" in report) == bool(columns)
    paragraph, references = methods_paragraph(result)
    assert all(any(name in line for line in references) for name in cited)
    assert "Exponential(1) for the gamma shape" in paragraph or "G4" not in model
    record = json.loads((tmp_path / "out.json").read_text())
    for name in (*columns, "LnL", "TL"):
        row = record["parameters"][name]
        assert row["lower"] <= row["median"] <= row["upper"]
        assert row["hpd_upper"] - row["hpd_lower"] <= 1.05 * (row["upper"] - row["lower"])
    head = (tmp_path / "out.run1.p").read_text().splitlines()[1].split("\t")
    assert head[:4] == ["Gen", "LnL", "LnPr", "TL"]
    assert set(columns) <= set(head[4:])
    again = load_analysis(tmp_path / "out")
    assert again.patterns.alphabet == result.patterns.alphabet
    assert again.settings == result.settings
    assert (again.outcome.sample.z == result.outcome.sample.z).all()
    assert (again.states.probability == result.states.probability).all()
    assert result.states.probability.sum(axis=1) == pytest.approx(1)
    lines = gzip.decompress((tmp_path / "out.state.gz").read_bytes()).decode().splitlines()
    assert lines[2].split("\t")[3:] == [f"p_{state}" for state in result.patterns.alphabet.states]
    assert "<svg" in (tmp_path / "out.html").read_text()


def test_without_a_model_the_usual_one_is_taken_and_recorded(tmp_path):
    path = data_of(tmp_path, "MK+ASC", "MORPH", n_sites=20, states=3, missing=0.0)
    result = run(path, seed=1, seqtype="MORPH", threads=1)
    assert result.settings.model == "MK+ASC"
    assert {part.model.n_states for part in posterior.target_for(result.patterns, result.settings).parts} == {2, 3}


def test_the_prior_alone(tmp_path):
    """Evidence one, and parameters as the prior has them, whatever the data."""
    path = data_of(tmp_path, "JC", "DNA")
    result = run(path, prefix=tmp_path / "out", seed=3, model="K80+I+G4", prior_only=True, threads=1)
    assert result.log_evidence == pytest.approx(0, abs=max(4 * result.std_error, 0.2))
    found = {row.name: row for row in (*result.parameters, *result.tree_parameters)}
    assert found["pinvar"].mean == pytest.approx(0.5, abs=0.15)
    assert found["alpha"].mean == pytest.approx(1, abs=0.4)
    assert found["TL"].mean == pytest.approx(0.7, abs=0.15)
    assert (found["LnL"].mean, found["LnL"].sd) == (0, 0)
    assert result.states is None
    assert not (tmp_path / "out.state.gz").exists()
    assert "data are left out" in (tmp_path / "out.vaiphy").read_text()
    assert json.loads((tmp_path / "out.json").read_text())["settings"]["prior_only"] is True
    assert load_analysis(tmp_path / "out").settings.prior_only


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "csmc"}, "amino acids; the method csmc reads nucleotides"),
        ({"model": "GTR+G4"}, "'GTR' is not a model of AA"),
        ({"method": "csmc", "prior_only": True}, "--prior-only is for --method posterior"),
    ],
)
def test_what_does_not_fit_is_said_before_anything_is_written(tmp_path, options, message):
    path = data_of(tmp_path, "LG", "AA")
    with pytest.raises(InputError, match=message):
        run(path, prefix=tmp_path / "out", seed=1, seqtype="AA", **options)
    assert not (tmp_path / "out.log").exists()
