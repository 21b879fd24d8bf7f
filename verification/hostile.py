"""Is "converged" ever wrong? Data made to fool the sampler, and the truth by annealing from the prior.

Nine kinds of data (`KINDS`), five data sets each. The truth is pooled from independent bridges from the prior, with many
particles and temperatures, until its standard error is 0.1; it knows nothing of proposals, pilots or replicates. An answer that
says it converged is wrong if its log marginal likelihood is off by more than four standard errors (and by more than 0.1), or a
split by more than 0.05 and what chance explains.

    python verification/hostile.py                 # all; adds to hostile.jsonl beside this file, and leaves out what is there
    python verification/hostile.py --only islands  # one kind
    python verification/hostile.py --table         # the table alone
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.models.priors import length_prior
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.posterior import agreement, bridge, results, states
from vaiphy.posterior.particles import Moves
from vaiphy.posterior.proposal import prior_proposal
from vaiphy.posterior.settings import Settings, tuned_to
from vaiphy.target import Target, target_of
from vaiphy.weights import log_sum_exp

HERE = Path(__file__).parent
RESULTS = HERE / "hostile.jsonl"
Sites = NDArray[np.uint8]
Floats = NDArray[np.float64]
A, C, MISSING = 1, 2, 15
#: Of the truth: particles of each bridge, the standard error that ends it, and the number of bridges at least and at most.
PARTICLES, ACCURACY, LEAST, MOST = 512, 0.1, 8, 24


def simulated(n: int, sites: int, rng: np.random.Generator, rate: float = 10.0) -> Sites:
    """An alignment from a random tree with lengths of mean 1 / rate."""
    return random_alignment(random_tree(taxon_names(n), rng, rate), sites, rng).sites


def islands(n: int, rng: np.random.Generator) -> Sites:
    """E(k, 3, 3), with k pairs (a_i, b_i): three sites split all a from all b, three mark each pair; constant up to 200."""
    k = n // 2
    sites = np.full((2 * k, 200), A, dtype=np.uint8)
    sites[k:, :3] = C
    for i in range(k):
        sites[[i, k + i], 3 + 3 * i : 6 + 3 * i] = C
    return sites


def two_trees(n: int, rng: np.random.Generator) -> Sites:
    """Half of the sites from one tree, half from another."""
    return np.concatenate([simulated(n, 100, rng), simulated(n, 100, rng)], axis=1)


def terraces(n: int, rng: np.random.Generator) -> Sites:
    """Two genes, each missing from another third of the taxa."""
    sites = simulated(n, 200, rng).copy()
    sites[::3, :100] = MISSING
    sites[1::3, 100:] = MISSING
    return sites


def rogues(n: int, rng: np.random.Generator) -> Sites:
    """Three taxa of which ten sites are known."""
    sites = simulated(n, 300, rng).copy()
    sites[1:4, 10:] = MISSING
    return sites


def identical(n: int, rng: np.random.Generator) -> Sites:
    """Four kinds of sequences, each several times."""
    return simulated(4, 200, rng)[np.arange(n) % 4]


def five_sites(n: int, rng: np.random.Generator) -> Sites:
    return simulated(n, 5, rng)


def saturated(n: int, rng: np.random.Generator) -> Sites:
    return simulated(n, 200, rng, rate=0.8)


def near_star(n: int, rng: np.random.Generator) -> Sites:
    """Hardly any changes, on inner branches least of all."""
    return simulated(n, 300, rng, rate=400.0)


def usual(n: int, rng: np.random.Generator) -> Sites:
    return simulated(n, 200, rng)


#: Data, numbers of taxa, and rates of the exponential prior of lengths.
KINDS: dict[str, tuple[Callable[[int, np.random.Generator], Sites], tuple[int, ...], tuple[float, ...]]] = {
    "islands": (islands, (12, 16, 18, 20, 24), (10.0,)),
    "two trees": (two_trees, (8, 12, 16, 24, 40), (10.0,)),
    "terraces": (terraces, (9, 12, 18, 24, 36), (10.0,)),
    "rogue taxa": (rogues, (8, 12, 16, 24, 40), (10.0,)),
    "identical sequences": (identical, (8, 12, 16, 24, 32), (10.0,)),
    "five sites": (five_sites, (8, 10, 12, 16, 20), (10.0,)),
    "saturated": (saturated, (8, 12, 16, 20, 24), (10.0,)),
    "near star": (near_star, (8, 12, 16, 24, 40), (10.0,)),
    "priors": (usual, (10,), (0.5, 2.0, 50.0, 200.0, 1000.0)),
}


def cases(only: str | None) -> Iterator[tuple[str, int, float]]:
    """All data sets, the small ones of every kind first."""
    every = [(rank, kind, n, rate) for kind, (_, sizes, rates) in KINDS.items() for rank, (n, rate) in enumerate(
        (n, rate) for n in sizes for rate in rates)]  # fmt: skip
    for _, kind, n, rate in sorted(every, key=lambda case: case[0]):
        if only in (None, kind):
            yield kind, n, rate


def data_of(kind: str, n: int) -> SitePatterns:
    rng = np.random.default_rng([2026, list(KINDS).index(kind), n])
    return compress(Alignment(taxon_names(n), KINDS[kind][0](n, rng)))


def truth(target: Target) -> dict[str, Any]:
    """Bridges from the prior until their pooled evidence is known well enough."""
    proposal, moves = prior_proposal(target), Moves(regrafts=2)
    estimates: list[float] = []
    splits: list[agreement.SplitFrequencies] = []
    while len(estimates) < MOST:
        now = bridge.initialise(proposal, PARTICLES, (99, len(estimates)))
        while not now.done:
            now = bridge.step(now, proposal, moves, 0.9)
        estimates.append(now.estimate)
        splits.append(agreement.frequencies([now.particles], now.log_weights))
        values = np.array(estimates)
        pooled = log_sum_exp(values) - float(np.log(len(values)))
        error = float(np.std(np.exp(values - pooled), ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.inf
        if len(values) >= LEAST and error <= ACCURACY:
            break
    return {"log_evidence": pooled, "std_error": error, "estimates": estimates, "splits": splits}


def compared(kind: str, n: int, rate: float, seed: int, threads: int) -> dict[str, Any]:
    """One data set: our answer, the truth, and how they differ."""
    target = target_of(data_of(kind, n), "JC", length_prior(f"exp({rate:g})"))
    begin = time.process_time()
    state = states.initialise(target, tuned_to(target, Settings()), seed)
    while not state.done:
        state = states.step(state, threads)
    ours, cpu = results.result(state), time.process_time() - begin
    assert state.drawing is not None
    begin = time.process_time()
    exact = truth(target)
    n_own = len(state.drawing.drawn)
    together = agreement.supports(
        [*(one.splits for one in state.drawing.drawn), *exact["splits"]],
        np.concatenate([state.drawing.log_estimates, np.array(exact["estimates"])]),
    )
    one, other = (_pooled(together.frequencies[part], together.share[part]) for part in (slice(n_own), slice(n_own, None)))
    apart = np.abs(one[0] - other[0])
    return {
        "kind": kind, "taxa": n, "rate": rate, "seed": seed, "log_evidence": ours.log_evidence, "std_error": ours.std_error,
        "converged": ours.converged, "cpu": cpu, "truth": exact["log_evidence"], "truth_error": exact["std_error"],
        "truth_cpu": time.process_time() - begin, "split": float(apart.max(initial=0.0)),
        "split_beyond_chance": float((apart - 4.0 * np.hypot(one[1], other[1])).max(initial=0.0)),
    }  # fmt: skip


def _pooled(frequencies: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Frequencies of splits by several bridges together, and their standard errors by the scatter of these."""
    share = share / share.sum()
    mean = share @ frequencies
    return mean, np.sqrt(np.square(share[:, None] * (frequencies - mean)).sum(axis=0) * len(share) / max(len(share) - 1, 1))


