"""How the documentation is built: `make docs`."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "VaiPhy"
author = "The VaiPhy developers"
version = release = installed_version("vaiphy")
extensions = ["myst_parser", "api_pages", "mathml"]
html_math_renderer = "mathml"
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "readme-*.md"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["docs.css"]
html_title = f"VaiPhy {version}"
myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
nitpicky = True


def drop_absent_pages(app: object, name: str, source: list[str]) -> None:
    """Pages that are written apart from this one are listed in the index when they are there."""
    if name == "index":
        lines = source[0].splitlines()
        kept = [line for line in lines if not line.startswith("? ") or (HERE / f"{line[2:].strip()}.md").exists()]
        source[0] = "\n".join(line.removeprefix("? ") for line in kept)


def setup(app: object) -> None:
    app.connect("source-read", drop_absent_pages)  # type: ignore[attr-defined]
