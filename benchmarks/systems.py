"""The paper's other systems, each as one cell: phi-CSMC as its authors ran it, VCSMC, VBPI; and mixtures of VaiPhy."""

import time
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.cells import Absent, Cell
from benchmarks.ours import fitted, threads_of

#: What the ablation changes, one after another, on the way from the paper's description to the authors' program.
STEPS: dict[str, dict[str, Any]] = {
    "described": {"trees": "sampled", "weights": "likelihood", "resolved": False, "floor": 1e-4, "end": "two"},
    "counts": {"weights": "counts"},
    "one tree": {"trees": "one"},
    "binary": {"resolved": True},
    "floor 1e-10": {"floor": 1e-10},
    "three roots": {"end": "three"},
}


def authors(cell: Cell) -> dict[str, Any]:
    """phi-CSMC as its authors ran it; the values are without the bias, which stands beside them."""
    from vaiphy import csmc

    tiny, threads = cell.settings.get("tiny"), threads_of(cell)
    begin = time.perf_counter()
    found = csmc.estimate(
        data.patterns(cell.data),
        rng=np.random.default_rng([cell.seed, 5]),
        repeats=2 if tiny else cell.settings.get("repeats", 10),
        proposal="authors",
        fit=fitted(cell, threads),
        n_particles=16 if tiny else cell.settings.get("particles", 2048),
        threads=threads,
    )
    return {
        "values": found.log_evidences.tolist(),
        "bias": found.bias,
        "statement": found.statement,
        "wall_seconds": time.perf_counter() - begin,
    }


def ablation(cell: Cell) -> dict[str, Any]:
    """One difference after another between phi-CSMC as described and as run, and each taken back by itself at the end."""
    threads, patterns = threads_of(cell), data.patterns(cell.data)
    fit = fitted(cell, threads)
    values: dict[str, list[float]] = {}
    now: dict[str, Any] = {}
    for name, change in STEPS.items():
        now |= change
        values[name] = _runs(cell, patterns, fit, now, threads)
    for name in list(STEPS)[1:]:
        if name == "counts":
            continue  # of one tree they are the same
        back = {key: STEPS["described"][key] for key in STEPS[name]}
        values[f"all but {name}"] = _runs(cell, patterns, fit, now | back, threads)
    return {"by_step": values}


def _runs(cell: Cell, patterns: Any, fit: Any, options: dict[str, Any], threads: int) -> list[float]:
    """Log evidences of some runs with one variant of the proposal."""
    from vaiphy import csmc
    from vaiphy.csmc import authors as program
    from vaiphy.csmc.jc_mixture import mixture_lengths
    from vaiphy.csmc.proposals import Proposal
    from vaiphy.trees.augmented import AugmentedTrees

    tiny = cell.settings.get("tiny")
    rng = np.random.default_rng([cell.seed, 6])
    if options["trees"] == "one":
        tree = fit.most_probable_tree()
        trees = AugmentedTrees(tree.taxa, tree.parent[None].astype(np.int32), tree.length[None], np.zeros(1))
    else:
        trees = fit.sample_trees(20 if tiny else 3000, rng.spawn(1)[0], threads)
    merger, lengths = _merger(trees, patterns, options, threads), mixture_lengths(trees, fit.length_law)
    three = options["end"] == "three"
    found = csmc.estimate(
        patterns,
        rng=rng.spawn(1)[0],
        repeats=2 if tiny else cell.settings.get("repeats", 3),
        target="unrooted" if three else "rooted",
        proposal=program.JoinThree(merger, lengths) if three else Proposal(merger, lengths),
        n_particles=16 if tiny else cell.settings.get("particles", 2048),
        threads=threads,
    )
    return [float(value) for value in found.log_evidences]


def _merger(trees: Any, patterns: Any, options: dict[str, Any], threads: int) -> Any:
    """Mergers by the splits of the trees: resolved or not, weighted by likelihood or counted."""
    from vaiphy.alignment import fold_states
    from vaiphy.csmc.authors import resolved_clades
    from vaiphy.csmc.support import SupportMerger, support_merger
    from vaiphy.likelihood import log_likelihoods
    from vaiphy.weights import normalised

    log_weights = np.zeros(len(trees))
    if options["weights"] == "likelihood":
        log_weights = log_likelihoods(trees.parents, trees.lengths, fold_states(patterns), threads)
    if not options["resolved"]:
        return support_merger(trees, log_weights, floor=options["floor"])
    clades = [resolved_clades(trees.tree(t)) for t in range(len(trees))]
    weights = np.repeat(normalised(log_weights), [len(found) for found in clades])
    hashes, place = np.unique(np.concatenate(clades), return_inverse=True)
    return SupportMerger(hashes, np.bincount(place.ravel(), weights=weights).astype(np.float64), options["floor"])


