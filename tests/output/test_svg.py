"""Charts: ticks that differ, a legend above the lines, bars where there are errors."""

import re

import numpy as np
import pytest

from vaiphy.output import svg, words
from vaiphy.summary.posterior import summarise
from vaiphy.trees.splits import from_trees
from vaiphy.trees.tree import from_splits


@pytest.mark.parametrize("low", [0.0, -7108.4, -33735.09, 1e6])
@pytest.mark.parametrize("extent", [1e-3, 0.013, 0.2, 1.0, 37.0, 12345.0])
def test_no_tick_is_written_twice(low, extent):
    drawn = svg.line_chart({"": [(0.0, low), (1.0, low + extent)]}, "round", "log evidence")
    labels = re.findall(r'text-anchor="end"[^>]*>([^<]*)<', drawn)
    assert len(labels) >= 2
    assert len(set(labels)) == len(labels)
    assert [float(label) for label in labels] == sorted(map(float, labels))


def test_the_legend_is_above_the_lines():
    series = {f"replicate {k}": [(0.0, 1.0), (5.0, 2.0)] for k in range(1, 9)}
    drawn = svg.line_chart(series, "round", "log evidence")
    names = [float(y) for y in re.findall(r'y="([0-9.]+)"[^>]*>replicate', drawn)]
    lines = [float(y) for part in re.findall(r'd="(M[^"]*L[^"]*)"', drawn) for y in re.findall(r"[ML][0-9.]+ ([0-9.]+)", part)]
    assert len(names) == 8
    assert max(names) < min(lines)


def test_estimates_have_bars_where_errors_are_known():
    with_bars = svg.estimates([-10.0, -10.2], [0.1, 0.2], "replicate", "log evidence")
    assert with_bars.count("<circle") == with_bars.count("h8M") == 2
    assert svg.estimates([-10.0, -10.2], [], "replicate", "log evidence").count("h8M") == 0
    assert svg.estimates([float("nan")], [0.1], "replicate", "log evidence") == ""


def test_intervals_need_ten_effective_trees():
    taxa = tuple("abcde")
    trivial = [0b11110, *(1 << k for k in range(1, 5))]
    rng = np.random.default_rng(1)
    common = [from_splits(taxa, dict.fromkeys([*trivial, 0b00110], float(rng.exponential()))) for _ in range(40)]
    rare = [from_splits(taxa, dict.fromkeys([*trivial, 0b01100], float(rng.exponential()))) for _ in range(4)]
    table = summarise(from_trees([*common, *rare])).splits
    assert table.effective[table.row[0b00110]] == pytest.approx(40)
    assert words.interval(table, table.row[0b00110])
    assert table.effective[table.row[0b01100]] == pytest.approx(4)
    assert words.interval(table, table.row[0b01100]) == ""


def test_small_probabilities_are_not_zero():
    assert words.probability(0.28) == "0.280"
    assert words.probability(3e-5) == "less than 0.001"
