"""Sections of docs/benchmarks.md on the log evidence: the paper's table, and time to accuracy."""

from statistics import mean

from benchmarks import published
from benchmarks.plan import ACCURACY_DATA, DATA, STEPPING_STONE
from benchmarks.tables import (
    NOT_RUN,
    Cells,
    Record,
    asdsf,
    cpu_to_error,
    number,
    short,
    split_errors,
    spread,
    table,
    values_of,
)

TABLE_METHODS = {
    "posterior": "posterior",
    "mrbayes-ss": f"MrBayes SS, Exp(10), {STEPPING_STONE['ngen']:,} generations",
    "csmc-guided-unrooted": "guided CSMC, unrooted",
    "csmc-guided-rooted": "guided CSMC, rooted",
    "csmc-paper-rooted": "φ-CSMC (paper), rooted",
    "csmc-vanilla-rooted": "vanilla CSMC, rooted",
    "vaiphy": "VaiPhy, exact distribution",
    "vaiphy-slantis": "VaiPhy, SLANTIS",
    "vaiphy-ensemble": "VaiPhy ensemble",
}


def table_one(cells: Cells) -> str:
    text = (
        "\n## The paper's Table 1\n\n"
        "Log evidence, mean ± standard deviation (repeats). The rows are not estimates of one thing: *posterior*, "
        "*MrBayes* and *unrooted* CSMC are of\n"
        "unrooted binary trees with Exp(10) branches, *rooted* CSMC is of rooted ones (the paper's), and VaiPhy's are "
        "lower bounds in the augmented\n"
        "space, whose prior is far heavier.\n\n"
    )
    rows = [[label, *(_table_entry(cells, data, method) for data in DATA)] for method, label in TABLE_METHODS.items()]
    rows.insert(2, ["posterior, rooted reference", *(_rooted(cells, data) for data in DATA)])
    text += table(["measured here", *DATA], rows)
    text += (
        "\nThe *rooted reference* is the posterior's log evidence plus log E[10 · tree length / (2n − 3)]: "
        "what rooted CSMC estimates.\n"
    )
    text += '\nPublished, not measured here (the paper\'s "DS7" is DS8):\n\n'
    rows = [["consensus, Exp(10)", *(number(published.CONSENSUS[data], 1) for data in DATA)]]
    for column, values in published.PAPER.items():
        rows.append([f"paper: {column}", *(_published(values.get(data)) for data in DATA)])
    text += table(["published", *DATA], rows)
    text += "\n### The posterior, run by run\n\n" + posterior_runs(cells)
    return text + default_prior(cells)


def posterior_runs(cells: Cells) -> str:
    rows = []
    for data in DATA:
        found = cells.done("table", data, "posterior")
        if not found:
            rows.append([data, cells.why_not("table", data, "posterior"), *["–"] * 8])
            continue
        values, results = values_of(found), [r["result"] for r in found]
        rows.append(
            [
                data,
                spread(values, 3),
                number(mean(values) - published.CONSENSUS[data], 2),
                number(mean(r["std_error"] for r in results), 3),
                number(mean(r["elbo"] for r in results), 2),
                f"{mean(r['ess'] for r in results):,.0f}",
                number(max(r["pareto_k"] for r in results), 2),
                f"{sum(r['trust_ok'] for r in results)} of {len(results)}",
                short(min(r["wall_seconds"] for r in results)),
                short(mean(r["cpu_seconds"] for r in found)),
            ]
        )
    head = ["", "log evidence", "− consensus", "reported error", "ELBO", "ESS", "largest k̂", "trusted", "wall s, least", "CPU s"]
    return table(head, rows) + "\nEach run has a seed of its own; two threads, default settings (four replicates).\n"


def default_prior(cells: Cells) -> str:
    """Where the paper's MrBayes column came from."""
    rows = []
    for data in DATA:
        found = cells.done("table", data, "mrbayes-ss-default-prior")
        if found or cells.find("table", data, "mrbayes-ss-default-prior"):
            entry = spread(values_of(found)) if found else cells.why_not("table", data, "mrbayes-ss-default-prior")
            rows.append([data, entry, _published(published.PAPER["MrBayes SS"].get(data)), number(published.CONSENSUS[data], 1)])
    if not rows:
        return f"\nMrBayes with its default branch prior, as in the paper's script: {NOT_RUN}.\n"
    return (
        "\n### Where the paper's MrBayes column came from\n\nMrBayes's stepping stone with the paper's own script, "
        "which leaves the branch prior at MrBayes's default:\n\n"
        + table(["", "measured here", "paper: MrBayes SS", "consensus, Exp(10)"], rows)
    )


def tenth(cells: Cells) -> tuple[float | None, tuple[float, float, float]]:
    """CPU seconds to a standard error of 0.1 on DS1: ours, and MrBayes's at its most favourable run length.

    Lengths with fewer than five runs do not count: a standard deviation of three may be ten times too small.
    """
    found = cells.done("accuracy", "DS1", "posterior")
    ours = [r["result"]["cpu_seconds_to_tenth"] for r in found if r["result"].get("cpu_seconds_to_tenth")]
    rungs = [
        cpu_to_error([r["cpu_seconds"] for r in group], values_of(group)) for group in ss_ladder(cells).values() if len(group) > 4
    ]
    best = min(rungs, key=lambda rung: rung[1], default=(float("nan"),) * 3)
    return (mean(ours) if ours else None), best


