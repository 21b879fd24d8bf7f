"""Which cells there are: the whole of it, and the quick form."""

from typing import Any

from benchmarks.cells import Cell

DATA = tuple(f"DS{k}" for k in range(1, 9))
ACCURACY_DATA = ("DS1", "DS4", "DS8")
#: MrBayes's stepping stone in the table (the paper's protocol has ten million generations). Short runs are sampled often, which
#: is to MrBayes's advantage.
STEPPING_STONE = {"ngen": 300_000, "samplefreq": 10, "peer": True}
#: Further lengths and their repeats, for the time to accuracy: they show whether shorter or longer runs would be worth more.
SS_LADDER = {100_000: 10, 1_000_000: 5}
MCMC_GENERATIONS = 300_000
CSMC = {
    "csmc-guided-unrooted": {"proposal": "guided", "target": "unrooted"},
    "csmc-guided-rooted": {"proposal": "guided", "target": "rooted"},
    "csmc-paper-rooted": {"proposal": "paper", "target": "rooted", "law": "slantis"},
    "csmc-vanilla-rooted": {"proposal": "vanilla", "target": "rooted"},
}
#: Variants of VaiPhy that its page speaks of, and the data sets they are shown on: further arguments of `vi.fit`.
PAPER_FIT = {"branch_law": "likely", "mix_probabilities": True}
VAIPHY_VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "vaiphy-paper": (DATA, {"law": "slantis", "fit": PAPER_FIT}),
    "vaiphy-accepted-only": (("DS1", "DS3"), {"law": "slantis", "fit": {**PAPER_FIT, "accepted_only": True}}),
    "vaiphy-all-columns": (("DS2",), {"fit": {"min_observed": 0.0}}),
    "vaiphy-random-start": (("DS1",), {"fit": {"initial": "random"}}),
}
#: Proposals of CSMC by how often is resampled.
RESAMPLING: dict[str, dict[str, Any]] = {
    "resampling-vanilla": {"proposal": "vanilla"},
    "resampling-paper": {"proposal": "paper", "law": "slantis"},
    "resampling-pairwise": {"proposal": "pairwise"},
    "resampling-guided": {"proposal": "guided"},
    "resampling-guided-blind": {"proposal": "guided", "look_ahead": False},
}
#: The paper's other systems, with the settings that it gives for them (VBPI: as many iterations as an hour allows).
SYSTEMS: dict[str, dict[str, Any]] = {
    "csmc-authors": {"repeats": 10, "particles": 2048},
    "vcsmc": {"repeats": 10, "particles": 2048, "epochs": 100, "rate": 0.001},
    "vncsmc": {"repeats": 3, "particles": 256, "epochs": 100, "rate": 0.001, "tries": 1},
    "vbpi": {"flow": "none", "iterations": 200_000},
    "vbpi-nf": {"flow": "realnvp", "iterations": 200_000},
    "vbpi-nf-jc": {"flow": "realnvp", "base": "jc", "iterations": 200_000},
    "vaiphy-mixture": {"components": 5, "repeats": 10},
}
TRUTH = (10, 20, 50, 100, 200)
PEER = {"peer": True}


def full(repeats: int = 10) -> list[Cell]:
    """Everything; `repeats` of whatever is repeated."""
    return [
        *kernels(),
        ratios(),
        *accuracy(repeats),
        *table(repeats),
        *variants(),
        *systems(),
        *cores(),
        *growth(),
        *truth(),
        *default_prior(repeats),
    ]


def quick() -> list[Cell]:
    """A few minutes: every kind of cell once, on what is small."""
    return [
        ratios(),
        *kernels(rounds=60),
        Cell("accuracy", "DS1", "posterior", settings={"trace": True}),
        Cell("table", "DS1", "vaiphy", settings={"repeats": 3}),
        Cell("table", "DS1", "csmc-vanilla-rooted", settings={"repeats": 2, "particles": 256, **CSMC["csmc-vanilla-rooted"]}),
        Cell("accuracy", "DS1", "mrbayes-ss", settings={"ngen": 20_000, "samplefreq": 20, **PEER}),
        Cell("accuracy", "DS1", "mrbayes-mcmc", settings={"ngen": 50_000, **PEER}),
        *growth(quick=True),
        *truth((10,)),
    ]


