"""Figures in README.md and docs/*.md, written from the results: no claim there is older than what was measured.

Between `<!-- bench NAME -->` and `<!-- end -->` stands what `CLAIMS[NAME]` makes of the cells. `fill` renews one text, `renew`
all files; a test checks that nothing would change.
"""

import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev

from benchmarks import method_sections, published
from benchmarks.cells import ROOT
from benchmarks.evidence_sections import tenth
from benchmarks.growth_sections import GROWTH_NAMES, growth_series
from benchmarks.plan import DATA, STEPPING_STONE
from benchmarks.tables import NOT_RUN, Cells, number, short, spread, table, values_of

MARKED = re.compile(r"<!-- bench ([\w-]+) -->(.*?)<!-- end -->", re.DOTALL)


def files() -> list[Path]:
    """Every page that may carry claims."""
    return [ROOT / "README.md", *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "benchmarks.md")]


def fill(text: str, cells: Cells) -> str:
    """The text with every marked figure renewed. Raises KeyError for a figure that nobody knows."""
    return MARKED.sub(lambda found: f"<!-- bench {found[1]} -->{_framed(found[2], CLAIMS[found[1]](cells))}<!-- end -->", text)


def renew(cells: Cells) -> list[Path]:
    """Rewrite the pages whose figures have changed; returns them."""
    changed = []
    for path in files():
        before = path.read_text()
        after = fill(before, cells)
        if after != before:
            path.write_text(after)
            changed.append(path)
    return changed


def _framed(before: str, now: str) -> str:
    """A table stands on lines of its own, a figure inside its line."""
    return f"\n\n{now.strip()}\n\n" if "\n" in now.strip() or before.startswith("\n") else now


def evidence_table(cells: Cells) -> str:
    """One row for each data set, so that it fits a screen."""
    rows = []
    for data in DATA:
        found = cells.done("table", data, "posterior")
        rows.append(
            [
                data,
                _plain(values_of(found)),
                number(published.CONSENSUS[data], 1),
                _plain(values_of(cells.done("table", data, "mrbayes-ss"))),
                short(mean(r["cpu_seconds"] for r in found)) if found else NOT_RUN,
                short(min(r["result"]["wall_seconds"] for r in found)) if found else NOT_RUN,
            ]
        )
    return table(["", "VaiPhy", "published", "MrBayes", "CPU s", "wall s"], rows)


def _plain(values: list[float]) -> str:
    if not values:
        return NOT_RUN
    return number(mean(values)) + (f" ± {stdev(values):.2f}" if len(values) > 1 else "")


def seeds(cells: Cells) -> str:
    counts = [len(cells.done("table", data, "posterior")) for data in DATA]
    return f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def untrusted(cells: Cells) -> str:
    """Which data sets' runs said that they cannot be trusted, and how often."""
    parts = []
    for data in DATA:
        found = [r["result"]["trust_ok"] for r in cells.done("table", data, "posterior")]
        if not all(found):
            parts.append(f"{data} in {found.count(False)} of {len(found)} runs")
    return ", ".join(parts) or "none"


def _tenth_theirs(cells: Cells) -> str:
    least, guess, most = tenth(cells)[1]
    return f"{guess:,.0f} (95 % range: {least:,.0f} to {most:,.0f})" if guess == guess else NOT_RUN


def _kernel(cells: Cells, method: str, digits: int = 2) -> str:
    found = cells.done("kernels", "DS1", method)
    return number(found[0]["result"]["ratio"], digits) if found else NOT_RUN


def csmc_table(cells: Cells) -> str:
    rows = []
    for data in DATA:
        paper = published.PAPER["φ-CSMC"].get(data)
        results = [r["result"] for r in cells.done("table", data, "posterior")]
        row = [data, f"{number(paper[0])} ± {paper[1]:.2f}" if paper else "not given"]
        for target, reference in (
            ("rooted", number(mean(r["log_evidence"] + r["rooted_shift"] for r in results)) if results else NOT_RUN),
            ("unrooted", number(published.CONSENSUS[data], 1)),
        ):
            found = cells.done("table", data, f"csmc-guided-{target}")
            row += [spread(values_of(found)) if found else NOT_RUN, reference]
        rows.append(row)
    return table(["", "paper's φ-CSMC", "guided, rooted", "reference", "guided, unrooted", "consensus"], rows)


