"""BEAST's files and MrBayes's tables: what they hold, and that the programs agree."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from reference.shapes import branch_lengths
from reference.standin import NAMES, NASTY, fasta, use_standin

from vaiphy.formats import parse_trees, read_trees, write_alignment
from vaiphy.formats.alignments import parse_alignment
from vaiphy.runner import run as runner
from vaiphy.trees import splits as splitsample


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def finished_run(folder, names, **settings):
    data = parse_alignment(fasta([f"t{i}" for i in range(len(names))]))
    with pytest.MonkeyPatch.context() as patch:
        use_standin(patch)
        return runner.run(type(data)(tuple(names), data.sites, source="x"), prefix=folder / "run", seed=1, **settings)


@pytest.fixture(scope="module", params=["plain", "nasty"])
def finished(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return folder, finished_run(folder, NAMES if request.param == "plain" else NASTY)


def table_of(text):
    lines = [line for line in text.splitlines() if not line.startswith(("#", "["))]
    head, *rows = [line.split() for line in lines]
    return dict(zip(head, zip(*rows)))


def test_trees_are_those_of_the_sample_rooted_beside_the_outgroup(finished):
    folder, result = finished
    entries = read_trees(folder / "run.beast.trees", result.patterns.taxa)
    assert len(entries) == 1000
    for k in (0, 1, 999):
        tree, ours = entries[k].tree, result.trees.tree(k)
        assert entries[k].rooted
        assert tree.topology == ours.topology
        assert branch_lengths(tree) == pytest.approx(branch_lengths(ours), rel=1e-7)
        halves = [tree.length[child] for child in tree.children[tree.root]]
        assert halves[0] == halves[1] == pytest.approx(ours.rerooted(0).length[ours.rerooted(0).children[0][0]] / 2, rel=1e-7)
        assert 0 in tree.children[tree.root]


def test_another_outgroup(tmp_path):
    result = finished_run(tmp_path, NAMES, outgroup=["Lemur"], n_trees=50)
    for entry, k in zip(read_trees(tmp_path / "run.beast.trees", NAMES), range(50)):
        assert NAMES.index("Lemur") in entry.tree.children[entry.tree.root]
        assert branch_lengths(entry.tree) == pytest.approx(branch_lengths(result.trees.tree(k)), rel=1e-7)


def test_columns_of_the_log(finished):
    folder, result = finished
    columns = {name: np.array(values, float) for name, values in table_of((folder / "run.beast.log").read_text()).items()}
    known = result.quantities(result.trees)
    assert list(columns) == ["Sample", "posterior", "likelihood", "prior", "treeLength", *list(known)[3:]]
    assert columns["posterior"] == pytest.approx(known["LnL"] + known["LnPr"], rel=1e-7)
    assert columns["treeLength"] == pytest.approx(known["TL"], rel=1e-7)
    states = re.findall(r"tree STATE_(\d+) \[&lnP=(\S+)\]", (folder / "run.beast.trees").read_text())
    assert [int(state) for state, _ in states] == list(range(1000))
    assert [float(value) for _, value in states] == pytest.approx(columns["posterior"], abs=1e-4)


def test_sampled_parameters_are_further_columns(finished):
    folder, result = finished
    sample = result.outcome.sample
    pairs = dict(zip(sample.lengths[:, 1:].sum(axis=1).round(6), sample.parameters["alpha"]))
    for suffix, length in ((".beast.log", "treeLength"), (".run2.p", "TL")):
        columns = table_of((folder / f"run{suffix}").read_text())
        assert list(columns)[-1] == "alpha"
        found = [pairs[min(pairs, key=lambda x: abs(x - float(value)))] for value in columns[length][:20]]
        assert [float(x) for x in columns["alpha"][:20]] == pytest.approx(found, rel=1e-5)


@needs("treeannotator2")
def test_treeannotator_finds_our_supports(tmp_path):
    result = finished_run(tmp_path, NAMES)
    done = subprocess.run(
        ["treeannotator2", "-burnin", "0", "-heights", "keep", "run.beast.trees", "out.tree"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Total number of trees 1000, where 1000 are used" in done.stdout + done.stderr
    (entry,) = parse_trees((tmp_path / "out.tree").read_text(), result.patterns.taxa)
    drawn = splitsample.from_sample(result.trees)
    support = dict(zip(drawn.splits, drawn.support()))
    found = {
        split: float(re.search(r"posterior=([^,\]]+)", entry.tree.comments[v])[1])
        for v, split in enumerate(entry.tree.splits)
        if split in entry.tree.topology
    }
    assert found.keys() == result.posterior.credible.topology
    assert found == pytest.approx({split: support[split] for split in found}, abs=1e-9)


@needs("mb")
def test_mrbayes_tables_have_its_names_and_nearly_its_figures(tmp_path):
    finished_run(tmp_path, NAMES)
    (tmp_path / "data.nex").write_text(write_alignment(parse_alignment(fasta(NAMES)), "nexus"))
    (tmp_path / "mb.nex").write_text(
        "#NEXUS\nbegin mrbayes;\nset autoclose=yes nowarn=yes;\nexecute data.nex;\n"
        "sumt filename=run outputname=mb nruns=4 relburnin=no burnin=0;\nend;\n"
    )
    done = subprocess.run(["mb", "mb.nex"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    ours, theirs = (
        {s: table_of((tmp_path / f"{p}.{s}").read_text()) for s in ("parts", "tstat", "vstat")} for p in ("run", "mb")
    )
    for suffix in ours:
        assert list(ours[suffix]) == list(theirs[suffix])
    # MrBayes breaks ties in the order of its splits differently, so figures are compared by split.
    rows = [by_split(tables) for tables in (ours, theirs)]
    assert len(rows[0]) > 6
    assert rows[0].keys() == rows[1].keys()
    for split, own in rows[0].items():
        # Theirs are of the equal-weight trees in the files, with the same weight for each replicate.
        assert own["Stddev(s)"] == pytest.approx(rows[1][split]["Stddev(s)"], abs=2e-3)
        assert own["Probability(=s)"] == pytest.approx(rows[1][split]["Probability(=s)"], abs=1e-2)
        assert own["Mean"] == pytest.approx(rows[1][split]["Mean"], rel=0.05)
        assert own["Variance"] == pytest.approx(rows[1][split]["Variance"], rel=0.15)


def by_split(tables):
    """Split -> the columns of all three tables, where it has a probability."""
    pattern = dict(zip(tables["parts"]["ID"], tables["parts"]["Partition"]))
    length = {name[7:-1]: k for k, name in enumerate(tables["vstat"]["Parameter"])}
    return {
        pattern[number]: {name: float(values[k]) for name, values in tables["tstat"].items()}
        | {name: float(tables["vstat"][name][length[number]]) for name in ("Mean", "Variance")}
        for k, number in enumerate(tables["tstat"]["ID"])
    }
