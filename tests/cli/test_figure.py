"""`vaiphy figure`: files in the formats asked for, and plain errors otherwise."""

import numpy as np
import pytest
from click.testing import CliRunner

from vaiphy.cli import main
from vaiphy.output.figures import first_tree
from vaiphy.topology.slantis import SlantisLaw

BEGINNINGS = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
@pytest.mark.parametrize("name", ["jc-sampler", "slantis"])
def test_figures_are_written(tmp_path, name, suffix):
    path = tmp_path / f"figure.{suffix}"
    result = CliRunner().invoke(main, ["figure", name, str(path)])
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(BEGINNINGS[suffix])


def test_mistakes_are_told(tmp_path):
    result = CliRunner().invoke(main, ["figure", "slantis", str(tmp_path / "figure.gif")])
    assert result.exit_code == 2
    assert "must end in .png, .svg or .pdf" in result.output
    result = CliRunner().invoke(main, ["figure", "jc-sampler", "--sites", "10", "-c", "11", str(tmp_path / "a.png")])
    assert result.exit_code == 2
    assert "more than the 10 sites" in result.output


def test_the_drawn_first_tree_is_the_one_slantis_starts_from():
    weights = np.triu(np.random.default_rng(1).normal(size=(6, 6)), 1)
    law = SlantisLaw(weights + weights.T)
    order, ends = law._setup[0], law._setup[1]
    assert first_tree(law) == {tuple(ends[e]) for e in order[:5]}
