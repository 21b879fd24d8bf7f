"""Is the posterior calibrated? Trees and alignments are drawn from the prior and the model, and analysed by `vaiphy.posterior`.

If the posterior is right, then over many data sets drawn from the prior (a) the true topology lies in the 95 % credible
set as often as the sets' reported probabilities say; (b) splits that are given the probability p are true with frequency
p; (c) the posterior level at which the truth is found, of the topology and of the tree length, is uniform. Errors of
exploration, of the laws and of the weights would all show.

    python verification/calibration.py            # 100 data sets; writes calibration.json and calibration.svg beside this file
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kstest

from vaiphy.alignment import compress
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.posterior import results, states
from vaiphy.posterior.settings import Settings
from vaiphy.summary.posterior import split_table, topology_table
from vaiphy.target import target_of
from vaiphy.trees.splits import from_sample
from vaiphy.trees.tree import Tree

HERE = Path(__file__).parent
LEVEL = 0.95
#: Half of the default replicates: 8 taxa are easy.
SETTINGS = Settings(replicates=2, max_bridges=10)
BINS = np.array([0.0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98, 1.0])


@dataclass(frozen=True)
class Outcome:
    """One data set: the 95 % credible set, at which posterior level the truth was found, and the splits' probabilities."""

    seed: int
    log_evidence: float
    std_error: float
    effective: float
    trusted: bool
    set_size: int
    set_mass: float
    inside: bool
    true_probability: float
    topology_level: float
    length_level: float
    split_probability: list[float]
    split_is_true: list[bool]


def analyse(seed: int, n_taxa: int, n_sites: int, settings: Settings, threads: int) -> Outcome:
    """Draw a tree and an alignment, sample the posterior, and compare."""
    rng = np.random.default_rng([2022, seed])
    truth = random_tree(taxon_names(n_taxa), rng)
    state = states.initialise(target_of(compress(random_alignment(truth, n_sites, rng)), "JC"), settings, seed)
    while not state.done:
        state = states.step(state, threads)
    found = results.result(state)
    sample = from_sample(found.sample)
    topologies = topology_table(sample)
    place = topologies.topologies.index(truth.topology) if truth.topology in topologies.topologies else len(topologies)
    size = topologies.credible_set(LEVEL)
    above = float(topologies.probability[:place].sum())
    here = float(topologies.probability[place]) if place < len(topologies) else 0.0
    total = found.sample.lengths[:, 1:].sum(axis=1)
    splits = split_table(sample)
    support = dict(zip(splits.splits[splits.n_trivial :], splits.support[splits.n_trivial :].tolist()))
    listed = sorted(support.keys() | truth.topology)
    return Outcome(
        seed,
        found.log_evidence,
        found.std_error,
        found.effective,
        found.converged,
        size,
        float(topologies.probability[:size].sum()),
        place < size,
        here,
        min(above + rng.random() * here, 1.0),  # topologies are discrete: a uniform point within the true one's share
        float(found.sample.weights[total < tree_length(truth)].sum()),
        [support.get(split, 0.0) for split in listed],
        [split in truth.topology for split in listed],
    )


def tree_length(tree: Tree) -> float:
    return float(np.delete(tree.length, tree.root).sum())


def summarise(outcomes: list[Outcome]) -> dict[str, object]:
    """Coverage, reliability of split probabilities by bins, and uniformity of levels."""
    mass = np.array([o.set_mass for o in outcomes])
    inside = sum(o.inside for o in outcomes)
    deviation = float(np.sqrt((mass * (1 - mass)).sum()))
    probability = [np.array(o.split_probability) for o in outcomes]
    is_true = [np.array(o.split_is_true, dtype=float) for o in outcomes]
    # Every tree has n - 3 splits, so probabilities and truths have the same sum in every data set; weighted by p they need not.
    slopes = np.array([(p * (t - p)).sum() for p, t in zip(probability, is_true)])
    return {
        "data_sets": len(outcomes),
        "inside": inside,
        "expected_inside": float(mass.sum()),
        "binomial_standard_deviation": deviation,
        "coverage_z": float((inside - mass.sum()) / deviation),
        "mean_set_size": float(np.mean([o.set_size for o in outcomes])),
        "trusted": sum(o.trusted for o in outcomes),
        "largest_std_error": max(o.std_error for o in outcomes),
        "smallest_effective": min(o.effective for o in outcomes),
        "mean_effective": float(np.mean([o.effective for o in outcomes])),
        "split_slope_z": float(slopes.mean() / (slopes.std(ddof=1) / np.sqrt(len(slopes)))),
        "split_bins": _bins(probability, is_true),
        "topology_level_p_value": float(kstest([o.topology_level for o in outcomes], "uniform").pvalue),
        "length_level_p_value": float(kstest([o.length_level for o in outcomes], "uniform").pvalue),
    }


