"""Which cells there are: the whole of it, and the quick form."""

from benchmarks.cells import Cell

DATA = tuple(f"DS{k}" for k in range(1, 9))
ACCURACY_DATA = ("DS1", "DS4", "DS8")
#: Generations of MrBayes's stepping stone (the paper's protocol has ten million). Short runs are sampled often, which is to
#: MrBayes's advantage.
SS_GENERATIONS = 1_000_000
SS_LADDER = (100_000, 300_000, 1_000_000)
MCMC_GENERATIONS = 300_000
CSMC = {
    "csmc-guided-unrooted": {"proposal": "guided", "target": "unrooted"},
    "csmc-guided-rooted": {"proposal": "guided", "target": "rooted"},
    "csmc-paper-rooted": {"proposal": "paper", "target": "rooted", "law": "slantis"},
    "csmc-vanilla-rooted": {"proposal": "vanilla", "target": "rooted"},
}
TRUTH = (10, 20, 50, 100, 200)
PEER = {"peer": True}


def full(repeats: int = 10) -> list[Cell]:
    """Everything; `repeats` of whatever is repeated."""
    return [*kernels(), ratios(), *accuracy(repeats), *table(repeats), *cores(), *growth(), *truth(), *default_prior(repeats)]


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


def accuracy(repeats: int = 10, ladder: tuple[int, ...] = SS_LADDER) -> list[Cell]:
    """Error against CPU seconds, ours and MrBayes's, on one thread."""
    cells = []
    for data in ACCURACY_DATA:
        cells.append(Cell("accuracy", data, "long-runs", settings=PEER))
        for k in range(min(repeats, 3)):
            cells.append(Cell("accuracy", data, "posterior", k, seed=k + 1, settings={"trace": True, "threads": 1}))
        cells.append(Cell("accuracy", data, "mrbayes-mcmc", settings={"ngen": MCMC_GENERATIONS, **PEER}))
        for rung, ngen in enumerate(ladder if data == "DS1" else ladder[:1]):
            for k in range(repeats):
                settings = {"ngen": ngen, "samplefreq": 10, **PEER}
                cells.append(Cell("accuracy", data, "mrbayes-ss", 100 * rung + k, seed=k + 1, settings=settings))
    return cells


def table(repeats: int = 10) -> list[Cell]:
    """The paper's Table 1, our methods; the repeats of VaiPhy and CSMC are inside a cell, as in the paper."""
    cells = [Cell("table", data, "posterior", k, seed=k + 1, settings={"threads": 2}) for data in DATA for k in range(repeats)]
    for data in DATA:
        for method, law in (("vaiphy", "spanning"), ("vaiphy-slantis", "slantis")):
            cells.append(Cell("table", data, method, settings={"repeats": 10, "law": law}))
        cells.append(Cell("table", data, "vaiphy-ensemble", settings={"repeats": 10, "components": 5}))
        for method, settings in CSMC.items():
            cells.append(Cell("table", data, method, settings={"repeats": repeats, "particles": 2048, **settings}))
        cells += [
            Cell("table", data, "mrbayes-ss", k, seed=k + 1, settings={"ngen": SS_GENERATIONS, **PEER}) for k in range(repeats)
        ]
    return cells


def default_prior(repeats: int = 10) -> list[Cell]:
    """MrBayes as in the paper's script, without the branch prior: where its column came from."""
    settings = {"ngen": 300_000, "prior": "default", **PEER}
    return [
        Cell("table", data, "mrbayes-ss-default-prior", k, seed=k + 1, settings=settings) for data in DATA for k in range(repeats)
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
    taxa = (8, 16, 32) if quick else (8, 16, 32, 64, 128, 256)
    sites = (100, 300, 1000) if quick else (100, 1000, 10_000, 100_000)
    counts = (128, 256, 512) if quick else (256, 512, 1024, 2048, 4096)
    trees = (300, 1000) if quick else (1000, 3000, 10_000, 30_000)
    cells = []
    for method in ("growth-likelihood", "growth-iteration"):
        cells += [Cell("growth-taxa", f"simulated-{n}x1000", method, settings={**one, "x": n}) for n in taxa]
        cells += [Cell("growth-sites", f"simulated-32x{m}", method, settings={**one, "x": m}) for m in sites]
    if not quick:
        cells += [
            Cell("growth-taxa", f"simulated-{n}x1000", "posterior", settings={**one, "x": n, "seconds": 600})
            for n in (10, 20, 50, 100)
        ]
    cells += [Cell("growth-particles", "DS1", "growth-particles", n, settings={**one, "particles": n}) for n in counts]
    cells += [Cell("growth-samples", "DS1", "growth-samples", n, settings={**one, "samples": n}) for n in trees]
    return cells


def truth(taxa: tuple[int, ...] = TRUTH) -> list[Cell]:
    """Simulated alignments of 1000 sites with their true trees."""
    cells = []
    for n in taxa:
        data = f"simulated-{n}x1000-1"
        cells += [
            Cell("truth", data, "bionj"),
            Cell("truth", data, "posterior", settings={"seconds": 300}),
            Cell("truth", data, "iqtree", settings={"ufboot": True, **PEER}),
            Cell("truth", data, "mrbayes-mcmc", settings={"ngen": 100_000, **PEER}),
        ]
    return cells