def kernels(rounds: int = 300) -> list[Cell]:
    ours = [
        ("against-c", {"rounds": rounds}),
        ("two-threads", {"rounds": max(10, rounds // 12)}),
        ("optimisation", {"rounds": rounds // 3}),
    ]
    peers = [("iqtree-evaluations", PEER), ("mrbayes-generations", PEER)]
    return [Cell("kernels", "DS1", method, settings=settings) for method, settings in ours + peers]


def ratios() -> Cell:
    return Cell("ratios", "DS1", "ratios")


def accuracy(repeats: int = 10) -> list[Cell]:
    """Error against CPU seconds, ours and MrBayes's, on one thread; the table's stepping stones belong to it too."""
    cells = []
    for data in ACCURACY_DATA:
        cells.append(Cell("accuracy", data, "long-runs", settings=PEER))
        for k in range(min(repeats, 3)):
            cells.append(Cell("accuracy", data, "posterior", k, seed=k + 1, settings={"trace": True, "threads": 1}))
        cells.append(Cell("accuracy", data, "mrbayes-mcmc", settings={"ngen": MCMC_GENERATIONS, **PEER}))
    for rung, (ngen, most) in enumerate(SS_LADDER.items()):
        for data in ACCURACY_DATA if rung == 0 else ACCURACY_DATA[:1]:
            for k in range(min(repeats, most)):
                settings = {**STEPPING_STONE, "ngen": ngen}
                cells.append(Cell("accuracy", data, "mrbayes-ss", 100 * rung + k, seed=k + 1, settings=settings))
    return cells


def table(repeats: int = 10) -> list[Cell]:
    """The paper's Table 1; the repeats of VaiPhy and CSMC are inside a cell, as in the paper.

    Repeats are the outer loop, so that an interrupted run has as many of every data set.
    """
    cells = []
    for data in DATA:
        for method, law in (("vaiphy", "spanning"), ("vaiphy-slantis", "slantis")):
            cells.append(Cell("table", data, method, settings={"repeats": 10, "law": law}))
        cells.append(Cell("table", data, "vaiphy-ensemble", settings={"repeats": 10, "components": 5}))
        for method, settings in CSMC.items():
            cells.append(Cell("table", data, method, settings={"repeats": repeats, "particles": 2048, **settings}))
    for k in range(repeats):
        cells += [Cell("table", data, "posterior", k, seed=k + 1, settings={"threads": 2}) for data in DATA]
        cells += [Cell("table", data, "mrbayes-ss", k, seed=k + 1, settings=STEPPING_STONE) for data in DATA]
    return cells


def variants() -> list[Cell]:
    """What single decisions in VaiPhy and CSMC are worth; they belong to the pages of these methods."""
    cells = []
    for method, (names, settings) in VAIPHY_VARIANTS.items():
        cells += [Cell("variants", data, method, settings={"repeats": 10, **settings}) for data in names]
    common = {"target": "rooted", "repeats": 5, "thresholds": [0.0, 0.5, 1.0]}
    return cells + [Cell("variants", "DS1", method, settings={**common, **settings}) for method, settings in RESAMPLING.items()]


def systems() -> list[Cell]:
    """The paper's other systems on all data sets, and what makes phi-CSMC as described into phi-CSMC as run."""
    cells = [Cell("systems", data, "authors-ablation", settings={"law": "slantis", "repeats": 5}) for data in ("DS1", "DS3")]
    return cells + [Cell("systems", data, method, settings=settings) for method, settings in SYSTEMS.items() for data in DATA]


def default_prior(repeats: int = 10) -> list[Cell]:
    """MrBayes as in the paper's script, without the branch prior: where its column came from."""
    settings = {**STEPPING_STONE, "prior": "default"}
    return [
        Cell("table", data, "mrbayes-ss-default-prior", k, seed=k + 1, settings=settings)
        for k in range(min(repeats, 3))
        for data in DATA
    ]


def cores() -> list[Cell]:
    """The paper's Figure 3: run time on DS1 by the number of cores; the paper's settings, no early stop."""
    cells = []
    for threads in (1, 2):
        for k in range(3):
            common = {"threads": threads, "repeats": 1}
            cells += [
                Cell(
                    f"cores-{threads}",
                    "DS1",
                    "vaiphy-slantis",
                    k,
                    seed=k + 1,
                    settings={**common, "law": "slantis", "stop": False},
                ),
                Cell(f"cores-{threads}", "DS1", "vaiphy", k, seed=k + 1, settings={**common, "stop": False}),
                Cell(
                    f"cores-{threads}",
                    "DS1",
                    "csmc-guided-unrooted",
                    k,
                    seed=k + 1,
                    settings={**common, **CSMC["csmc-guided-unrooted"]},
                ),
                Cell(
                    f"cores-{threads}",
                    "DS1",
                    "csmc-paper-rooted",
                    k,
                    seed=k + 1,
                    settings={**common, **CSMC["csmc-paper-rooted"]},
                ),
                Cell(f"cores-{threads}", "DS1", "posterior", k, seed=k + 1, settings={"threads": threads}),
            ]
    return cells


def growth(quick: bool = False) -> list[Cell]:
    one = {"threads": 1}
    taxa = (8, 16, 32) if quick else (8, 16, 32, 64, 128, 256, 512)
    sites = (100, 300, 1000) if quick else (100, 1000, 10_000, 100_000)
    counts = (128, 256, 512) if quick else (256, 512, 1024, 2048, 4096)
    trees = (300, 1000) if quick else (1000, 3000, 10_000, 30_000)
    cells = []
    for method in ("growth-likelihood", "growth-iteration"):
        cells += [Cell("growth-taxa", f"simulated-{n}x1000", method, settings={**one, "x": n}) for n in taxa]
        cells += [Cell("growth-sites", f"simulated-32x{m}", method, settings={**one, "x": m}) for m in sites]
    cells += [Cell("growth-particles", "DS1", "growth-particles", n, settings={**one, "particles": n}) for n in counts]
    cells += [Cell("growth-samples", "DS1", "growth-samples", n, settings={**one, "samples": n}) for n in trees]
    return cells


def truth(taxa: tuple[int, ...] = TRUTH) -> list[Cell]:
    """Simulated alignments of 1000 sites with their true trees; the posterior's cells also show how it grows."""
    cells = []
    for n in taxa:
        data = f"simulated-{n}x1000-1"
        cells += [
            Cell("truth", data, "bionj"),
            Cell("truth", data, "posterior", settings={"threads": 1, "seconds": 1500}),
            Cell("truth", data, "iqtree", settings={"ufboot": True, **PEER}),
            Cell("truth", data, "mrbayes-mcmc", settings={"ngen": 100_000, **PEER}),
        ]
    return cells
