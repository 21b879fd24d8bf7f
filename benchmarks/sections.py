"""Sections of docs/benchmarks.md: what was measured on what, promises, kernels, figures, memory."""

from statistics import mean
from typing import Any

from benchmarks.evidence_sections import TABLE_METHODS, tenth
from benchmarks.plan import DATA
from benchmarks.tables import (
    NOT_RUN,
    Cells,
    Record,
    number,
    short,
    spread,
    table,
)

CORE_METHODS = {
    "vaiphy-slantis": "VaiPhy, SLANTIS",
    "vaiphy": "VaiPhy, exact distribution",
    "csmc-paper-rooted": "φ-CSMC (paper)",
    "csmc-guided-unrooted": "guided CSMC",
    "posterior": "posterior",
}


def introduction(cells: Cells) -> str:
    machines = sorted(
        {f"{m['processor']}, {m['cores']} cores, {m['memory_gb']} GB, {m['system']}" for m in _all(cells, "machine")}
    )
    commits = sorted({v["commit"] for v in _all(cells, "versions")})
    packages = sorted({f"{k} {x}" for v in _all(cells, "versions") for k, x in v.items() if k != "commit"})
    programs = sorted({r["program"] for r in cells.records if r.get("program")})
    days = sorted({r["when"][:10] for r in cells.records})
    return (
        "# Benchmarks\n\n"
        "This page is written by `make bench` from the raw results in `benchmarks/results`, one line of JSON a "
        "measurement with machine, versions,\n"
        "seed, settings, CPU and wall seconds and peak memory. The command measures only what is not there, each "
        "measurement in a process of its\n"
        "own; interrupted, it goes on where it was. `make bench-quick` takes a few minutes. Numbers in brackets are "
        'repeats; "not run" is what it says.\n'
        "Compilation is never counted (the compiled cache is warm); starting Python and loading the compiled code is.\n\n"
        f"- Machine: {'; '.join(machines) or '–'}. It was shared with other work, so that CPU seconds mean more than "
        "wall seconds.\n"
        f"- Versions: {', '.join(packages) or '–'}; {', '.join(programs) or 'no other programs'}.\n"
        f"- Measured: {' to '.join(dict.fromkeys((days[0], days[-1]))) if days else '–'}, commits {', '.join(commits) or '–'}.\n"
    )


def promises(cells: Cells) -> str:
    """What the project set itself, and what was measured."""
    rows = []
    for what, method, digits, limit, more in (
        ("DS1 tree log-likelihood, our time / plain C's", "against-c", 2, 1.25, False),
        ("two threads, times faster than one", "two-threads", 2, 1.7, True),
        ("optimisation of the DS1 BIONJ tree, in log-likelihoods", "optimisation", 0, 150, False),
    ):
        found = cells.done("kernels", "DS1", method)
        value = found[0]["result"]["ratio"] if found else None
        aim = f"{'at least' if more else 'at most'} {limit:g}"
        rows.append([what, aim, number(value, digits) if found else NOT_RUN, _holds(value, limit, more)])
    ours, theirs = tenth(cells)
    ratio = theirs[1] / ours if ours and theirs[1] == theirs[1] else None
    said = f"{ratio:,.0f} ({theirs[0] / ours:,.0f} to {theirs[2] / ours:,.0f})" if ratio and ours else NOT_RUN
    rows.append(
        ["DS1, CPU seconds to a standard error of 0.1, MrBayes SS's / ours", "at least 30", said, _holds(ratio, 30, True)]
    )
    return (
        "\n## What is promised\n\n"
        + table(["", "promised", "measured", "holds"], rows)
        + "\nMrBayes SS at its most favourable number of generations, of those with at least five runs "
        "(see Time to accuracy); in brackets the 95 % range.\n"
        "Only the spread of its runs counts here, not how far their mean is off.\n"
    )


def kernels(cells: Cells) -> str:
    text = (
        "\n## Kernels\n\nOne log-likelihood of the optimised BIONJ tree of DS1 (934 patterns), float64, one thread; "
        "the least of many interleaved calls.\n\n"
    )
    rows: list[list[Any]] = []
    against = cells.done("kernels", "DS1", "against-c")
    if against:
        result = against[0]["result"]
        for name, seconds in result["seconds"].items():
            label = "VaiPhy" if name == "vaiphy" else f"{name} (`cc -O3 -march=native`)"
            rows.append(
                [label, number(1e6 * seconds, 1), f"{1 / seconds:,.0f}", number(seconds / result["seconds"]["vaiphy"], 2), ""]
            )
    else:
        rows.append(["VaiPhy and C", "–", "–", "–", cells.why_not("kernels", "DS1", "against-c")])
    notes = {
        "iqtree-evaluations": "log-likelihoods of whole trees, lengths fixed; reading the trees included",
        "mrbayes-generations": "MCMC generations of one chain (single precision); each recomputes only what its move touches",
    }
    for method, note in notes.items():
        found = cells.done("kernels", "DS1", method)
        if found:
            rate = found[0]["result"]["per_second"]
            relative = number(against[0]["result"]["per_second"] / rate, 2) if against else "–"
            rows.append([found[0]["program"], number(1e6 / rate, 1), f"{rate:,.0f}", relative, note])
        else:
            name = {"iqtree-evaluations": "IQ-TREE", "mrbayes-generations": "MrBayes"}[method]
            rows.append([name, "–", "–", "–", cells.why_not("kernels", "DS1", method)])
    text += table(["", "µs", "per second", "time / ours", "note"], rows)
    for method, what in (("two-threads", "Two threads against one"), ("optimisation", "Branch-length optimisation")):
        for record in cells.done("kernels", "DS1", method):
            result = record["result"]
            if method == "two-threads":
                text += (
                    f"\n{what}: {result['trees']} trees in {short(result['seconds']['1'])} s and "
                    f"{short(result['seconds']['2'])} s, "
                    f"{number(result['ratio'])} times faster (load average of the machine {record['load_average']:.1f} "
                    f"for {record['machine']['cores']} cores).\n"
                )
            else:
                gain = result["log_likelihood"]
                text += (
                    f"\n{what} of the BIONJ tree: {1e3 * result['seconds']['optimise']:.2f} ms, {result['ratio']:.0f} "
                    "log-likelihoods, from "
                    f"{number(gain['bionj'])} to {number(gain['optimised'])}.\n"
                )
    return text