def vbpi(cell: Cell) -> dict[str, Any]:
    """VBPI: bootstrap trees, training, lower bounds and the evidence; `flow`, `base`, `iterations` and rates are settings."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise Absent("PyTorch is not installed")
    from vaiphy.alignment import fold_states
    from vaiphy.summary.evidence import evidence_of
    from vaiphy.vbpi import estimates, support, training
    from vaiphy.vbpi.network import network_of
    from vaiphy.vbpi.settings import Settings

    asked = {k: v for k, v in cell.settings.items() if k in Settings.__dataclass_fields__}
    if cell.settings.get("tiny"):
        asked |= {"iterations": 3, "bootstraps": 3}
    options, patterns = Settings(**asked), fold_states(data.patterns(cell.data))
    begin = time.process_time()
    rng = np.random.default_rng([cell.seed, 7])
    trees = [support.bootstrap(patterns, options, stream) for stream in rng.spawn(options.bootstraps)]
    children, lengths = (np.array(column) for column in zip(*trees, support.best_tree(patterns, options)))
    found = support.fitted(patterns, children, lengths, options)
    network = network_of(found.trees, found.weights)
    state = training.initialise(network, found, patterns, options, rng.spawn(1)[0])
    middle = time.process_time()
    while state.iteration < options.iterations:
        size = min(250, options.iterations - state.iteration)
        state, _ = training.step(state, network, patterns, options, size, np.random.default_rng([cell.seed, 8, state.iteration]))
    end = time.process_time()
    repeats = 2 if cell.settings.get("tiny") else cell.settings.get("repeats", 100)
    streams = rng.spawn(repeats)
    weights = np.stack([estimates.sample(network, patterns, options, state.parameters, 1000, s).log_weights for s in streams])
    evidence = evidence_of(weights)
    return {
        "values": evidence.log_estimates.tolist(),
        **estimates.lower_bounds(weights.ravel()),
        "pareto_k": evidence.pareto_k,
        "ess": evidence.effective_sample_size,
        "iterations": options.iterations,
        "support_cpu_seconds": middle - begin,
        "cpu_seconds_an_iteration": (end - middle) / options.iterations,
        "n_topologies": len(found.trees),
        "parameters": len(state.parameters),
    }


def vcsmc(cell: Cell) -> dict[str, Any]:
    """VCSMC, or VNCSMC with `tries` for each pair: rates learned, then runs with fresh random numbers."""
    from vaiphy import csmc
    from vaiphy.csmc.nested import NestedProposal
    from vaiphy.csmc.vcsmc import Training, train

    tiny, patterns, threads = cell.settings.get("tiny"), data.patterns(cell.data), threads_of(cell)
    asked = {k: v for k, v in cell.settings.items() if k in ("epochs", "batch", "rate")}
    how = Training(**({"epochs": 1, "particles": 8} if tiny else asked))
    target = csmc.Target(cell.settings.get("target", "rooted"))
    rng = np.random.default_rng([cell.seed, 9])
    begin = time.process_time()
    learned = train(patterns, target, rng.spawn(1)[0], how, threads)
    middle = time.process_time()
    tries = cell.settings.get("tries", 0)
    found = csmc.estimate(
        patterns,
        rng=rng.spawn(1)[0],
        repeats=2 if tiny else cell.settings.get("repeats", 10),
        target=target.kind,
        proposal=NestedProposal(learned.rates, tries) if tries else learned.proposal,
        n_particles=16 if tiny else cell.settings.get("particles", 2048),
        resampling="multinomial",
        threshold=1.0,
        threads=threads,
    )
    return {
        "values": found.log_evidences.tolist(),
        "statement": found.statement,
        "training": learned.trace.tolist(),
        "best_epoch": learned.best_epoch,
        "training_cpu_seconds": middle - begin,
        "run_cpu_seconds": (time.process_time() - middle) / len(found.log_evidences),
    }


def mixture(cell: Cell) -> dict[str, Any]:
    """The mixture of VaiPhy fits that maximises the MISELBO, beside the best fit alone and the ensemble of all fits."""
    from vaiphy import vi
    from vaiphy.summary.evidence import miselbo

    patterns, threads, tiny = data.patterns(cell.data), threads_of(cell), cell.settings.get("tiny")
    components = 2 if tiny else cell.settings.get("components", 5)
    options: dict[str, Any] = {"iterations": 2} if tiny else {}
    streams = np.random.default_rng([cell.seed, 10]).spawn(components)
    fits = [
        vi.fit(patterns, initial="bootstrap" if k else "bionj", rng=stream, threads=threads, **options)
        for k, stream in enumerate(streams)
    ]
    best = max(fits, key=lambda fit: max(info.score for info in fit.trace))
    rivals = {
        "best alone": [best],
        "ensemble": vi.align(fits),
        "renamed": vi.renamed(best, components, np.random.default_rng([cell.seed, 11])),
    }
    n_samples, repeats = 10 if tiny else cell.settings.get("samples", 3000), cell.settings.get("repeats", 10)
    found = {
        name: miselbo(some, n_samples // len(some), repeats, rng=np.random.default_rng([cell.seed, 12]), threads=threads)
        for name, some in rivals.items()
    }
    return {
        "values": found["renamed"].log_estimates.tolist(),
        "by_mixture": {name: estimate.log_estimates.tolist() for name, estimate in found.items()},
        "elbos": [fit.elbo for fit in fits],
    }
