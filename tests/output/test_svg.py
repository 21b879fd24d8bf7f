"""Charts: ticks that differ, a legend above the lines, bars where there are errors."""

import re

import numpy as np
import pytest

from vaiphy.alphabets import AA, BIN, DNA
from vaiphy.models.substitution import model_of
from vaiphy.output import densities, svg, text, words
from vaiphy.summary.posterior import summarise
from vaiphy.trees.splits import from_trees
from vaiphy.trees.tree import from_branches, from_splits


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
    with_bars = svg.estimates([-10.0, -10.2], [0.1, 0.2], "run", "log evidence")
    assert with_bars.count("<circle") == with_bars.count("h8M") == 2
    assert svg.estimates([-10.0, -10.2], [], "run", "log evidence").count("h8M") == 0
    assert svg.estimates([float("nan")], [0.1], "run", "log evidence") == ""


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


def test_the_report_on_few_trees_gives_no_intervals():
    taxa = tuple("abcde")
    lengths = dict.fromkeys([0b11110, *(1 << k for k in range(1, 5)), 0b00110], 0.1)
    few, many = (summarise(from_trees([from_splits(taxa, lengths)] * n)) for n in (3, 30))
    said = text.posterior_report(few, few.majority, 1)
    assert "Tree length 0.6000\n" in said
    assert re.search(r"^1\.0000  -  +0\.10000 \(too few trees\)", said, re.M)  # of one file there is no deviation between runs
    assert "Tree length 0.6000 (95 % interval 0.6000 to 0.6000)" in text.posterior_report(many, many.majority, 1)


def test_weights_that_hardly_differ_look_alike():
    nearly = np.array([-0.001, 0.0, 0.001])
    narrow, wide = svg.histogram(nearly, "log10", "trees"), svg.histogram(nearly, "log10", "trees", around=(-0.5, 0.5))
    places = [[float(x) for x in re.findall(r'<rect x="([0-9.]+)"', drawn)] for drawn in (narrow, wide)]
    assert max(places[0]) - min(places[0]) > 200
    assert max(places[1]) - min(places[1]) < 10


def test_names_of_topologies_are_not_cropped():
    names = tuple(f"Wwwwwwww_mmmmmmm_{k}" for k in range(4))  # eighteen wide letters: 6 pixels each and more
    tree = from_splits(names, dict.fromkeys([0b1110, 0b0010, 0b0100, 0b1000], 1.0))
    starts = [float(x) for x in re.findall(r'<text x="([0-9.]+)"', svg.cladogram(tree, ()))]
    assert len(starts) == 4
    assert max(starts) + 6 * 18 < 280


def test_a_support_stands_behind_the_vertex_where_its_branch_is_short():
    lengths = dict.fromkeys([0b11110, *(1 << k for k in range(1, 5))], 0.5) | {0b00110: 0.5, 0b11000: 0.001}
    tree = from_branches(tuple("abcde"), [(split, length, 0.97) for split, length in lengths.items()])
    assert sorted(re.findall(r'text-anchor="(\w+)"[^>]*>97<', svg.phylogram(tree))) == ["end", "start"]


def test_a_density_shades_its_interval_and_marks_its_mean():
    points = np.linspace(-3.0, 3.0, 101)
    drawn = svg.density(points, np.exp(-0.5 * points**2), 0.0, (-1.96, 1.96), "density of x: mean 0")
    assert 'aria-label="density of x: mean 0"' in drawn
    shaded = re.search(r'd="M([0-9.]+) [^"]*V84Z"', drawn)
    right = [float(x) for x in re.findall(r"L([0-9.]+) ", shaded[0])][-1]
    assert float(shaded[1]) == pytest.approx(12 + 216 * (3 - 1.92) / 6, abs=0.2)  # the first point inside
    assert right == pytest.approx(12 + 216 * (3 + 1.92) / 6, abs=0.2)
    assert 'd="M120.0 10.0V84"' in drawn
    assert 3 <= drawn.count("<text") <= 4
    same = svg.density(np.array([2.5]), np.array([np.inf]), 2.5, (2.5, 2.5), "x")
    assert ">2.5<" in same


@pytest.mark.parametrize(
    ("column", "meaning", "bounds"),
    [
        ("kappa", "rate of transitions over that of transversions", (0, np.inf)),
        ("pi(Ala){2}", "frequency of Ala of part 2", (0, 1)),
        ("r(A<->G)", "rate between A and G, as a share of all rates", (0, 1)),
        ("m{3}", "rate of part 3", (0, np.inf)),
        ("pinvar", "share of invariable sites", (0, 1)),
        ("something", "", (-np.inf, np.inf)),
    ],
)
def test_columns_in_words(column, meaning, bounds):
    assert densities.describe(column) == (meaning, bounds)


def test_every_column_of_a_model_has_words():
    for name, alphabet in (("GTR+I+G4", DNA), ("HKY", DNA), ("LG+FO+G4", AA), ("GTR2+FO", BIN)):
        model = model_of(name, alphabet)
        columns = model.columns(np.zeros((1, model.n_parameters)))
        assert all(densities.describe(column)[0] for column in columns)


def test_small_probabilities_are_not_zero():
    assert words.probability(0.28) == "0.280"
    assert words.probability(3e-5) == "less than 0.001"


def test_the_scale_of_one_substitution_is_singular():
    taxa = tuple("abcd")
    for length, said in ((5.0, "1 substitution per site"), (0.5, "0.1 substitutions per site")):
        tree = from_splits(taxa, dict.fromkeys([0b1110, 0b0010, 0b0100, 0b1000], length))
        assert f">{said}<" in svg.phylogram(tree)
