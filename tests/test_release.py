"""What a release promises: one version everywhere, files that parse, and an optional matplotlib that stays optional."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

import vaiphy
from vaiphy.cli import main

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_one_version_everywhere():
    texts = {
        "CITATION.cff": r"^version: (\S+)",
        "packaging/conda/meta.yaml": r'set version = "([^"]+)"',
        "src/vaiphy/__init__.py": r'^__version__ = "([^"]+)"',
    }
    for name, pattern in texts.items():
        assert re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)[1] == PROJECT["version"], name


def test_the_recipe_needs_what_the_package_needs():
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text()
    needs = dict(re.findall(r"^    - (\w+) >=([\d.]+)$", recipe.split("  run:\n")[1], re.MULTILINE))
    assert needs.pop("python") == PROJECT["requires-python"].removeprefix(">=")
    assert needs == dict(need.split(">=") for need in PROJECT["dependencies"])


def test_the_version_comes_with_those_that_matter():
    done = CliRunner().invoke(main, ["--version"])
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()
    assert first == f"vaiphy {vaiphy.__version__}"
    assert re.fullmatch(r"Python 3\S+, numpy \d\S+, numba \d\S+, llvmlite \d\S+, scipy \d\S+; \d+ threads; \S+ \S+", second)


@pytest.mark.parametrize("words", [["figure", "slantis", "a.png"], ["compare", "a.nwk", "b.nwk", "--plot", "a.svg"]])
def test_without_matplotlib_the_extra_is_named(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.nwk", "b.nwk"):
        Path(name).write_text("(a:1,b:1,(c:1,d:1):1);\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else object())
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert 'pip install "vaiphy[plot]"' in done.stderr


def test_completion_is_offered():
    """As docs/quickstart.md tells people to set it up."""
    done = CliRunner().invoke(main, [], prog_name="vaiphy", env={"_VAIPHY_COMPLETE": "bash_source"}, standalone_mode=True)
    assert "_VAIPHY_COMPLETE=bash_complete" in done.stdout
    words = {"_VAIPHY_COMPLETE": "bash_complete", "COMP_WORDS": "vaiphy s", "COMP_CWORD": "1"}
    offered = CliRunner().invoke(main, [], prog_name="vaiphy", env=words).stdout
    assert {line.split(",")[1] for line in offered.splitlines()} == {"score", "simulate", "summarise"}


def test_the_paper_has_what_the_journal_asks_for():
    text = (ROOT / "paper.md").read_text()
    for heading in ("# Summary", "# Statement of need", "# References"):
        assert f"\n{heading}\n" in text
    cited = set(re.findall(r"@(\w+\d{4}\w*)", text))
    known = set(re.findall(r"^@\w+\{(\w+),", (ROOT / "paper.bib").read_text(), re.MULTILINE))
    assert cited == known
