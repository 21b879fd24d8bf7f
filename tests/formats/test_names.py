"""Names that turn text around are refused, and safe names are read by every program."""

import re
import shutil
import subprocess

import pytest
from reference.standin import NASTY

from vaiphy.alignment import AlignmentError
from vaiphy.formats import parse_alignment, parse_trees
from vaiphy.formats.names import safe_names, turning, visible
from vaiphy.trees.tree import TreeError

TURNING = ["\u202e", "\u202a", "\u2066", "\u200f", "\u061c"]


@pytest.mark.parametrize("character", TURNING)
def test_names_that_turn_text_around_are_refused(character):
    where = f"U\\+{ord(character):04X} reverses the text"
    with pytest.raises(AlignmentError, match=f"line 3: taxon .*{where}"):
        parse_alignment(f">a\nACGT\n>b{character}x\nACGT\n>c\nACGA\n")
    with pytest.raises(TreeError, match=where):
        parse_trees(f"(a,b{character}x,c);")


def test_ordinary_names_of_any_script_are_kept():
    for name in ("Ähnlich", "سلام", "日本", "a-b.c|d"):
        assert turning(name) == ""
        assert visible(name) == name
    assert visible("a\u202eb\n") == "a\\u202eb\\u000a"


def test_safe_names_differ_and_are_plain():
    names = safe_names((*NASTY, "A b", "a_b", "a\u202eb", "Éric", "", "x" * 60))
    assert len({name.lower() for name in names}) == len(NASTY) + 6
    assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.|-]*", name) for name in names)


@pytest.mark.skipif(shutil.which("iqtree2") is None, reason="iqtree2 is not installed")
def test_iqtree_reads_trees_with_safe_names(tmp_path):
    names = safe_names(NASTY)
    pairs = ",".join(f"({a}:1,{b}:1):1" for a, b in zip(names[::2], names[1::2]))
    (tmp_path / "t.nwk").write_text(f"({pairs});\n" * 3)
    command = ["iqtree2", "-con", "-t", "t.nwk", "--redo"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stdout
    assert all(name in (tmp_path / "t.nwk.contree").read_text() for name in names)