def _bins(probability: list[NDArray], is_true: list[NDArray]) -> list[dict[str, float]]:
    """Mean probability and frequency of truth by bins; the standard error counts the splits of a data set as one observation."""
    rows = []
    for low, high in pairwise(BINS):
        chosen = [(p >= low) & ((p < high) | (high == 1.0)) for p in probability]
        n = sum(int(c.sum()) for c in chosen)
        if n == 0:
            continue
        excess = np.array([(t - p)[c].sum() for p, t, c in zip(probability, is_true, chosen)])
        expected = np.array([(p * (1 - p))[c].sum() for p, c in zip(probability, chosen)]).sum()
        rows.append(
            {
                "low": float(low),
                "high": float(high),
                "splits": n,
                "mean_probability": float(sum(p[c].sum() for p, c in zip(probability, chosen)) / n),
                "frequency_true": float(sum(t[c].sum() for t, c in zip(is_true, chosen)) / n),
                "standard_error": float(np.sqrt(max(expected, np.square(excess).sum())) / n),
            }
        )
    return rows


def plot(summary: dict[str, object], outcomes: list[Outcome], file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "vaiphy"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.0, 4.2), layout="constrained")
    rows = summary["split_bins"]
    assert isinstance(rows, list)
    x, y = [r["mean_probability"] for r in rows], [r["frequency_true"] for r in rows]
    left.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    left.errorbar(x, y, yerr=[2 * r["standard_error"] for r in rows], fmt="o", color="#1b6ca8", markersize=5, capsize=2)
    left.set(xlabel="posterior probability of a split", ylabel="frequency with which such splits are true", aspect="equal")
    left.set_title(f"splits of {summary['data_sets']} data sets, bars: 2 standard errors", fontsize=10)
    steps = np.arange(1, len(outcomes) + 1) / len(outcomes)
    right.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for name, label, colour in (("topology_level", "topology", "#1b6ca8"), ("length_level", "tree length", "#c8553d")):
        right.step(np.sort([getattr(o, name) for o in outcomes]), steps, where="post", label=label, color=colour, linewidth=1.3)
    right.set(
        xlabel="posterior level of the truth", ylabel="share of data sets at or below", aspect="equal", xlim=(0, 1), ylim=(0, 1)
    )
    right.set_title("levels of the truth (calibrated: on the diagonal)", fontsize=10)
    right.legend(frameon=False)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-sets", type=int, default=100)
    parser.add_argument("--taxa", type=int, default=8)
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=HERE)
    options = parser.parse_args()
    settings = SETTINGS
    started, outcomes = time.time(), []
    for seed in range(options.data_sets):
        outcomes.append(analyse(seed, options.taxa, options.sites, settings, options.threads))
        print(f"{seed + 1} of {options.data_sets}, {time.time() - started:.0f} s", end="\r", flush=True)
    summary = summarise(outcomes)
    rows = [{key: value for key, value in asdict(o).items() if not key.startswith("split_")} for o in outcomes]
    data = {"taxa": options.taxa, "sites": options.sites, "settings": asdict(settings), "summary": summary, "data_sets": rows}
    (options.folder / "calibration.json").write_text(json.dumps(data, indent=1) + "\n")
    plot(summary, outcomes, options.folder / "calibration.svg")
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
