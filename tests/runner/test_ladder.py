"""Comparing models: resumed, extended and redone; the winner is taken by `model="auto"`."""

import json

import pytest
from reference.standin import NAMES, fasta

import vaiphy
from vaiphy.errors import InputError
from vaiphy.formats import parse_alignment
from vaiphy.runner.run import Listener
from vaiphy.runner.steps import Interrupted

ALIGNMENT = parse_alignment(fasta(NAMES[:4], n_sites=20, seed=2), "four.fasta")
MODELS = ("JC", "F81", "JC+G4")


def figures(found):
    return [(row.model, row.log_evidence, row.std_error, row.started_from) for row in found.rows]


def compare(prefix=None, models=MODELS, **options):
    return vaiphy.compare_models(ALIGNMENT, models=models, prefix=prefix, **{"seed": 1, "accuracy": 0.3, **options})


@pytest.fixture(scope="module")
def straight():
    return compare()


def test_the_best_so_far_is_where_the_next_model_starts(straight):
    starts = {row.model: row.started_from for row in straight.rows}
    assert starts["JC"] == ""
    assert starts["F81"] == "JC"
    assert all(row.std_error < 0.3 for row in straight.rows)


def test_a_killed_comparison_goes_on_to_the_same_figures(tmp_path, straight, monkeypatch):
    monkeypatch.setattr("vaiphy.runner.steps.SAVE_EVERY", 0.0)
    calls = []

    def stop(progress):
        calls.append(progress)
        if progress.stage == "F81" and progress.progress > 0.4:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        compare(tmp_path / "x", listener=Listener(progress=stop))
    assert (tmp_path / "x.models.F81.ckpt").exists()
    assert not (tmp_path / "x.models.tsv").exists()
    heard = []
    found = compare(tmp_path / "x", seed=None, listener=Listener(progress=lambda p: heard.append(p.stage)))
    assert figures(found) == figures(straight)
    assert "JC" not in heard
    assert json.loads((tmp_path / "x.models.json").read_text())["seed"] == 1
    assert (tmp_path / "x.models.tsv").read_text().count("\n") == 4
    # A longer list computes only what is new; other settings are refused.
    heard.clear()
    longer = compare(tmp_path / "x", (*MODELS, "F81+G4"), listener=Listener(progress=lambda p: heard.append(p.stage)))
    assert set(heard) == {"F81+G4"}
    assert len(longer.rows) == 4
    with pytest.raises(InputError, match=r"JC\.ckpt: an earlier comparison had accuracy 0\.3, now 0\.2"):
        compare(tmp_path / "x", accuracy=0.2)


def test_parts_with_the_model_each(tmp_path):
    file = tmp_path / "parts.txt"
    file.write_text("DNA, a = 1-10\nDNA, b = 11-20\n")
    found = compare(models=("JC",), partition=file)
    assert {row.model: row.n_parameters for row in found.rows} == {"JC": 0, "JC each part": 1}


def test_bad_lists_are_refused():
    with pytest.raises(InputError) as caught:
        compare(models=("JC", "ABC", "LG"))
    assert len(caught.value.problems) == 2
    morphology = parse_alignment(">a\n01\n>b\n10\n>c\n00\n>d\n11\n", seqtype="BIN")
    with pytest.raises(InputError, match=r"with and without \+ASC"):
        vaiphy.compare_models(morphology, models=("JC2", "JC2+ASC"))


def test_auto_takes_the_winner(tmp_path, monkeypatch, straight):
    monkeypatch.setattr("vaiphy.runner.ladder.ladder", lambda alphabet, ascertained: MODELS)
    monkeypatch.setattr("vaiphy.runner.ladder.with_invariable", lambda found, alphabet: ())
    said = []
    options = {"prefix": tmp_path / "y", "seed": 1, "accuracy": 0.3, "particles": 64}
    analysis = vaiphy.run(ALIGNMENT, model="auto", **options, listener=Listener(said.append))
    assert analysis.settings.model == straight.best.model
    assert any(f"{straight.best.model} wins over" in line and "2 ln BF" in line for line in said)
    best = next(row for row in straight.rows if row.model == analysis.settings.model)
    assert analysis.log_evidence == pytest.approx(best.log_evidence, abs=4 * (best.std_error + analysis.std_error))
    assert (tmp_path / "y.models.tsv").exists()
    file = tmp_path / "parts.txt"
    file.write_text("HKY, a = 1-10\nDNA, b = 11-20\n")
    with pytest.raises(InputError, match="part 'a' names its model"):
        vaiphy.run(ALIGNMENT, model="auto", partition=file)


def test_a_run_with_parts_records_them_and_leaves_ancestral_states_out(tmp_path):
    file = tmp_path / "parts.txt"
    file.write_text("DNA, a = 1-10\nJC, b = 11-20\n")
    options = {"prefix": tmp_path / "z", "seed": 1, "accuracy": 0.3, "particles": 64, "model": "F81"}
    analysis = vaiphy.run(ALIGNMENT, partition=file, **options)
    assert analysis.settings.partition == ("F81, a = 1-10", "JC, b = 11-20")
    again = vaiphy.load_analysis(tmp_path / "z")
    assert again.settings == analysis.settings
    report = (tmp_path / "z.vaiphy").read_text()
    assert "    F81, a = 1-10\n" in report
    assert "Ancestral states are not computed" in report
    assert not (tmp_path / "z.state.gz").exists()
    assert "m{2}" in (tmp_path / "z.run1.p").read_text().splitlines()[1].split("\t")
    assert "pi(A){1}" in analysis.outcome.sample.parameters
    with pytest.raises(InputError, match="partition F81, a = 1-10; JC, b = 11-20, now not given"):
        vaiphy.run(ALIGNMENT, **{**options, "model": None})
