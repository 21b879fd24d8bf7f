"""Ratios that must not worsen: every time is divided by another measured in the same process, so that machines can be compared.

`benchmarks/baseline.json` keeps the ratios that were once reached; `worse` compares.
"""

import json
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

    from benchmarks import kernel
    from vaiphy import csmc, vi
    from vaiphy.likelihood import optimise

    rounds = cell.settings.get("rounds", 60)
    found: dict[str, float] = {}
    with suppress(Absent):
        found["kernel / C"] = kernel.kernel_against_c(Cell("", cell.data, "", settings={"rounds": rounds}))["ratio"]
    with suppress(Absent):  # no compiler, or a machine too busy to tell
        found["two threads"] = kernel.two_threads(Cell("", cell.data, "", settings={"rounds": 5, "patience": 20.0}))["ratio"]
    unit, start, patterns = kernel.likelihood_unit(cell.data)
    found["optimisation / likelihood"] = 64 * kernel.paired(lambda: optimise(start, patterns), unit, rounds)[0]
    settings, columns, rng = vi.Settings(), vi.columns(patterns), np.random.default_rng(1)
    state = vi.initialise(patterns, settings, rng=rng)
    found["VaiPhy iteration / likelihood"] = (
        64 * kernel.paired(lambda: vi.step(state, columns, settings, rng=rng), unit, rounds)[0]
    )
    fit = vi.fit(patterns, rng=rng, iterations=20)
    found["weighted tree / likelihood"] = kernel.paired(lambda: fit.sample_log_weights(64, rng), unit, rounds)[0]
    proposal = csmc.make_proposal("pairwise", patterns, csmc.Target("unrooted"), rng)
    run = lambda: csmc.run(patterns, rng=np.random.default_rng(1), proposal=proposal, n_particles=64)  # noqa: E731
    found["CSMC particle / likelihood"] = kernel.paired(run, unit, max(5, rounds // 6))[0]
    found["short posterior / likelihood"] = short_posterior(patterns, unit, cell.seed)
    return {"ratios": found}


def short_posterior(patterns: Any, unit: Any, seed: int) -> float:
    """A posterior of two small bridges, in log-likelihoods: every step is divided by the unit timed beside it."""
    from benchmarks import kernel
    from vaiphy.posterior import states
    from vaiphy.posterior.settings import Settings
    from vaiphy.target import target_of

    short = Settings(replicates=2, max_bridges=2, learn_particles=16, pilot_particles=16, min_particles=32, max_particles=32)
    state = states.initialise(target_of(patterns, "JC"), short, seed)
    total = 0.0
    while not state.done:
        following: list[Any] = []

        def one_step(state: Any = state, following: list[Any] = following) -> None:
            following.append(states.step(state, 1))

        total += 64 * kernel.paired(one_step, unit, 1)[0]
        state = following[0]
    return total


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
