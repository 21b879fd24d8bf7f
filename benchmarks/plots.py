"""The plots of docs/benchmarks.md, as SVG files in docs/figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.published import CONSENSUS
from benchmarks.tables import Cells, exponent, split_errors

COLOURS = ("#2079b2", "#fe7d21", "#339e33", "#7f7f7f", "#8f4fbf")


def save(figure: Any, path: Path) -> None:
    """Without a date and with fixed names inside, so that the same results give the same file."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata={"Date": None})


def figure(width: float, panels: int = 1, **options: Any) -> tuple[Any, Sequence[Any]]:
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, 3.4), layout="constrained")
    axes = made.subplots(1, panels, squeeze=False, **options)[0]
    for ax in axes:
        ax.grid(alpha=0.3)
    return made, axes


def accuracy(cells: Cells, data: Sequence[str], path: Path, reference: dict[str, dict[str, float]]) -> bool:
    """Error of the log evidence (above) and of split frequencies (below) against CPU seconds, a column for each data set."""
    shown = [name for name in data if cells.done("accuracy", name, "posterior")]
    if not shown:
        return False
    from matplotlib.figure import Figure

    made = Figure(figsize=(3.4 * len(shown) + 0.4, 5.6), layout="constrained")
    axes = made.subplots(2, len(shown), squeeze=False, sharey="row", sharex="col")
    for (evidence, splits), name in zip(axes.T, shown):
        ours, wanted = cells.done("accuracy", name, "posterior"), reference.get(name, {})
        for record in ours:
            trace = record["result"]["trace"]
            x = [row["cpu"] for row in trace]
            gaps = [max(abs(row["log_evidence"] - CONSENSUS[name]), 1e-3) for row in trace]
            evidence.plot(x, gaps, "-", color=COLOURS[0], alpha=0.7)
            evidence.plot(x, [row["std_error"] for row in trace], ":", color=COLOURS[0], alpha=0.7)
        for record in cells.done("accuracy", name, "mrbayes-ss") + cells.done("table", name, "mrbayes-ss"):
            error = abs(record["result"]["log_evidence"] - CONSENSUS[name])
            evidence.plot(record["cpu_seconds"], max(error, 1e-3), "x", color=COLOURS[1])
        for records, style, colour in ((ours, "-", 0), (cells.done("accuracy", name, "mrbayes-mcmc"), "s-", 1)):
            for record in records if wanted else ():
                rows = [row for row in record["result"]["trace"] if "splits" in row]
                gaps = [split_errors(row["splits"], wanted)[0] for row in rows]
                splits.plot([row["cpu"] for row in rows], gaps, style, color=COLOURS[colour], alpha=0.7, markersize=3)
        evidence.set(xscale="log", yscale="log", title=name)
        splits.set(xscale="log", yscale="log", xlabel="CPU seconds")
    for ax in axes.ravel():
        ax.grid(alpha=0.3)
    axes[0, 0].set_ylabel("error of the log evidence")
    axes[1, 0].set_ylabel("largest error of a split frequency")
    lines = [
        _line("ours", COLOURS[0], "-"),
        _line("ours: reported standard error", COLOURS[0], ":"),
        _line("MrBayes: stepping stone", COLOURS[1], "", "x"),
        _line("MrBayes: MCMC", COLOURS[1], "-", "s"),
    ]
    made.legend(handles=lines, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save(made, path)
    return True


def _line(label: str, colour: str, style: Any, marker: str = "") -> Any:
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, color=colour, linestyle=style or "none", marker=marker or None, markersize=4)


def cores(cells: Cells, methods: dict[str, str], path: Path) -> bool:
    """Wall seconds on one core and on two (the paper's Figure 3)."""
    shown = {m: label for m, label in methods.items() if cells.done("cores-1", "DS1", m) and cells.done("cores-2", "DS1", m)}
    if not shown:
        return False
    made, (ax,) = figure(6.0)
    for place, method in enumerate(shown):
        for shift, threads in ((-0.18, 1), (0.18, 2)):
            values = [r["result"]["wall_seconds"] for r in cells.done(f"cores-{threads}", "DS1", method)]
            ax.bar(place + shift, sum(values) / len(values), 0.34, color=COLOURS[threads - 1])
            ax.plot([place + shift] * len(values), values, "k_", markersize=8)
    ax.set_xticks(range(len(shown)), list(shown.values()), fontsize=7)
    ax.set(yscale="log", ylabel="wall seconds, DS1")
    ax.legend(handles=[_line("1 core", COLOURS[0], "-"), _line("2 cores", COLOURS[1], "-")], frameon=False)
    save(made, path)
    return True


def growth(series: dict[str, dict[str, list[tuple[float, float, float]]]], path: Path) -> bool:
    """Seconds against size, log-log, a panel for each axis; the fitted exponent stands in the legend."""
    shown = {axis: lines for axis, lines in series.items() if any(len(points) > 1 for points in lines.values())}
    if not shown:
        return False
    from matplotlib.ticker import NullFormatter

    made, axes = figure(3.4 * len(shown), len(shown))
    for ax, (axis, lines) in zip(axes, shown.items()):
        for colour, (label, points) in zip(COLOURS, lines.items()):
            x, y = [p[0] for p in points], [p[1] for p in points]
            if len(x) > 1:
                ax.loglog(x, y, "o-", color=colour, label=f"{label} (∝ x^{exponent(x, y):.2f})", markersize=4)
        ax.set_xlabel(axis)
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.legend(frameon=False, fontsize=7)
    axes[0].set_ylabel("CPU seconds")
    save(made, path)
    return True


def jc_sampler(path: Path) -> None:
    """The paper's Figure 1."""
    import numpy as np

    from vaiphy.output.figures import jc_sampler_figure

    save(jc_sampler_figure(rng=np.random.default_rng(1)), path)
