"""Bayes factors and probabilities from evidences, and the table that shows them."""

import json

import numpy as np
import pytest

from vaiphy.alphabets import AA, DNA, MORPH
from vaiphy.models.ladders import ladder, with_invariable
from vaiphy.output.model_table import contents, text_table
from vaiphy.summary.model_comparison import ModelEvidence, compared

ROWS = [
    ModelEvidence("JC", -110.0, 0.03, 0, True),
    ModelEvidence("GTR+G4", -100.0, 0.04, 9, True, (), "JC"),
    ModelEvidence("HKY+G4", -100.0 - np.log(3.0), 0.03, 5, False, ("bridges scatter",), "JC"),
]


def test_bayes_factors_and_probabilities():
    found = compared(ROWS)
    assert [row.model for row in found.rows] == ["GTR+G4", "HKY+G4", "JC"]
    assert found.twice_log_bayes_factors == pytest.approx([0.0, 2 * np.log(3.0), 20.0])
    assert found.errors == pytest.approx([0.0, 0.1, 0.1])
    shares = np.array([1.0, 1.0 / 3.0, np.exp(-10.0)])
    assert found.probabilities == pytest.approx(shares / shares.sum())
    assert found.verdict() == "GTR+G4 wins over HKY+G4 by 2 ln BF = 2.20 ± 0.10 (positive)"


def test_a_close_race_is_told():
    close = compared([ModelEvidence("A", -10.0, 0.1, 0, True), ModelEvidence("B", -10.05, 0.1, 0, True)])
    assert "could change places" in close.verdict()
    assert compared(ROWS[:1]).verdict() == "JC is the only model"
    with pytest.raises(ValueError, match="no models"):
        compared([])


def test_table_and_files_say_the_same():
    found = compared(ROWS)
    files = dict(contents(found, 7, "x.fasta"))
    header, *rows = [line.split("\t") for line in files[".tsv"].splitlines()]
    records = json.loads(files[".json"])["models"]
    for row, record, line in zip(rows, records, text_table(found).splitlines()[1:]):
        values = dict(zip(header, row))
        assert values["model"] == record["model"] == line.split()[0]
        assert float(values["probability"]) == pytest.approx(record["probability"], abs=1e-6)
        assert f"{record['log_evidence']:.2f}" in line
    assert "HKY+G4: bridges scatter" in text_table(found)
    assert records[1]["reasons"] == ["bridges scatter"]


def test_ladders():
    names = ladder(DNA)
    assert len(names) == 12
    assert names[0] == "JC"
    assert "GTR+G4" in names
    evidences = dict(zip(names, range(12)))
    assert with_invariable(evidences, DNA) == ("GTR+I+G4", "SYM+I+G4")
    assert all(name.endswith("+ASC") for name in ladder(MORPH(4), ascertained=True))
    assert with_invariable({"MK+G4": 1.0}, MORPH(4)) == ()
    assert "LG+G4" in ladder(AA)