def ss_ladder(cells: Cells, data: str = "DS1") -> dict[int, list[Record]]:
    """Stepping-stone cells by the number of generations."""
    groups: dict[int, list[Record]] = {}
    for record in cells.done("accuracy", data, "mrbayes-ss") + cells.done("table", data, "mrbayes-ss"):
        groups.setdefault(record["settings"].get("ngen", 0), []).append(record)
    return dict(sorted(groups.items()))


def reference(cells: Cells, data: str) -> tuple[dict[str, float], str]:
    """The split frequencies that others are compared with, and what they are: long runs by others, else our own runs' average."""
    for record in cells.done("accuracy", data, "long-runs"):
        return record["result"]["splits"], f"{record['result']['replicates']} long MrBayes runs by others"
    found = [r["result"]["splits"] for r in cells.done("table", data, "posterior") + cells.done("accuracy", data, "posterior")]
    if not found:
        return {}, "nothing"
    names = {name for splits in found for name in splits}
    return {name: mean(s.get(name, 0.0) for s in found) for name in names}, f"our own {len(found)} runs together"


def accuracy(cells: Cells, picture: str) -> str:
    text = (
        "\n## Time to accuracy\n\nCPU seconds from the start of the process, exploration and all replicates included. "
        "MrBayes: stepping stone and MCMC with four chains,\n"
        "Exp(10), BEAGLE (single precision) as the Debian package uses it by default. Errors of the log evidence are "
        "distances from the published consensus,\nwhich is known to about 0.1 only.\n\n"
    )
    if picture:
        text += f"![Error against CPU seconds](figures/{picture})\n\n"
    text += "### CPU seconds to a standard error of 0.1\n\n" + _tenth_table(cells)
    text += (
        "\nMrBayes's figure is the cost of a run times the number of independent runs whose mean has a standard error "
        "of 0.1, (standard deviation / 0.1)²; the range\n"
        "is 95 % from so few runs. It ignores that short runs are also off on average, which more runs do not mend: "
        'see "− consensus".\n'
    )
    rows = []
    for data in ACCURACY_DATA:
        wanted, what = reference(cells, data)
        for method, label in (("posterior", "ours"), ("mrbayes-mcmc", "MrBayes MCMC")):
            found = cells.done("accuracy", data, method)
            if not found or not wanted:
                rows.append([data, label, what, cells.why_not("accuracy", data, method), "–", "–", "–"])
                continue
            pairs = [split_errors(r["result"]["splits"], wanted) for r in found]
            deviations = [asdsf(r["result"]["splits"], wanted) for r in found]
            length = "" if method == "posterior" else f", {found[0]['settings']['ngen']:,} generations"
            costs = short(mean(r["cpu_seconds"] for r in found))
            rows.append(
                [
                    data,
                    label + length + f" ({len(found)})",
                    what,
                    number(mean(p[0] for p in pairs), 4),
                    number(mean(p[1] for p in pairs), 4),
                    number(mean(deviations), 4),
                    costs,
                ]
            )
    head = ["", "method (runs)", "compared with", "largest difference", "root mean square", "ASDSF", "CPU s"]
    return (
        text
        + "\n### Split frequencies\n\nOver splits at or above 0.05 (ASDSF: 0.1) in either; mean over runs.\n\n"
        + table(head, rows, left=3)
    )


def _tenth_table(cells: Cells) -> str:
    rows = []
    for data in ACCURACY_DATA:
        rows += _tenth_rows(cells, data)
    return table(["", "method", "log evidence", "− consensus", "CPU s a run", "CPU s to 0.1"], rows, left=2)


def _tenth_rows(cells: Cells, data: str) -> list[list[str]]:
    rows = []
    found = cells.done("accuracy", data, "posterior")
    if found:
        costs = [r["result"]["cpu_seconds_to_tenth"] for r in found if r["result"]["cpu_seconds_to_tenth"]]
        first = mean(r["result"]["trace"][0]["std_error"] for r in found)
        note = f"{short(mean(costs))} (the first estimate already has {number(first, 3)})" if costs else "–"
        rows.append([data, "posterior, whole run", *_cost(found, data, 3), note])
    else:
        rows.append([data, "posterior", cells.why_not("accuracy", data, "posterior"), "–", "–", "–"])
    groups = ss_ladder(cells, data)
    for ngen, group in groups.items():
        least, guess, most = cpu_to_error([r["cpu_seconds"] for r in group], values_of(group))
        said = f"{guess:,.0f} ({least:,.0f} to {most:,.0f})" if guess == guess else "–"
        rows.append([data, f"MrBayes SS, {ngen:,} generations", *_cost(group, data), said])
    if not groups:
        rows.append([data, "MrBayes SS", cells.why_not("accuracy", data, "mrbayes-ss"), "–", "–", "–"])
    return rows


def _cost(group: list[Record], data: str, digits: int = 2) -> list[str]:
    """Log evidence, its distance from the consensus, and CPU seconds of a run."""
    values = values_of(group)
    gap = number(mean(values) - published.CONSENSUS[data])
    return [spread(values, digits), gap, short(mean(r["cpu_seconds"] for r in group))]


def _table_entry(cells: Cells, data: str, method: str) -> str:
    found = cells.done("table", data, method)
    return spread(values_of(found)) if found else cells.why_not("table", data, method)


def _rooted(cells: Cells, data: str) -> str:
    found = [r["result"] for r in cells.done("table", data, "posterior") if "rooted_shift" in r["result"]]
    return spread([r["log_evidence"] + r["rooted_shift"] for r in found])


def _published(value: tuple[float, float] | None) -> str:
    return "–" if value is None else f"{number(value[0])} ± {value[1]:.2f}"
