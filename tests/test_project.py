"""The project file: the versions it allows are the ones that are tested."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_oldest_versions_allowed_are_those_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    allowed = dict(re.fullmatch(r"([a-z0-9]+)>=([0-9.]+)", entry).groups() for entry in wanted)
    tested = dict(re.findall(r"^([a-z0-9]+)==([0-9.]+)$", (ROOT / "tools" / "oldest.txt").read_text(), re.MULTILINE))
    for name, version in allowed.items():
        assert re.fullmatch(rf"{re.escape(version)}(\.0)*", tested[name]), f"{name}: {version} allowed, {tested[name]} tested"
