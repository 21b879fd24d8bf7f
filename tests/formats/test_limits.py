"""Readers refuse what is too large, in little memory and time, and say how to allow it."""

import gzip
import io
import resource
import subprocess
import sys
import time
import tracemalloc

import pytest

from vaiphy.alignment import AlignmentError
from vaiphy.errors import InputError
from vaiphy.formats import parse_alignment, parse_trees, read_alignment, read_trees
from vaiphy.formats.limits import DEFAULTS
from vaiphy.trees.tree import TreeError


@pytest.fixture
def one_megabyte(monkeypatch):
    monkeypatch.setenv("VAIPHY_MAX_MB", "1")


def bomb(path, megabytes):
    """A gzip file of a few kilobytes that unpacks to as many megabytes of one sequence."""
    with gzip.open(path, "wb", compresslevel=9) as stream:
        stream.write(b">a\n")
        for _ in range(megabytes):
            stream.write(b"A" * 1_000_000)


def test_a_gzip_bomb_is_refused(one_megabyte, tmp_path):
    path = tmp_path / "bomb.fasta.gz"
    bomb(path, 50)
    assert path.stat().st_size < 100_000
    for read, error in ((read_alignment, AlignmentError), (read_trees, TreeError)):
        with pytest.raises(error, match=r"bomb\.fasta\.gz: the file unpacks to more than 1 MB; .* set VAIPHY_MAX_MB"):
            read(path)


def test_members_of_a_gzip_file_count_together(one_megabyte, tmp_path):
    path = tmp_path / "many.gz"
    path.write_bytes(gzip.compress(b">a\n" + b"A" * 600_000) * 3)
    with pytest.raises(AlignmentError, match="unpacks to more than 1 MB"):
        read_alignment(path)


def test_plain_files_and_standard_input_too(one_megabyte, tmp_path, monkeypatch):
    path = tmp_path / "long.fasta"
    path.write_bytes(b">a\n" + b"A" * 1_000_000)
    with pytest.raises(AlignmentError, match=r"long\.fasta: the file is larger than 1 MB"):
        read_alignment(path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    with pytest.raises(AlignmentError, match="standard input: the file is larger than 1 MB"):
        read_alignment("-")


def test_exactly_the_limit_is_read(one_megabyte, tmp_path):
    path = tmp_path / "fits.fasta"
    text = b">a\nACGT\n>b\nACGT\n>c\nACGA\n"
    path.write_bytes(text + b"\n" * (1_000_000 - len(text)))
    assert read_alignment(path).n_taxa == 3


def test_taxa_times_sites(monkeypatch):
    text = ">a\nACGT\n>b\nACGT\n>c\nACGA\n"
    monkeypatch.setenv("VAIPHY_MAX_CHARACTERS", "12")
    assert parse_alignment(text).n_sites == 4
    monkeypatch.setenv("VAIPHY_MAX_CHARACTERS", "11")
    with pytest.raises(AlignmentError, match=r"3 taxa x 4 sites are more than 11 characters; .* set VAIPHY_MAX_CHARACTERS"):
        parse_alignment(text)
    with pytest.raises(AlignmentError, match="1 taxon x 12 sites are more than 11 characters"):
        parse_alignment(">a\nACGTACGTACGT\n")


def test_lines(monkeypatch, tmp_path):
    monkeypatch.setenv("VAIPHY_MAX_LINES", "6")
    path = tmp_path / "lines.fasta"
    path.write_text(">a\nACGT\n>b\nACGT\n>c\nACGA\n")
    assert read_alignment(path).n_taxa == 3
    path.write_text(path.read_text() + "\n")
    for read, error in ((read_alignment, AlignmentError), (read_trees, TreeError)):
        with pytest.raises(error, match=r"lines\.fasta: the file has more than 6 lines; .* set VAIPHY_MAX_LINES"):
            read(path)


@pytest.mark.parametrize("wrap", ["{}", "#NEXUS\nbegin trees;\ntree t = {}\nend;"])
def test_vertices_of_one_tree(monkeypatch, wrap):
    monkeypatch.setenv("VAIPHY_MAX_VERTICES", "500")
    star = f"({','.join(f't{k}' for k in range(50))});"
    assert parse_trees(wrap.format(star))[0].tree.n_taxa == 50
    for larger in (star.replace("t9", "(t9,x)"), "(" * 51):
        with pytest.raises(TreeError, match=r"a tree of more than 50 vertices; .* set VAIPHY_MAX_VERTICES"):
            parse_trees(wrap.format(larger))


@pytest.mark.parametrize("wrap", ["{}", "#NEXUS\nbegin trees;\n{}end;"])
def test_vertices_of_all_trees(monkeypatch, wrap):
    monkeypatch.setenv("VAIPHY_MAX_VERTICES", "500")
    tree = "(a,b,(c,d));\n" if wrap == "{}" else "tree t = (a,b,(c,d));\n"
    assert len(parse_trees(wrap.format(tree * 10))) == 10
    with pytest.raises(
        TreeError, match=r"the trees have more than 500 vertices in all \(each 50 at least\); .* VAIPHY_MAX_VERTICES"
    ):
        parse_trees(wrap.format(tree * 11))


def test_many_comments_take_no_memory():
    text = "#NEXUS\nbegin data;dimensions ntax=3 nchar=4;format datatype=dna;matrix\n" + "[x]" * 300_000
    tracemalloc.start()
    assert parse_alignment(text + "a ACGT\nb ACGT\nc ACGA\n;end;").n_taxa == 3
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(text)


@pytest.mark.parametrize("value", ["0", "-5", "many", "1e9", "\u0661", "9" * 16])
def test_a_limit_that_is_no_number(monkeypatch, value):
    monkeypatch.setenv("VAIPHY_MAX_MB", value)
    with pytest.raises(InputError, match=r"VAIPHY_MAX_MB .* must be a positive whole number"):
        read_alignment("nothing.fasta")


def test_the_limits_are_documented():
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "formats-in.md").read_text()
    for name, default in DEFAULTS.items():
        assert f"`{name}`" in text
        assert f"{default:,}" in text


def test_a_bomb_costs_little_under_the_default_limit(tmp_path):
    path = tmp_path / "bomb.fasta.gz"
    bomb(path, 700)
    code = f"from vaiphy.cli import main; main(['check', {str(path)!r}], prog_name='vaiphy')"
    began = time.monotonic()
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "unpacks to more than 500 MB" in result.stderr
    assert time.monotonic() - began < 60
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2_500_000  # kilobytes
