"""Every method by the name that its cells carry."""

from collections.abc import Callable
from typing import Any

from benchmarks import growth, kernel, ours, peers, ratios, systems
from benchmarks.cells import Cell

METHODS: dict[str, Callable[[Cell], dict[str, Any]]] = {
    "against-c": kernel.kernel_against_c,
    "two-threads": kernel.two_threads,
    "optimisation": kernel.optimisation,
    "iqtree-evaluations": peers.evaluations,
    "mrbayes-generations": peers.generations,
    "ratios": ratios.ratios,
    "posterior": ours.posterior,
    "vaiphy": ours.vaiphy,
    "vaiphy-slantis": ours.vaiphy,
    "vaiphy-paper": ours.vaiphy,
    "vaiphy-accepted-only": ours.vaiphy,
    "vaiphy-all-columns": ours.vaiphy,
    "vaiphy-random-start": ours.vaiphy,
    "vaiphy-ensemble": ours.ensemble,
    "csmc-guided-unrooted": ours.combinatorial,
    "csmc-guided-rooted": ours.combinatorial,
    "csmc-paper-rooted": ours.combinatorial,
    "csmc-vanilla-rooted": ours.combinatorial,
    "resampling-vanilla": ours.resampling,
    "resampling-paper": ours.resampling,
    "resampling-pairwise": ours.resampling,
    "resampling-guided": ours.resampling,
    "resampling-guided-blind": ours.resampling,
    "csmc-authors": systems.authors,
    "authors-ablation": systems.ablation,
    "vcsmc": systems.vcsmc,
    "vncsmc": systems.vcsmc,
    "vbpi": systems.vbpi,
    "vbpi-nf": systems.vbpi,
    "vbpi-nf-jc": systems.vbpi,
    "vaiphy-mixture": systems.mixture,
    "bionj": ours.nearest_joining,
    "growth-likelihood": growth.likelihood,
    "growth-iteration": growth.iteration,
    "growth-particles": growth.particles,
    "growth-samples": growth.samples,
    "mrbayes-ss": peers.stepping_stone,
    "mrbayes-ss-default-prior": peers.stepping_stone,
    "mrbayes-mcmc": peers.mcmc,
    "iqtree": peers.iqtree,
    "long-runs": peers.long_runs,
}
