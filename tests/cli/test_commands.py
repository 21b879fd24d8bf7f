"""The commands as a user meets them: output, exit status, messages, and that bad input writes nothing."""

import json
import re
import shutil
import subprocess
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner

from vaiphy import cli
from vaiphy.cli.arguments import FORMAT_NAMES, SEQTYPES
from vaiphy.errors import FailedError, InputError
from vaiphy.formats import FORMATS, newick, read_alignment, read_trees
from vaiphy.formats.seqtype import SEQTYPES as KNOWN_SEQTYPES


def vaiphy(*words, **options):
    return CliRunner().invoke(cli.main, [str(word) for word in words], catch_exceptions=False, **options)


def test_help_lists_the_commands():
    result = vaiphy("--help")
    assert result.exit_code == 0
    for name in ("check", "score", "simulate"):
        assert f"  {name} " in result.output
        assert vaiphy(name, "--help").exit_code == 0


def test_every_command_of_the_table_is_there():
    context = click.Context(cli.main)
    for name in cli.main.list_commands(context):
        command = cli.main.get_command(context, name)
        assert command is not None
        assert command.name == name


def test_every_help_has_an_example_to_type():
    context = click.Context(cli.main)
    helps = [vaiphy("--help").output]
    for name in cli.main.list_commands(context):
        command = cli.main.get_command(context, name)
        helps.append(vaiphy(name, "--help").output)
        for inner in getattr(command, "commands", {}):
            helps.append(vaiphy(name, inner, "--help").output)
    for text in helps:
        usage, rest = text.split("\n", 1)
        assert re.search(r"^  vaiphy [a-z-]+ .*", rest, re.MULTILINE), usage


def test_the_formats_of_the_option_are_those_of_the_readers():
    assert FORMAT_NAMES == FORMATS
    assert SEQTYPES == KNOWN_SEQTYPES


def test_unknown_command():
    result = vaiphy("chekc")
    assert result.exit_code == 2
    assert "No such command" in result.output


def test_check():
    result = vaiphy("check", "DS1")
    assert result.exit_code == 0
    assert "27 taxa, 1949 sites" in result.output
    assert "Hedges" in result.output
    assert "Homo_sapiens" in result.output
    assert vaiphy("check", "DS7").output.count("Microcebus_griseorufus_355") == 2


def test_check_json():
    found = json.loads(vaiphy("check", "DS8", "--json").stdout)
    assert (found["taxa"], found["sites"], found["patterns"]) == (64, 1008, 406)
    assert found["identical_sequences"] == [["Stanjemonium_grisellum", "Stanjemonium_fuscescens"]]
    assert len(found["per_taxon"]) == 64
    assert sum(found["base_composition"].values()) == pytest.approx(1)


def test_check_reads_standard_input():
    result = vaiphy("check", "-", input=">a\nACGT\n>b\nACGT\n>c\nACGA\n>d\nACGA\n")
    assert result.exit_code == 0
    assert "standard input: 4 taxa, 4 sites" in result.output


