"""Other programs on the same data: MrBayes and IQ-TREE, run for real, each in a folder of its own.

CPU time and peak memory are those of the program alone. A program that is not installed leaves its cells with that as the reason.
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.cells import Absent, Cell

PACKAGES = {"mb": "mrbayes", "iqtree2": "iqtree", "iqtree": "iqtree"}
EXPONENTIAL = "prset brlenspr=unconstrained:exponential(10.0) topologypr=uniform;"


@dataclass(frozen=True)
class Run:
    """What a program said and what it cost."""

    output: str
    cpu_seconds: float
    wall_seconds: float
    peak_megabytes: float

    def costs(self) -> dict[str, float]:
        return {"cpu_seconds": self.cpu_seconds, "peak_megabytes": self.peak_megabytes, "wall_seconds": self.wall_seconds}


def program(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        if found := shutil.which(name):
            return found
    raise Absent(f"{names[0]} is not installed (Debian package {PACKAGES.get(names[0], names[0])})")


def run(command: list[str], folder: Path, timeout: float = 3000.0) -> Run:
    """Run a program to its end. Raises RuntimeError with its last words if it fails."""
    from benchmarks.worker import peak_megabytes

    begin = time.perf_counter()
    with (folder / "output.txt").open("w+") as output:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        peaks = [0.0]

        def watch() -> None:
            while process.poll() is None:
                value = peak_megabytes(process.pid)
                if value == value:
                    peaks.append(value)
                time.sleep(0.05)

        usage_before = os.times()
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            process.wait(timeout)
        finally:
            process.kill()
            process.wait()
        watcher.join()
        wall, usage = time.perf_counter() - begin, os.times()
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} ended with status {process.returncode}: {text[-2000:]}")
    cpu = usage.children_user + usage.children_system - usage_before.children_user - usage_before.children_system
    return Run(text, cpu, wall, max(peaks))


def mrbayes_script(cell: Cell, task: str) -> str:
    """The commands; the prior is set explicitly unless `prior` says "default", which is the paper's own script."""
    prior = "" if cell.settings.get("prior") == "default" else EXPONENTIAL
    return (
        f"set autoclose=yes nowarn=yes seed={cell.seed} swapseed={cell.seed};\nexecute data.nex;\n"
        f"lset nst=1 rates=equal; prset statefreqpr=fixed(equal); {prior}\n{task}\nquit;\n"
    )


def run_mrbayes(cell: Cell, task: str, folder: Path) -> tuple[Run, str]:
    """MrBayes on the cell's data; the run and the program's version."""
    path = program("mb")
    from benchmarks import data
    from vaiphy.formats import write_alignment

    (folder / "data.nex").write_text(write_alignment(data.alignment(cell.data), "nexus"))
    (folder / "run.nex").write_text(mrbayes_script(cell, task))
    done = run([path, "run.nex"], folder)
    found = re.search(r"MrBayes v?([\d.]+\w*)|MrBayes (3\.\S+)", done.output)
    return done, "MrBayes " + (found.group(1) or found.group(2) if found else "of unknown version")


def stepping_stone(cell: Cell) -> dict[str, Any]:
    """The log evidence by stepping stone; one independent run a cell."""
    s = cell.settings
    with tempfile.TemporaryDirectory() as name:
        task = f"ss ngen={s['ngen']} nruns=1 nchains={s.get('nchains', 4)} samplefreq={s.get('samplefreq', 100)} "
        done, version = run_mrbayes(cell, task + "printfreq=100000 diagnfreq=100000 filename=out;", Path(name))
    found = re.search(r"Marginal likelihood \(ln\)\s*-+\s*1\s+(-?[\d.]+)", done.output)
    if not found:
        raise RuntimeError("no marginal likelihood in MrBayes's output: " + done.output[-500:])
    return {"log_evidence": float(found.group(1)), "program": version, **done.costs()}