def _grown(cells: Cells, axis: str, work: str, what: int, last: bool) -> str:
    """A figure of the growth table: of its smallest or largest size; 0 the size, 1 the seconds, 2 the peak memory."""
    for label, lines in growth_series(cells).items():
        if label.startswith(axis) and lines.get(GROWTH_NAMES[work]):
            value = lines[GROWTH_NAMES[work]][-1 if last else 0][what]
            return f"{value:,.0f}" if what != 1 else short(value)
    return NOT_RUN


def _ensemble(cells: Cells) -> str:
    gains = []
    for data in DATA:
        alone, together = cells.done("table", data, "vaiphy"), cells.done("table", data, "vaiphy-ensemble")
        if alone and together:
            gains.append(mean(values_of(together)) - mean(values_of(alone)))
    return f"{number(min(gains), 1)} to {number(max(gains), 1)}" if gains else NOT_RUN


def _iterations(cells: Cells) -> str:
    found = [r["result"]["iterations"] for data in DATA for r in cells.done("table", data, "vaiphy")]
    return f"{min(found)} to {max(found)}" if found else NOT_RUN


def _bound_gain(cells: Cells) -> str:
    """The least gain over the paper's VaiPhy column."""
    gains = [
        mean(values_of(found)) - paper[0]
        for data, paper in published.PAPER["VaiPhy"].items()
        if (found := cells.done("table", data, "vaiphy"))
    ]
    return f"{number(min(gains), 1)} to {number(max(gains), 1)}" if gains else NOT_RUN


CLAIMS: dict[str, Callable[[Cells], str]] = {
    "evidence-table": evidence_table,
    "seeds": seeds,
    "untrusted": untrusted,
    "tenth-ours": lambda cells: short(tenth(cells)[0]),
    "tenth-mrbayes": _tenth_theirs,
    "stepping-stone-generations": lambda cells: f"{STEPPING_STONE['ngen']:,}",
    "kernel-ratio": lambda cells: _kernel(cells, "against-c"),
    "csmc-table": csmc_table,
    "csmc-costs": method_sections.csmc_costs,
    "resampling-table": method_sections.resampling_table,
    "particles-least": lambda cells: _grown(cells, "CSMC", "growth-particles", 0, False),
    "particles-most": lambda cells: _grown(cells, "CSMC", "growth-particles", 0, True),
    "particles-least-seconds": lambda cells: _grown(cells, "CSMC", "growth-particles", 1, False),
    "particles-most-seconds": lambda cells: _grown(cells, "CSMC", "growth-particles", 1, True),
    "vaiphy-table": method_sections.vaiphy_table,
    "vaiphy-gain": _bound_gain,
    "variants-table": method_sections.variants_table,
    "speed-table": method_sections.speed_table,
    "ensemble-gain": _ensemble,
    "iterations": _iterations,
    "taxa-most": lambda cells: _grown(cells, "taxa", "growth-iteration", 0, True),
    "taxa-least-seconds": lambda cells: _grown(cells, "taxa", "growth-iteration", 1, False),
    "taxa-most-seconds": lambda cells: _grown(cells, "taxa", "growth-iteration", 1, True),
    "taxa-most-memory": lambda cells: _grown(cells, "taxa", "growth-iteration", 2, True),
    "sites-most": lambda cells: _grown(cells, "sites", "growth-iteration", 0, True),
    "sites-least-seconds": lambda cells: _grown(cells, "sites", "growth-iteration", 1, False),
    "sites-most-seconds": lambda cells: _grown(cells, "sites", "growth-iteration", 1, True),
    "sites-most-memory": lambda cells: _grown(cells, "sites", "growth-iteration", 2, True),
}