@pytest.mark.parametrize("command", [("check",), ("check", "--json"), ("run",)])
def test_three_taxa_are_refused_alike(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.fa").write_text(">a\nACGT\n>b\nACGT\n>c\nACGA\n")
    result = vaiphy(*command, "few.fa")
    assert result.exit_code == 2
    said = [line for line in result.stderr.splitlines() if not line.startswith("VaiPhy ")]
    assert said == ["error: few.fa: 3 taxa; at least 4 are needed for there to be a choice of trees"]


def test_check_keeps_its_columns_beside_long_names(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"Genus_species_subspecies_with_a_very_long_name_and_voucher_{k:02}" for k in range(4)]
    (tmp_path / "long.fa").write_text("".join(f">{name}\nACGTACG-\n" for name in names))
    output = vaiphy("check", tmp_path / "long.fa").output
    assert "…" not in output
    assert output.count("12.5%") >= 4
    assert "Missing" in output
    assert output.count("57.1%") == 4  # GC
    assert "3 taxa repeat another one" in output


def test_one_taxon_repeats(tmp_path):
    (tmp_path / "x.fa").write_text(">a\nACGT\n>b\nACGT\n>c\nACGA\n>d\nACTA\n")
    assert "1 taxon repeats another one" in vaiphy("check", tmp_path / "x.fa").output


def test_all_problems_on_standard_error(tmp_path):
    path = tmp_path / "bad.fa"
    path.write_text(">a\nACGTJ\n>b\nACG\n>a\nACGTA\n")
    result = vaiphy("check", path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert [line.split(": ", 1)[0] for line in result.stderr.splitlines()] == ["error"] * 3
    assert f"{path}, line 2: taxon 'a', column 5: 'J' is not a nucleotide code" in result.stderr


def test_very_many_problems_are_counted(tmp_path):
    path = tmp_path / "bad.fa"
    path.write_text("".join(f">t{k}\nAC{'G' * (k % 2)}!\n" for k in range(300)))
    result = vaiphy("check", path)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == cli.MAX_MESSAGES + 1
    assert "more problems" in result.stderr


def test_symbols_on_the_command_line(tmp_path):
    path = tmp_path / "x.phy"
    path.write_text("4 4\na ACGT\nb AC..\nc AAAA\nd ACGT\n")
    assert "--matchchar" in vaiphy("check", path).stderr
    assert json.loads(vaiphy("check", path, "--matchchar", ".", "--json").stdout)["missing_fraction"] == 0
    assert json.loads(vaiphy("check", path, "--missing", ".", "--json").stdout)["missing_fraction"] == pytest.approx(1 / 8)
    assert vaiphy("check", path, "--format", "nexus").exit_code == 2
    assert vaiphy("check", path, "--format", "sequence").exit_code == 2


def test_simulate_then_score(tmp_path):
    prefix = tmp_path / "folder" / "sim"
    result = vaiphy("simulate", "--taxa", 8, "--sites", 500, "--seed", 3, "--prefix", prefix)
    assert result.exit_code == 0
    data, (truth,) = read_alignment(f"{prefix}.fasta"), read_trees(f"{prefix}.tree")
    assert (data.n_taxa, data.n_sites) == (8, 500)
    given = float(vaiphy("score", f"{prefix}.fasta", f"{prefix}.tree").stdout)
    best = vaiphy("score", f"{prefix}.fasta", f"{prefix}.tree", "--optimise").stdout.splitlines()
    assert given < float(best[0]) < given + 20
    assert newick.read(best[1], data.taxa).topology == newick.read(newick.write(truth.tree), data.taxa).topology
    rows = json.loads(vaiphy("score", f"{prefix}.fasta", f"{prefix}.tree", "--json").stdout)
    assert rows == [{"name": "tree", "log_likelihood": pytest.approx(given, abs=1e-5)}]


def test_simulate_does_not_overwrite(tmp_path):
    prefix = tmp_path / "sim"
    first = vaiphy("simulate", "--taxa", 5, "--sites", 20, "--format", "nexus", "--prefix", prefix)
    assert first.exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(path.name for path in before) == ["sim.nex", "sim.tree"]
    again = vaiphy("simulate", "--taxa", 6, "--sites", 20, "--format", "nexus", "--prefix", prefix)
    assert again.exit_code == 2
    assert "--redo" in again.stderr
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    same = vaiphy("simulate", "--taxa", 5, "--sites", 20, "--format", "nexus", "--prefix", prefix, "--redo")
    assert same.exit_code == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("options", "seqtype", "said"),
    [
        (("-m", "HKY{2}+F{0.1,0.2,0.3,0.4}+G4"), "DNA", "drawn from the prior: alpha"),
        (("-m", "LG+I{0.2}+G4{0.5}"), "AA", "model LG+I{0.2}+G4{0.5}\n"),
        (("-m", "GTR2"), "BIN", "pi(0)"),
        (("-m", "MK+ASC", "--states", "5"), "MORPH", "model MK+ASC"),
    ],
)
def test_simulate_under_a_model(tmp_path, options, seqtype, said):
    result = vaiphy("simulate", "--taxa", 8, "--sites", 300, "--format", "nexus", "--prefix", tmp_path / "x", *options)
    assert result.exit_code == 0, result.output
    assert said in result.stdout
    data = read_alignment(tmp_path / "x.nex", seqtype=seqtype)
    assert (data.alphabet.name, data.n_taxa, data.n_sites) == (seqtype, 8, 300)


def test_simulate_under_an_unknown_model(tmp_path):
    result = vaiphy("simulate", "-m", "GTX+R4", "--prefix", tmp_path / "x")
    assert result.exit_code == 2
    assert "model 'GTX+R4': 'GTX' is not a model of DNA; known are JC, F81" in result.stderr
    assert not list(tmp_path.iterdir())


def test_simulate_along_a_tree(tmp_path):
    (tmp_path / "t.tre").write_text("((a:0.1,b:0.1):0.1,c:0.1,d:0.2);")
    result = vaiphy("simulate", "--tree", tmp_path / "t.tre", "--sites", 30, "--format", "phylip", "--prefix", tmp_path / "x")
    assert result.exit_code == 0
    assert read_alignment(tmp_path / "x.phy").taxa == ("a", "b", "c", "d")
    (tmp_path / "t.tre").write_text("(a,b,c);")
    assert vaiphy("simulate", "--tree", tmp_path / "t.tre", "--prefix", tmp_path / "y").exit_code == 2
    assert not (tmp_path / "y.tree").exists()


@pytest.fixture
def four(tmp_path):
    path = tmp_path / "four.fa"
    path.write_text(">a x\nACGTACGT\n>b\nACGTACGA\n>c\nACGAAC-T\n>d\nACGAACRT\n")
    return path


def test_score_messages(four, tmp_path):
    tree = tmp_path / "t.tre"
    for text, message in (
        ("((a,b),c,d);", "5 branches without a length; --optimise"),
        ("((a:1,b:1):1,c:1,d:-1);", "negative branch length"),
        ("((a:1,b:1):1,c:1,x:1);", "taxon 'x' is not among the 4"),
        ("((a:1,b:1):1,c:1);", "lacks 1 of the 4 taxa: 'd'"),
        ("((a:1,b:1:1,c:1);", "t.tre, line 1"),
    ):
        tree.write_text(text)
        result = vaiphy("score", four, tree)
        assert result.exit_code == 2, text
        assert message in result.stderr
        assert result.stdout == ""
    assert vaiphy("score", four, tmp_path / "nothing.tre").exit_code == 2


def test_score_many_trees_and_rooted_ones(four, tmp_path):
    path, out = tmp_path / "t.nex", tmp_path / "out.tre"
    one, two = "((a:1,b:1):1,c:1,d:1)", "((a:1,b:1):.4,(c:1,d:1):.6)"
    path.write_text(f"#NEXUS\nbegin trees;\ntree one = {one};\ntree two = [&R] {two};\nend;\n")
    lines = vaiphy("score", four, path).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["one", "two"]
    assert lines[0].split("\t")[1] == lines[1].split("\t")[1]  # the same unrooted tree
    assert vaiphy("score", four, path, "--output", out).exit_code == 2
    result = vaiphy("score", four, path, "--optimise", "--output", out)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2
    found = [entry.tree for entry in read_trees(out, ("a", "b", "c", "d"))]
    assert all(tree.n_vertices == 6 for tree in found)
    assert np.isfinite(found[0].length).any()


@pytest.mark.parametrize(
    ("raised", "status", "message"),
    [
        (InputError("one", "two"), 2, "error: one\nerror: two\n"),
        (FailedError("no luck"), 1, "error: no luck\n"),
        (PermissionError(13, "Permission denied", "out.txt"), 1, "error: out.txt: Permission denied\n"),
        (MemoryError(), 1, "error: not enough memory for this job\n"),
    ],
)
def test_exit_status(raised, status, message):
    @click.group(cls=cli.LazyGroup)
    def group():
        raise raised

    group.add_command(click.Command("x"))
    result = CliRunner().invoke(group, ["check"], catch_exceptions=False)
    assert result.exit_code == status
    assert result.stderr == message


@pytest.mark.skipif(shutil.which("head") is None, reason="needs head")
def test_a_closed_pipe_is_no_traceback():
    command = f"{sys.executable} -c 'from vaiphy.cli import main; main()' check DS8 --json | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout == "{\n"
    assert "Traceback" not in result.stderr


def test_score_under_a_model(tmp_path):
    prefix = tmp_path / "sim"
    vaiphy("simulate", "--taxa", 6, "--sites", 300, "--seed", 3, "-m", "HKY{4}+F{0.4,0.2,0.2,0.2}", "--prefix", prefix)
    files = (f"{prefix}.fasta", f"{prefix}.tree")
    given = float(vaiphy("score", *files, "-m", "HKY{4}+F{0.4,0.2,0.2,0.2}").stdout)
    first, parameters = vaiphy("score", *files, "-m", "HKY").stdout.splitlines()
    assert given < float(first) < given + 15
    assert parameters.startswith("kappa ")
    (best,) = json.loads(vaiphy("score", *files, "-m", "HKY", "--optimise", "--json").stdout)
    assert float(first) < best["log_likelihood"] < float(first) + 25
    assert 2 < best["parameters"]["kappa"] < 8
    assert sum(best["parameters"][f"pi({base})"] for base in "ACGT") == pytest.approx(1)
    assert newick.read(best["tree"], read_alignment(files[0]).taxa).n_taxa == 6
    result = vaiphy("score", *files, "-m", "LG")
    assert result.exit_code == 2
    assert "'LG' is not a model of DNA" in result.stderr


def test_score_of_amino_acids(tmp_path):
    prefix = tmp_path / "sim"
    vaiphy("simulate", "--taxa", 5, "--sites", 50, "-m", "LG", "--prefix", prefix)
    score = [
        float(vaiphy("score", f"{prefix}.fasta", f"{prefix}.tree", "--seqtype", "AA", *m).stdout) for m in ((), ("-m", "LG"))
    ]
    assert score[0] == score[1]


def test_score_where_taxa_are_inside_the_tree(tmp_path):
    """Under any model without parameters and matrices; F81 with equal frequencies is JC, and others say why they cannot."""
    (tmp_path / "a.fasta").write_text(">a\nACGTAC\n>b\nACGTAA\n>c\nACGGAC\n>d\nTCGTAC\n")
    (tmp_path / "a.tree").write_text("((a:0.1,c:0.2)b:0.3,d:0.1);")
    files = tmp_path / "a.fasta", tmp_path / "a.tree"
    one, same, other = (
        float(vaiphy("score", *files, "-m", m).stdout) for m in ("JC", "F81+F{0.25,0.25,0.25,0.25}", "F81+F{0.4,0.2,0.2,0.2}")
    )
    assert one == pytest.approx(same, abs=1e-5)
    assert abs(other - one) > 0.01
    assert vaiphy("score", *files, "-m", "HKY").exit_code == 2