def mcmc(cell: Cell) -> dict[str, Any]:
    """Split frequencies against generations from one MrBayes run; CPU time is proportional to the generation.

    After g generations the first quarter of them is discarded. On simulated data also the majority-rule tree's distance to the
    truth.
    """
    from benchmarks import data, ours
    from vaiphy.formats import read_trees
    from vaiphy.summary.consensus import summary_tree

    s = cell.settings
    ngen, every = s["ngen"], s.get("samplefreq", 100)
    with tempfile.TemporaryDirectory() as name:
        task = f"mcmc ngen={ngen} nruns=1 nchains={s.get('nchains', 4)} samplefreq={every} "
        done, version = run_mrbayes(cell, task + f"printfreq={ngen} diagnfreq={ngen} filename=out;", Path(name))
        taxa = data.alignment(cell.data).taxa
        trees = read_trees(Path(name) / "out.t", taxa)
    topologies = [entry.tree.topology for entry in trees]
    trace, n = [], len(topologies)
    for share in s.get("shares", [1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0]):
        end = max(2, round(share * n))
        splits = frequencies(topologies[end // 4 : end])
        trace.append({"cpu": done.cpu_seconds * end / n, "generation": end * every, "splits": splits})
    final = {int(key, 16): value for key, value in trace[-1]["splits"].items()}
    majority = summary_tree(taxa, [k for k, v in final.items() if v > 0.5], final, {})
    return {
        "program": version,
        "samples": n,
        "splits": trace[-1]["splits"],
        "trace": trace,
        **ours.distance_to_truth(cell.data, majority),
        **done.costs(),
    }


def frequencies(topologies: list[frozenset[int]], rare: float = 0.005) -> dict[str, float]:
    """Frequencies of the non-trivial splits of trees with equal weights."""
    counts: dict[int, int] = {}
    for topology in topologies:
        for split in topology:
            counts[split] = counts.get(split, 0) + 1
    total = len(topologies)
    return {format(split, "x"): round(n / total, 5) for split, n in counts.items() if n >= rare * total}


def iqtree(cell: Cell) -> dict[str, Any]:
    """The maximum-likelihood tree under JC, with 1000 ultrafast bootstraps if `ufboot`; distance to the truth."""
    path = program("iqtree2", "iqtree")
    from benchmarks import data, ours
    from vaiphy.formats import newick, write_alignment
    from vaiphy.trees.tree import with_taxa

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        alignment = data.alignment(cell.data)
        (folder / "data.fasta").write_text(write_alignment(alignment, "fasta"))
        extra = ["-B", "1000"] if cell.settings.get("ufboot") and len(alignment.taxa) > 3 else []
        done = run([path, "-s", "data.fasta", "-m", "JC", "-T", "1", "-seed", str(cell.seed), "-redo", *extra], folder)
        tree = with_taxa(newick.read((folder / "data.fasta.treefile").read_text()), alignment.taxa)
    found = re.search(r"version ([\d.]+)", done.output)
    best = re.search(r"BEST SCORE FOUND : (-?[\d.]+)", done.output)
    return {
        "program": f"IQ-TREE {found.group(1) if found else ''}".strip(),
        "log_likelihood": float(best.group(1)) if best else None,
        **ours.distance_to_truth(cell.data, tree),
        **done.costs(),
    }


def evaluations(cell: Cell) -> dict[str, Any]:
    """Log-likelihoods of whole trees per second in IQ-TREE (lengths fixed; reading them included), from two sizes."""
    path = program("iqtree2", "iqtree")
    from benchmarks import data, kernel
    from vaiphy.formats import newick, write_alignment

    few, many = cell.settings.get("trees", [500, 4500])
    _, tree = kernel.problem(cell.data)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.fasta").write_text(write_alignment(data.alignment(cell.data), "fasta"))
        lines = [newick.write(tree.with_lengths(tree.length * (0.5 + k / many))) for k in range(many)]
        (folder / "one.nwk").write_text(lines[0])
        runs = []
        for count in (few, many):
            (folder / "trees.nwk").write_text("\n".join(lines[:count]) + "\n")
            command = [path, "-s", "data.fasta", "-m", "JC", "-te", "one.nwk", "-z", "trees.nwk", "-blfix", "-T", "1", "-redo"]
            runs.append(run(command, folder))
    found = re.search(r"version ([\d.]+)", runs[-1].output)
    rate = (many - few) / max(runs[1].cpu_seconds - runs[0].cpu_seconds, 1e-9)
    return {"program": f"IQ-TREE {found.group(1) if found else ''}".strip(), "per_second": rate, **runs[1].costs()}


def generations(cell: Cell) -> dict[str, Any]:
    """MCMC generations per second of one MrBayes chain; a generation recomputes only the part of the tree that it touches."""
    few, many = cell.settings.get("rungs", [2000, 42000])
    runs = []
    for ngen in (few, many):
        with tempfile.TemporaryDirectory() as name:
            task = f"mcmc ngen={ngen} nruns=1 nchains=1 samplefreq={few} printfreq={ngen} diagnfreq={ngen} filename=out;"
            done, version = run_mrbayes(cell, task, Path(name))
            runs.append(done)
    rate = (many - few) / max(runs[1].cpu_seconds - runs[0].cpu_seconds, 1e-9)
    return {"program": version, "per_second": rate, **runs[1].costs()}


def long_runs(cell: Cell) -> dict[str, Any]:
    """Split frequencies of long MrBayes runs by others, where their files are at hand (environment variable BENCH_GOLDEN)."""
    import json

    from benchmarks import data

    folder = Path(os.environ.get("BENCH_GOLDEN", "") or "absent")
    path = folder / f"{cell.data}.json"
    if not path.is_file():
        raise Absent("the long runs' split frequencies are not at hand (option --golden)")
    golden = json.loads(path.read_text())
    taxa = data.alignment(cell.data).taxa
    place = {name: i for i, name in enumerate(taxa)}
    if set(golden["taxa"]) != set(taxa):
        raise Absent(f"the taxa of {path.name} are not those of the alignment")
    everything = (1 << len(taxa)) - 1
    splits = {}
    for row in golden["splits"]:
        side = sum(1 << place[golden["taxa"][t]] for t in row["taxa"])
        side = everything ^ side if side & 1 else side
        if min(side.bit_count(), (everything ^ side).bit_count()) > 1:
            splits[format(side, "x")] = row["frequency"]
    return {"splits": splits, "replicates": golden["replicates"], "program": "MrBayes, long runs by others"}
