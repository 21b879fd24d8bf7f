"""The documentation: the quickstart runs, the site builds without warnings, links in it lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from quickstart import BLOCK, commands, shows

from vaiphy import cli

DOCS = Path(__file__).parents[1] / "docs"


def test_the_quickstart_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    n_commands = n_python = 0
    for kind, text in BLOCK.findall((DOCS / "quickstart.md").read_text()):
        if kind == "python":
            exec(compile(text, "quickstart.md", "exec"), {})
            n_python += 1
            continue
        for words, expected in commands(text):
            assert words[0] == "vaiphy"
            done = CliRunner().invoke(cli.main, words[1:], catch_exceptions=False)
            assert done.exit_code == 0, done.stderr
            assert shows(done.stdout, expected), done.stdout
            n_commands += 1
    assert (n_commands, n_python) == (5, 1)
    said = capsys.readouterr().out
    assert "True" in said
    assert "95 % credible set" in said


def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    pytest.importorskip("furo", reason="furo is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "dummy", str(DOCS), str(tmp_path / "out")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_what_is_shown_is_compared():
    assert shows("one\ntwo 3 four\nfive\n", "...\ntwo ... four\n...\n")
    assert not shows("one\ntwo 3 four\nfive\n", "five\ntwo ... four\n")


def test_commands_in_the_pages_exist():
    known = cli.COMMANDS
    for page in DOCS.glob("*.md"):
        for name in re.findall(r"^\$ vaiphy ([a-z-]+)", page.read_text(), flags=re.MULTILINE):
            assert name in known, f"{page.name}: vaiphy {name}"
