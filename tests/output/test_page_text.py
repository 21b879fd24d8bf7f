"""What the page says, without a browser."""

import re

import numpy as np
import pytest
from reference.standin import NAMES, fasta, use_standin

from vaiphy.alignment import Alignment
from vaiphy.formats import parse_alignment
from vaiphy.output import words
from vaiphy.output.page import page
from vaiphy.runner import run as runner


def page_of(sites):
    with pytest.MonkeyPatch.context() as patch:
        use_standin(patch)
        return " ".join(page(runner.run(Alignment(NAMES, sites, source="folder/apes.fasta"), seed=1)).split())


def test_only_taxa_that_are_incomplete_are_called_so():
    sites = np.array(parse_alignment(fasta(NAMES, 1000)).sites)
    sites[2, :4] = 15  # 0.4 %
    assert "Most incomplete" not in page_of(sites)
    sites[5, :300] = 15
    assert "Most incomplete: Macaca (30 %)." in page_of(sites)


def test_the_title_is_the_name_of_the_file():
    text = page_of(np.array(parse_alignment(fasta(NAMES)).sites))
    assert "<title>apes.fasta – VaiPhy</title>" in text
    assert "<h1>apes.fasta</h1>" in text


def test_final_runs_are_not_called_replicates():
    text = page_of(np.array(parse_alignment(fasta(NAMES)).sites))
    assert "log marginal likelihood of the 4 independent runs" in text
    assert "split frequencies between two halves of the runs: 0." in text
    assert "between replicates" not in text


def test_names_in_a_row():
    assert [words.in_a_row(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]


def test_rare_topologies_are_not_drawn(monkeypatch):
    sites = np.array(parse_alignment(fasta(NAMES)).sites)
    shown = [float(p) for p in re.findall(r"<figcaption>\d+: probability ([0-9.]+)", page_of(sites))]
    assert len(shown) == 6
    monkeypatch.setattr(words, "MIN_SUPPORT", 0.1)
    common = re.findall(r"<figcaption>\d+: probability ([0-9.]+)", page_of(sites))
    assert [float(p) for p in common] == [p for p in shown if p >= 0.1]
    assert len(common) < 6