def verdict(row: dict[str, Any]) -> str:
    error = np.hypot(row["std_error"], row["truth_error"])
    known = row["truth_error"] <= ACCURACY
    off = abs(row["log_evidence"] - row["truth"]) > max(4.0 * error, 0.1) or row["split_beyond_chance"] > 0.05
    if not known:
        return "truth not known"
    return ("wrong" if off else "right") + ("" if row["converged"] else ", and says that it did not converge")


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| data | taxa | prior | log marginal likelihood | truth | largest difference of a split | CPU s | answer |"]
    lines += ["| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |"]
    for row in sorted(rows, key=lambda row: (list(KINDS).index(row["kind"]), row["taxa"], row["rate"])):
        ours, exact = f"{row['log_evidence']:.2f} ± {row['std_error']:.2f}", f"{row['truth']:.2f} ± {row['truth_error']:.2f}"
        cells = (row["kind"], row["taxa"], f"exp({row['rate']:g})", ours, exact, f"{row['split']:.3f}", f"{row['cpu']:.0f}")
        lines.append("| " + " | ".join(str(cell) for cell in cells) + f" | {verdict(row)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(KINDS), help="one kind of data")
    parser.add_argument("--table", action="store_true", help="print the table of what has been run")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    rows = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
    done = {(row["kind"], row["taxa"], row["rate"]) for row in rows}
    for case in cases(given.only) if not given.table else ():
        if case in done:
            continue
        row = compared(*case, 1, given.threads)
        rows.append(row)
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{case[0]}, {case[1]} taxa, exp({case[2]:g}): {verdict(row)}", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