def figures(cells: Cells, jc: str, cores: str) -> str:
    text = (
        f"\n## The paper's figures\n\n![The JC sampler](figures/{jc})\n\nFigure 1: branch lengths drawn by the JC "
        "sampler, with exact densities (`vaiphy figure jc-sampler`).\n\n"
    )
    if cores:
        text += (
            f"![Run time by cores](figures/{cores})\n\nFigure 3: wall seconds on DS1 by cores, compiled; VaiPhy with "
            "200 iterations (no early stop) and 3,000 weighted\n"
            "trees; CSMC with one VaiPhy fit, its preparation and one run of 2,048 particles; the posterior with "
            "default settings.\n\n"
        )
    rows = []
    for method, label in CORE_METHODS.items():
        walls = [[r["result"]["wall_seconds"] for r in cells.done(f"cores-{t}", "DS1", method)] for t in (1, 2)]
        if all(walls):
            rows.append([label, *(spread(w) for w in walls), number(mean(walls[0]) / mean(walls[1]))])
        else:
            rows.append([label, cells.why_not("cores-1", "DS1", method), cells.why_not("cores-2", "DS1", method), "–"])
    return text + table(["wall seconds, DS1", "1 core", "2 cores", "faster by"], rows)


def memory(cells: Cells) -> str:
    text = (
        "\n## Memory and learned parameters\n\nPeak resident memory of the whole process in MB (Python, NumPy and the "
        "compiled code alone take about 110).\n\n"
    )
    methods = {**TABLE_METHODS, "mrbayes-ss": "MrBayes SS"}
    rows = []
    for method, label in methods.items():
        row = [label]
        for data in DATA:
            found = cells.done("table", data, method) or cells.done("accuracy", data, method)
            peaks = [r["peak_megabytes"] for r in found if r["peak_megabytes"] is not None]
            row.append(f"{max(peaks):,.0f}" if peaks else "–" if found else NOT_RUN)
        rows.append(row)
    text += table(["peak MB", *DATA], rows)
    rows = []
    for data in DATA:
        fit = cells.done("table", data, "vaiphy")
        sizes = fit[0]["result"]["parameters"] if fit else {}
        rows.append([data, f"{sizes['q(Z)']:,} + {sizes['phi']:,}" if fit else NOT_RUN])
    text += (
        "\nLearned numbers (paper, on DS1: VBPI-NF 8.4 million, VaiPhy 0.8 million, all its sites counted; here "
        "distinct patterns only):\n\n"
    )
    return text + table(["", "VaiPhy: q(Z) + φ"], rows)


def settings(cells: Cells) -> str:
    """Every kind of measurement with its settings, seeds and cost."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in cells.records:
        shown = ", ".join(f"{k}={v}" for k, v in record["settings"].items() if k not in ("peer", "x")) or "defaults"
        groups.setdefault((record["experiment"], record["method"], shown), []).append(record)
    rows = []
    for (experiment, method, shown), records in sorted(groups.items()):
        done = [r for r in records if r["status"] == "done"]
        reason = next((r.get("reason", r["status"]) for r in records if r["status"] != "done"), "")
        seeds = sorted({r["seed"] for r in records})
        rows.append(
            [
                experiment,
                method,
                shown,
                ", ".join(sorted({r["data"] for r in records})),
                f"{seeds[0]}–{seeds[-1]}" if len(seeds) > 1 else seeds[0],
                len(done),
                short(sum(r["cpu_seconds"] or 0.0 for r in done)),
                short(sum(r["wall_seconds"] for r in done)),
                str(reason)[:80],
            ]
        )
    head = ["experiment", "method", "settings", "data", "seeds", "cells", "CPU s", "wall s", "not done"]
    return "\n## What was run\n\n" + table(head, rows, left=4)


def _holds(value: float | None, limit: float, more: bool) -> str:
    if value is None:
        return "–"
    return "yes" if (value >= limit if more else value <= limit) else "no"


def _all(cells: Cells, key: str) -> list[Any]:
    return [record[key] for record in cells.records if key in record]
