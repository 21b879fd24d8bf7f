"""Sections of docs/benchmarks.md on the paper's methods: beside the paper, what single decisions are worth, what CSMC costs."""

from statistics import mean

from benchmarks import published
from benchmarks.plan import DATA, RESAMPLING
from benchmarks.tables import NOT_RUN, Cells, number, short, spread, table, values_of

VARIANTS = {
    "vaiphy-paper": "SLANTIS, closed-form lengths in training, mixed probabilities, JC sampler (closest to the paper)",
    "vaiphy-accepted-only": "the same with SLANTIS's density as printed in the paper",
    "vaiphy-all-columns": "exact distribution, nearly empty columns inform the proposals too",
    "vaiphy-random-start": "exact distribution, from a random q(Z)",
}
PROPOSALS = {
    "resampling-vanilla": "vanilla",
    "resampling-paper": "paper",
    "resampling-pairwise": "pairwise",
    "resampling-guided": "guided",
    "resampling-guided-blind": "guided, without look-ahead",
}


def methods(cells: Cells) -> str:
    return (
        "\n## VaiPhy and CSMC in detail\n\n### VaiPhy beside the paper\n\n"
        "IWELBO with the paper's settings (200 iterations at most, 128 trees an iteration for SLANTIS, 3,000 "
        "weighted trees, ten repeats), mean ± standard deviation.\n\n"
        + vaiphy_table(cells)
        + "\nOther variants:\n\n"
        + variants_table(cells)
        + "\n### Two hundred iterations and 3,000 weighted trees on DS1\n\n"
        + speed_table(cells)
        + "\n### CSMC by how often is resampled\n\nDS1, rooted, 2,048 particles, one proposal and five runs with each threshold: "
        "resampled when the effective sample size falls below so much\nof the particles (0: never, 1: at every rank).\n\n"
        + resampling_table(cells)
        + "\n### What the guided CSMC costs\n\n"
        "CPU seconds and peak memory, 2,048 particles; the guide is made once for all runs.\n\n" + csmc_costs(cells)
    )


def vaiphy_table(cells: Cells) -> str:
    rows = []
    for data in DATA:
        paper = published.PAPER["VaiPhy"].get(data)
        found = cells.done("table", data, "vaiphy")
        gain = number(mean(values_of(found)) - paper[0], 1) if found and paper else "–"
        row = [data, number(paper[0]) if paper else "not given", _entry(cells, "table", data, "vaiphy"), gain]
        row += [_entry(cells, "table", data, "vaiphy-slantis"), _entry(cells, "variants", data, "vaiphy-paper")]
        rows.append(row)
    return table(["", "paper", "exact", "better by", "SLANTIS", "closest to the paper"], rows)


def variants_table(cells: Cells) -> str:
    rows = []
    for method, label in VARIANTS.items():
        found = cells.done("variants", method=method)
        if method == "vaiphy-paper":
            continue
        if not found:
            rows.append(["–", label, cells.why_not("variants", method=method)])
        rows += [[r["data"], label, spread(values_of([r]), 1)] for r in found]
    return table(["", "variant", "IWELBO"], rows, left=2)


def speed_table(cells: Cells) -> str:
    """The parts of the one-core cells of Figure 3, which have no early stop; the unit is one log-likelihood."""
    against = cells.done("kernels", "DS1", "against-c")
    unit = against[0]["result"]["seconds"]["vaiphy"] if against else None
    rows = []
    for what, method, part in (
        ("200 iterations, exact distribution", "vaiphy", "fit_seconds"),
        ("200 iterations, SLANTIS", "vaiphy-slantis", "fit_seconds"),
        ("3,000 weighted trees", "vaiphy", "weigh_seconds"),
    ):
        row = [what]
        for threads in (1, 2):
            found = [r["result"][part] for r in cells.done(f"cores-{threads}", "DS1", method)]
            row.append(short(min(found)) if found else cells.why_not(f"cores-{threads}", "DS1", method))
            if threads == 1:
                row.append(f"{min(found) / unit:,.0f}" if found and unit else "–")
        rows.append(row)
    return table(["least of three", "wall s, 1 core", "in log-likelihoods", "wall s, 2 cores"], rows)


def resampling_table(cells: Cells) -> str:
    rows = []
    thresholds = ("0", "0.5", "1")
    for method in RESAMPLING:
        found = cells.done("variants", "DS1", method)
        values = found[0]["result"]["by_threshold"] if found else {}
        missing = cells.why_not("variants", "DS1", method)
        rows.append([PROPOSALS[method], *(spread(values[t]) if t in values else missing for t in thresholds)])
    return table(["proposal", *(f"threshold {t}" for t in thresholds)], rows)


def csmc_costs(cells: Cells) -> str:
    rows = []
    for data in DATA:
        row = [data]
        for target in ("unrooted", "rooted"):
            found = cells.done("table", data, f"csmc-guided-{target}")
            r = found[0]["result"] if found else {}
            row += [short(r.get("prepare_cpu_seconds")), short(r.get("run_cpu_seconds"))]
            row.append(f"{found[0]['peak_megabytes']:,.0f}" if found and found[0]["peak_megabytes"] else NOT_RUN)
        rows.append(row)
    head = ["", "guide, unrooted", "a run", "peak MB", "guide, rooted", "a run", "peak MB"]
    return table(head, rows)


def _entry(cells: Cells, experiment: str, data: str, method: str) -> str:
    found = cells.done(experiment, data, method)
    return spread(values_of(found), 1) if found else cells.why_not(experiment, data, method)
