"""Sections of docs/benchmarks.md on the paper's other systems: beside the published figures, and where phi-CSMC's come from."""

from statistics import mean

from benchmarks import published
from benchmarks.plan import DATA
from benchmarks.tables import NOT_RUN, Cells, number, short, spread, table, values_of

ROWS = {
    "csmc-authors": "φ-CSMC as its authors ran it, bias taken off",
    "vcsmc": "VCSMC, rooted",
    "vncsmc": "VNCSMC, rooted",
    "vbpi": "VBPI",
    "vbpi-nf": "VBPI-NF (RealNVP)",
    "vbpi-nf-jc": "VBPI-NF, JC sampler as base",
    "vaiphy-mixture": "VaiPhy mixture",
}


def systems(cells: Cells) -> str:
    """The whole section."""
    rows = [[label, *(_entry(cells, data, method) for data in DATA)] for method, label in ROWS.items()]
    rows.insert(1, ["the same, as their program prints it", *(_printed(cells, data) for data in DATA)])
    text = (
        "\n## The paper's other systems\n\nLog evidence, mean ± standard deviation (repeats), with the settings listed below; "
        "the published columns are in the table above.\nVCSMC is of rooted trees; its published figures estimate nothing that "
        "could be compared (see [CSMC](csmc.md)). VaiPhy's is a lower bound in the augmented space.\n\n"
    )
    text += table(["measured here", *DATA], rows)
    text += "\n### Lower bounds\n\nOf one sample (LB-1) and of ten (LB-10), as the field reports them.\n\n" + bounds(cells)
    text += "\n### From φ-CSMC as described to φ-CSMC as run\n\n" + ablation(cells)
    return text + "\n### Mixtures of VaiPhy\n\n" + mixtures(cells)


def bounds(cells: Cells) -> str:
    """LB-1 and LB-10 of VBPI and of the posterior's proposals."""
    rows = []
    for data in DATA:
        ours = [r["result"]["bounds"] for r in cells.done("table", data, "posterior") if "bounds" in r["result"]]
        row = [data, _mean(ours, "LB-1"), _mean(ours, "LB-10")]
        for method in ("vbpi", "vbpi-nf", "vbpi-nf-jc"):
            found = [r["result"] for r in cells.done("systems", data, method)]
            row += [_mean(found, "LB-1"), _mean(found, "LB-10")]
        found = [r["result"] for r in cells.done("systems", data, "vbpi-nf")]
        row += [
            number(published.LOWER_BOUNDS[data]),
            f"{found[0]['iterations']:,}" if found else NOT_RUN,
            short(1e3 * mean(r["cpu_seconds_an_iteration"] for r in found)) if found else NOT_RUN,
        ]
        rows.append(row)
    head = ["", *(f"{name}, {b}" for name in ("posterior", "VBPI", "VBPI-NF", "VBPI-NF, JC") for b in ("LB-1", "LB-10"))]
    return table([*head, "published VBPI, LB-1", "VBPI-NF: iterations", "CPU ms an iteration"], rows)


def ablation(cells: Cells) -> str:
    """One difference after another."""
    found = {data: cells.done("systems", data, "authors-ablation") for data in ("DS1", "DS3")}
    if not any(found.values()):
        return f"The ablation: {NOT_RUN}.\n"
    by_step = {data: records[0]["result"]["by_step"] for data, records in found.items() if records}
    names = next(iter(by_step.values()))
    rows = [[name, *(spread(steps[name], 1) for steps in by_step.values())] for name in names]
    return (
        "Log Z-hat (rooted until three roots are joined), the bias of log K + log(n − 2) not added. Each row of the first half "
        "has all changes above it;\neach row of the second all but one.\n\n" + table(["", *by_step], rows)
    )


def mixtures(cells: Cells) -> str:
    """The best fit alone, the ensemble of fits, and the mixture that has the best MISELBO there can be."""
    rows = []
    for data in DATA:
        for record in cells.done("systems", data, "vaiphy-mixture"):
            values = record["result"]["by_mixture"]
            rows.append([data, *(spread(values[name]) for name in ("best alone", "ensemble", "renamed"))])
    if not rows:
        return f"Mixtures: {NOT_RUN}.\n"
    return table(["", "best of five fits alone", "ensemble of the five", "five copies of the best, renamed"], rows)


def _entry(cells: Cells, data: str, method: str) -> str:
    found = cells.done("systems", data, method)
    return spread(values_of(found)) if found else cells.why_not("systems", data, method)


def _printed(cells: Cells, data: str) -> str:
    found = [r["result"] for r in cells.done("systems", data, "csmc-authors")]
    return spread([value + r["bias"] for r in found for value in r["values"]]) if found else NOT_RUN


def _mean(results: list[dict[str, float]], name: str) -> str:
    return number(mean(r[name] for r in results)) if results else NOT_RUN
