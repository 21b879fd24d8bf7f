"""Result files as other programs read them: DendroPy, MrBayes, IQ-TREE, and we ourselves."""

import gzip
import json
import shutil
import subprocess
from dataclasses import replace

import dendropy
import numpy as np
import pytest
from reference.shapes import branch_lengths
from reference.standin import NAMES, NASTY, fasta, use_standin

from vaiphy.formats import read_trees, results, write_alignment
from vaiphy.formats.alignments import read_alignment
from vaiphy.quantities import quantities
from vaiphy.runner import run as runner


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run and its folder."""
    folder = tmp_path_factory.mktemp("run")
    path = folder / "apes.fasta"
    path.write_text(fasta(NAMES))
    with pytest.MonkeyPatch.context() as patch:
        use_standin(patch)
        return folder, runner.run(path, prefix=folder / "apes", seed=1)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """The same with names that need quoting everywhere."""
    folder = tmp_path_factory.mktemp("nasty")
    path = folder / "nasty.fasta"
    path.write_text(fasta([f"t{i}" for i in range(len(NASTY))]))
    data = read_alignment(path)
    with pytest.MonkeyPatch.context() as patch:
        use_standin(patch)
        named = type(data)(NASTY, data.sites, source="<b>'nasty' & [x]")
        return folder, runner.run(named, prefix=folder / "apes", seed=1)


TREE_FILES = {
    ".contree": ("newick", 1), ".con.tre": ("nexus", 1), ".mcc.tre": ("nexus", 1), ".trees.nwk": ("newick", 1000),
    ".run1.t": ("nexus", 1000), ".run4.t": ("nexus", 1000), ".trprobs": ("nexus", None),
}  # fmt: skip


@pytest.mark.parametrize("suffix", TREE_FILES)
@pytest.mark.parametrize("case", ["finished", "nasty"])
def test_dendropy_reads_every_tree_file(request, case, suffix):
    folder, result = request.getfixturevalue(case)
    schema, number = TREE_FILES[suffix]
    trees = dendropy.TreeList.get(
        path=folder / f"apes{suffix}", schema=schema, preserve_underscores=True, rooting="force-unrooted"
    )
    assert len(trees) == (number or len(result.posterior.topologies))
    for tree in trees[:20]:
        assert {leaf.taxon.label for leaf in tree.leaf_node_iter()} == set(result.patterns.taxa)


@pytest.mark.parametrize("suffix", TREE_FILES)
@pytest.mark.parametrize("case", ["finished", "nasty"])
def test_we_read_our_own_files(request, case, suffix):
    folder, result = request.getfixturevalue(case)
    entries = read_trees(folder / f"apes{suffix}", result.patterns.taxa)
    if suffix in (".contree", ".con.tre"):
        assert entries[0].tree.topology == result.posterior.majority.topology
        assert branch_lengths(entries[0].tree) == pytest.approx(branch_lengths(result.posterior.majority), rel=1e-5)
    if suffix == ".mcc.tre":
        assert entries[0].tree.topology == result.posterior.credible.topology
    if suffix == ".trees.nwk":
        for k in (0, 1, 999):
            assert entries[k].tree.topology == result.trees.tree(k).topology
            assert branch_lengths(entries[k].tree) == pytest.approx(branch_lengths(result.trees.tree(k)), rel=1e-5)
    if suffix == ".trprobs":
        assert [entry.weight for entry in entries] == pytest.approx(result.posterior.topologies.probability, abs=1e-7)
        assert entries[0].tree.topology == result.posterior.topologies.topologies[0]


def test_consensus_annotations_are_read_by_dendropy(finished):
    folder, result = finished
    tree = dendropy.Tree.get(path=folder / "apes.con.tre", schema="nexus", preserve_underscores=True)
    supports = {}
    for node in tree.preorder_internal_node_iter(exclude_seed_node=True):
        notes = {note.name: note.value for note in node.annotations}
        supports[node.label] = float(notes["prob"])
        low, high = (float(value) for value in notes["length_95%HPD"])
        assert low <= float(notes["length_median"]) <= high
    expected = {
        result.consensus.name(v): result.consensus.support[v]
        for v in range(8, result.consensus.n_vertices)
        if v != result.consensus.root
    }
    assert supports == pytest.approx(expected, abs=1e-7)


@needs("mb")
def test_mrbayes_summarises_our_replicates(finished):
    folder, result = finished
    (folder / "data.nex").write_text(write_alignment(read_alignment(folder / "apes.fasta"), "nexus"))
    (folder / "mb.nex").write_text(
        "#NEXUS\nbegin mrbayes;\nset autoclose=yes nowarn=yes;\nexecute data.nex;\n"
        "sumt filename=apes outputname=mb nruns=4 relburnin=no burnin=0;\n"
        "sump filename=apes outputname=mb nruns=4 relburnin=no burnin=0;\nend;\n"
    )
    done = subprocess.run(["mb", "mb.nex"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Average standard deviation of split frequencies" in done.stdout
    assert (folder / "mb.pstat").exists()
    # Their supports and lengths of our resampled trees are ours.
    table = result.posterior.splits
    rows = [line.split() for line in (folder / "mb.parts").read_text().splitlines()[2:]]
    pattern = {number: sum(1 << i for i, mark in enumerate(text) if mark == "*") for number, text in rows}
    stats = (folder / "mb.tstat").read_text().splitlines()[2:]
    # MrBayes gives each run the same weight; so do we, where replicates are compared.
    own = table.replicate_support.mean(axis=0)
    compared = 0
    for line in stats:
        number, _, probability = line.split()[:3]
        if float(probability) > 0.02:
            assert float(probability) == pytest.approx(own[table.row[pattern[number]]], abs=0.005)
            compared += 1
    assert compared > 4
    text = (folder / "apes.run1.p").read_text().splitlines()
    head = text[1].split("\t")
    assert head[:5] == ["Gen", "LnL", "LnPr", "TL", "r(A<->C)"]
    assert head[-5:] == ["pi(A)", "pi(C)", "pi(G)", "pi(T)", "alpha"]
    assert len(text) == 1002


@needs("iqtree2")
def test_iqtree_makes_the_same_consensus(finished):
    folder, result = finished
    done = subprocess.run(
        ["iqtree2", "-con", "-t", "apes.trees.nwk", "--prefix", "iq", "-redo"],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]
    theirs = read_trees(folder / "iq.contree", result.patterns.taxa)[0].tree
    assert theirs.topology >= result.posterior.majority.topology


@needs("iqtree2")
def test_iqtree_skips_the_mark_of_a_doubtful_result(finished):
    folder, _ = finished
    text = results.newick_comment("NOT CONVERGED: [a] (b); c") + (folder / "apes.trees.nwk").read_text()
    (folder / "doubt.nwk").write_text(text)
    done = subprocess.run(
        ["iqtree2", "-con", "-t", "doubt.nwk", "--prefix", "dq", "-redo"],
        cwd=folder,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0
    assert len(dendropy.TreeList.get(path=folder / "doubt.nwk", schema="newick")) == 1000


def test_parameters_are_those_of_the_trees(finished):
    folder, result = finished
    entries = read_trees(folder / "apes.run2.t", result.patterns.taxa)
    head, *rows = [line.split() for line in (folder / "apes.run2.p").read_text().splitlines()[1:]]
    sample = result.outcome.sample
    assert head[1:] == list(sample.parameters)
    for k in (0, 500, 999):
        length = sum(branch_lengths(entries[k].tree).values())
        drawn = int(np.abs(sample.parameters["TL"] - length).argmin())
        recorded = [float(column[drawn]) for column in sample.parameters.values()]
        assert list(map(float, rows[k][1:])) == pytest.approx(recorded, rel=1e-4)


def test_columns_are_computed_where_the_sample_does_not_know_them(finished):
    from vaiphy.likelihood import log_likelihood

    _, result = finished
    sample = result.trees.select(np.array([0, 500, 999]))
    found = quantities(replace(sample, parameters={"kappa": np.arange(3.0)}), result.patterns, prior_rate=10.0)
    assert list(found) == ["LnL", "LnPr", "TL", "kappa"]
    for k in range(3):
        length = sample.lengths[k, 1:].sum()
        assert found["LnL"][k] == pytest.approx(log_likelihood(sample.tree(k), result.patterns))
        assert found["TL"][k] == pytest.approx(length)
        assert found["LnPr"][k] == pytest.approx(13 * np.log(10) - 10 * length - np.log(10395))  # 13 branches, 11!! topologies


def test_states_have_a_row_for_each_vertex_and_site(finished):
    folder, result = finished
    lines = gzip.decompress((folder / "apes.state.gz").read_bytes()).decode().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    assert rows[0] == ["Node", "Site", "State", "p_A", "p_C", "p_G", "p_T"]
    names = [result.consensus.name(v) for v in range(8, result.consensus.n_vertices)]
    assert [row[0] for row in rows[1 :: result.patterns.n_sites]] == list(result.states.names)
    assert sorted(names) == sorted(result.states.names)
    assert len(rows) == 1 + len(names) * 60
    for row in rows[1:]:
        assert sum(map(float, row[3:])) == pytest.approx(1, abs=3e-5)
        best = max(map(float, row[3:]))
        assert row[2] == ("ACGT"[[float(x) for x in row[3:]].index(best)] if best > 0.5 else "-")


def test_the_table_of_splits_is_whole(nasty):
    folder, result = nasty
    lines = (folder / "apes.splits.tsv").read_text().splitlines()
    head, rows = lines[0].split("\t"), [line.split("\t") for line in lines[1:]]
    assert all(len(row) == len(head) for row in rows)
    assert len(rows) == (result.posterior.splits.support >= 0.001).sum()
    record = json.loads((folder / "apes.json").read_text())
    assert [float(row[1]) for row in rows] == pytest.approx([split["support"] for split in record["splits"]], abs=1e-6)
    assert record["taxa"] == list(NASTY)


def test_json_has_no_nan():
    assert json.loads(results.json_text({"a": [np.nan, np.float64(1), np.inf], "b": np.arange(2)})) == {
        "a": [None, 1, None], "b": [0, 1],
    }  # fmt: skip
