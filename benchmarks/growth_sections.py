"""Sections of docs/benchmarks.md on simulated alignments: growth, and distance to the true tree."""

from benchmarks.plan import TRUTH
from benchmarks.tables import NOT_RUN, Cells, exponent, number, short, table

GROWTH_NAMES = {
    "growth-likelihood": "one log-likelihood",
    "growth-iteration": "one VaiPhy iteration",
    "growth-particles": "one CSMC run",
    "growth-samples": "weighing",
    "posterior": "whole posterior",
}
TRUTH_METHODS = {"bionj": "BIONJ", "posterior": "posterior", "iqtree": "IQ-TREE", "mrbayes-mcmc": "MrBayes"}


def growth_series(cells: Cells) -> dict[str, dict[str, list[tuple[float, float, float]]]]:
    """(size, seconds, peak MB) by axis and method."""
    series: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    for axis, label in (
        ("taxa", "taxa (1,000 sites)"),
        ("sites", "sites (32 taxa)"),
        ("particles", "CSMC particles (DS1)"),
        ("samples", "weighted trees (DS1)"),
    ):
        lines: dict[str, list[tuple[float, float, float]]] = {}
        for record in cells.done(f"growth-{axis}"):
            result = record["result"]
            size = result.get("x", record["settings"].get("x"))
            lines.setdefault(GROWTH_NAMES[record["method"]], []).append((size, result["seconds"], record["peak_megabytes"]))
        if axis == "taxa":
            whole = [r for r in cells.done("truth", method="posterior") if r["result"]["finished"]]
            points = [(r["result"]["n_splits"] + 3, r["cpu_seconds"], r["peak_megabytes"]) for r in whole]
            if points:
                lines[GROWTH_NAMES["posterior"]] = points
        series[label] = {name: sorted(points) for name, points in lines.items()}
    return series


def growth(cells: Cells, picture: str) -> str:
    text = (
        "\n## Growth\n\nCPU seconds, one thread; simulated alignments (and DS1); a process for each size, "
        "so that memory is its own.\n\n"
    )
    if picture:
        text += f"![Growth](figures/{picture})\n\n"
    rows = []
    for axis, lines in growth_series(cells).items():
        for name, points in lines.items():
            x, y = [p[0] for p in points], [p[1] for p in points]
            upper = max(0, len(x) - 3)
            rows.append(
                [
                    axis,
                    name,
                    f"{x[0]:,.0f} … {x[-1]:,.0f}",
                    f"{short(y[0])} … {short(y[-1])}",
                    number(exponent(x, y)),
                    number(exponent(x[upper:], y[upper:])),
                    f"{points[0][2]:,.0f} … {points[-1][2]:,.0f}",
                ]
            )
    if not rows:
        return text + f"{NOT_RUN.capitalize()}.\n"
    return text + table(["axis", "work", "sizes", "seconds", "exponent", "of the last three", "peak MB"], rows, left=2)


def truth(cells: Cells) -> str:
    text = (
        "\n## Simulated truth\n\nAlignments of 1,000 sites along random trees (uniform topology, Exp(10) branches), "
        "one for each size. Robinson–Foulds distance to the true tree: splits\n"
        "that are false + splits that are missing. Posterior and MrBayes: majority-rule consensus, which leaves out "
        "what it is unsure of; BIONJ and IQ-TREE: binary trees.\n\n"
    )
    rows = []
    for n in TRUTH:
        data = f"simulated-{n}x1000-1"
        row = [f"{n}"]
        for method in TRUTH_METHODS:
            found = cells.done("truth", data, method)
            if not found:
                row.append(cells.why_not("truth", data, method))
                continue
            r = found[0]["result"]
            early = "" if r.get("finished", True) else ", ended early"
            row.append(f"{r['false_splits']} + {r['missing_splits']} = {r['rf']} ({short(found[0]['cpu_seconds'])} s{early})")
        rows.append(row)
    return text + table(["taxa", *(f"{label} (CPU)" for label in TRUTH_METHODS.values())], rows)
