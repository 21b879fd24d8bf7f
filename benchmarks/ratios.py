"""Ratios that must not worsen: every time is divided by another measured in the same process, so that machines can be compared.

`benchmarks/baseline.json` keeps the ratios that were once reached; `worse` compares.
"""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.cells import ROOT, Absent, Cell

BASELINE = ROOT / "benchmarks" / "baseline.json"
TOLERANCE = 0.30
#: Ratios of which more is better; of all others less is.
MORE_IS_BETTER = frozenset({"two threads"})


def ratios(cell: Cell) -> dict[str, Any]:
    """All ratios, on DS1; the unit of most is one log-likelihood on one thread."""
    import numpy as np

    from benchmarks import data, growth, kernel
    from vaiphy import csmc, refine

    rounds = cell.settings.get("rounds", 60)
    found: dict[str, float] = {}
    with suppress(Absent):
        found["kernel / C"] = kernel.kernel_against_c(Cell("", cell.data, "", settings={"rounds": rounds}))["ratio"]
    with suppress(Absent):  # no compiler, or a machine too busy to tell
        found["two threads"] = kernel.two_threads(Cell("", cell.data, "", settings={"rounds": 5, "patience": 20.0}))["ratio"]
    optimised = kernel.optimisation(Cell("", cell.data, "", settings={"rounds": 20}))
    found["optimisation / likelihood"] = optimised["ratio"]
    unit = optimised["seconds"]["likelihood"]
    one = Cell("", cell.data, "", settings={"threads": 1, "samples": 200, "particles": 64, "iterations": 20})
    found["VaiPhy iteration / likelihood"] = growth.iteration(one)["seconds"] / unit
    found["weighted tree / likelihood"] = growth.samples(one)["seconds"] / 200 / unit
    patterns = data.patterns(cell.data)
    proposal = csmc.make_proposal("pairwise", patterns, csmc.Target("unrooted"), np.random.default_rng(1))
    run = growth.best_of(lambda: csmc.run(patterns, rng=np.random.default_rng(1), proposal=proposal, n_particles=64), 2)
    found["CSMC particle / likelihood"] = run / 64 / unit
    begin = time.process_time()
    state = refine.initialise(patterns, refine.Settings(replicates=2, min_batches=1, max_batches=1), cell.seed)
    while not state.done:
        state, _ = refine.step(state, 1)
    found["short posterior / likelihood"] = (time.process_time() - begin) / unit
    return {"ratios": found, "seconds_per_likelihood": unit}


def read_baseline(path: Path = BASELINE) -> dict[str, float]:
    return json.loads(path.read_text())["ratios"] if path.is_file() else {}


def write_baseline(found: dict[str, float], about: dict[str, Any], path: Path = BASELINE) -> None:
    path.write_text(json.dumps({"ratios": {k: round(v, 4) for k, v in found.items()}, **about}, indent=1) + "\n")


def change(name: str, now: float, before: float) -> float:
    """How much worse a ratio is: 0.3 means 30 % worse, negative means better."""
    return before / now - 1.0 if name in MORE_IS_BETTER else now / before - 1.0


def worse(found: dict[str, float], baseline: dict[str, float], tolerance: float = TOLERANCE) -> list[str]:
    """What has worsened beyond the tolerance, in words."""
    return [
        f"{name}: {found[name]:.3g}, was {before:.3g} ({100 * change(name, found[name], before):.0f} % worse)"
        for name, before in baseline.items()
        if name in found and change(name, found[name], before) > tolerance
    ]


def merged(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """The better of two measurements of each ratio: noise from elsewhere only ever worsens one."""
    result = dict(first)
    for name, value in second.items():
        if name not in result or change(name, value, result[name]) < 0:
            result[name] = value
    return result
