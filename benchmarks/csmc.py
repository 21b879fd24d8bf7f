"""CSMC's own benchmarks: the paper's table beside ours, and time and memory against the number of particles.

`measure` returns everything as a dictionary; `python -m benchmarks.csmc [--quick] [DS1 ...]` prints it as JSON, one line per
data set as soon as it is known. Times depend on the machine and on what else it does; log-evidences do not.
"""

import json
import resource
import sys
import time
from typing import Any

import numpy as np

from vaiphy import csmc, vi
from vaiphy.alignment import SitePatterns, compress
from vaiphy.datasets import load
from vaiphy.parallel import available_threads

#: The paper's Table 1 (rooted target), mean and standard deviation over ten runs; its "DS7" is everyone's DS8.
PAPER_PHI = {
    "DS1": (-7290.36, 7.23), "DS2": (-30568.49, 31.34), "DS3": (-33798.06, 6.62), "DS4": (-13582.24, 35.08),
    "DS5": (-8367.51, 8.87), "DS6": (-7013.83, 16.99), "DS8": (-9209.18, 18.03),
}  # fmt: skip
PAPER_VANILLA = {
    "DS1": (-8306.76, 166.27), "DS2": (-27884.37, 226.60), "DS3": (-35381.01, 218.18), "DS4": (-15019.21, 100.61),
    "DS5": (-8940.62, 46.44), "DS6": (-8029.51, 83.67), "DS8": (-11013.57, 113.49),
}  # fmt: skip
#: Published consensus of the unrooted log-evidence with Exp(10) branches (MrBayes stepping stone, VBPI, ARTree, PhyloGFN).
CONSENSUS = {
    "DS1": -7108.4, "DS2": -26367.7, "DS3": -33735.1, "DS4": -13329.9, "DS5": -8214.5, "DS6": -6724.2, "DS7": -37332.0,
    "DS8": -8650.5,
}  # fmt: skip


def measure(quick: bool = False) -> dict[str, Any]:
    """All benchmarks of this file; `quick` takes about a minute."""
    threads = available_threads()
    names = ["DS1"] if quick else list(CONSENSUS)
    repeats = 3 if quick else 10
    return {
        "threads": threads,
        "table": {name: table_row(name, repeats, threads) for name in names},
        "particles": growth([512, 2048] if quick else [256, 512, 1024, 2048, 4096, 8192], threads),
    }


def table_row(name: str, repeats: int = 10, threads: int = 1, particles: int = 2048, seed: int = 1) -> dict[str, Any]:
    """One data set: both targets with the guided proposal, the paper's figures, and the rooted reference.

    The reference of the rooted target is the consensus plus log E[10 * tree length / (2n - 3)] under the unrooted posterior.
    """
    patterns = compress(load(name))
    rng = np.random.default_rng(seed)
    began = time.perf_counter()
    fit = vi.fit(patterns, rng=rng, threads=threads)
    row: dict[str, Any] = {"n_taxa": patterns.n_taxa, "fit_seconds": time.perf_counter() - began}
    for kind in ("rooted", "unrooted"):
        row[kind] = _target_row(patterns, kind, fit, rng, repeats, threads, particles)
    row["consensus_unrooted"] = CONSENSUS[name]
    row["reference_rooted"] = CONSENSUS[name] + row["unrooted"].pop("rooted_minus_unrooted")
    row["paper_phi_csmc"] = PAPER_PHI.get(name)
    row["paper_vanilla_csmc"] = PAPER_VANILLA.get(name)
    row["peak_megabytes"] = _peak_megabytes()
    return row


def _target_row(
    patterns: SitePatterns, kind: Any, fit: vi.Fit, rng: np.random.Generator, repeats: int, threads: int, particles: int
) -> dict[str, Any]:
    target = csmc.Target(kind)
    began = time.perf_counter()
    proposal = csmc.make_proposal("guided", patterns, target, rng, fit=fit, threads=threads)
    prepared = time.perf_counter() - began
    runs, seconds = [], []
    for stream in rng.spawn(repeats):
        began = time.perf_counter()
        runs.append(csmc.run(patterns, rng=stream, target=kind, proposal=proposal, n_particles=particles, threads=threads))
        seconds.append(time.perf_counter() - began)
    estimate = csmc.Estimate(np.array([run.log_evidence for run in runs]), runs[0].statement)
    row = {
        "mean": estimate.mean, "sd": estimate.sd, "combined": estimate.combined, "statement": estimate.statement,
        "ess": [float(run.ess[-1]) for run in runs], "prepare_seconds": prepared, "run_seconds": float(np.median(seconds)),
    }  # fmt: skip
    if kind == "unrooted":
        scale = 10.0 / (2 * patterns.n_taxa - 3)
        factor = [np.exp(run.log_weights) @ run.unrooted[1][:, 1:].sum(axis=1) * scale for run in runs]
        row["rooted_minus_unrooted"] = float(np.log(np.mean(factor)))
    return row


def growth(particles: list[int], threads: int = 1, name: str = "DS1") -> list[dict[str, float]]:
    """Seconds of a rooted run, and the process's peak memory so far, for growing numbers of particles."""
    patterns = compress(load(name))
    rng = np.random.default_rng(2)
    fit = vi.fit(patterns, rng=rng, threads=threads)
    proposal = csmc.make_proposal("guided", patterns, csmc.Target("rooted"), rng, fit=fit, threads=threads)
    rows = []
    for n in particles:
        seconds = []
        for stream in rng.spawn(3):
            began = time.perf_counter()
            csmc.run(patterns, rng=stream, target="rooted", proposal=proposal, n_particles=n, threads=threads)
            seconds.append(time.perf_counter() - began)
        rows.append({"particles": n, "seconds": min(seconds), "peak_megabytes": _peak_megabytes()})
    return rows


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


if __name__ == "__main__":
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    for data_set in names:
        print(json.dumps({data_set: table_row(data_set, threads=available_threads())}), flush=True)
    if not names:
        print(json.dumps(measure("--quick" in sys.argv)))
