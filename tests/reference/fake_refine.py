"""A stand-in for the science: a made-up posterior over a few topologies, in steps, exactly repeatable from its arrays.

Each step draws trees from a stream made of the seed and the step's number, as the real sampler does.
"""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from reference.random_trees import random_binary_tree

from vaiphy.treesample import TreeSample, binary_arrays

STEPS, PER_STEP, TOPOLOGIES = 10, 100, 12
SECONDS = 0.0  # how long a step takes


@dataclass(frozen=True)
class Settings:
    replicates: int = 4
    accuracy: float = 0.05
    prior_rate: float = 10.0


@dataclass(frozen=True)
class State:
    patterns: object
    settings: Settings
    seed: int
    count: int = 0
    topology: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    lengths: np.ndarray | None = None
    log_weights: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def done(self):
        return self.count >= STEPS

    @property
    def draws(self):
        n = len(self.log_weights)
        replicate = np.arange(n, dtype=np.int32) % self.settings.replicates
        return SimpleNamespace(log_ratio=self.log_weights, densities=np.zeros((n, self.settings.replicates)), replicate=replicate)

    def to_arrays(self):
        lengths = np.zeros((0, 2 * self.patterns.n_taxa - 2)) if self.lengths is None else self.lengths
        return {
            "seed": np.array(self.seed),
            "count": np.array(self.count),
            "topology": self.topology,
            "lengths": lengths,
            "log_weights": self.log_weights,
        }


def from_arrays(arrays, patterns, settings):
    return State(
        patterns,
        settings,
        int(arrays["seed"]),
        int(arrays["count"]),
        arrays["topology"],
        arrays["lengths"],
        arrays["log_weights"],
    )


def initialise(patterns, settings, seed):
    return State(patterns, settings, seed)


def _trees(state):
    """Topologies that share most of their splits: one random tree and rearrangements of it."""
    rng = np.random.default_rng([state.seed, 999])
    n = state.patterns.n_taxa
    base = binary_arrays(random_binary_tree(n, rng, state.patterns.taxa))[0]
    out = [base]
    while len(out) < TOPOLOGIES:
        children = base.copy()
        for _ in range(int(rng.integers(1, 3))):
            k = int(rng.integers(0, n - 2))
            b, a = sorted(children[k].tolist())
            if a >= n:  # exchange b with a child of its sister a: a nearest-neighbour interchange
                swapped = int(children[a - n, 0])
                children[a - n, 0], children[k] = b, (a, swapped)
        out.append(children)
    return np.array(out)


def step(state, threads=1):
    time.sleep(SECONDS)
    rng = np.random.default_rng([state.seed, state.count])
    n = state.patterns.n_taxa
    p = 0.6 ** np.arange(TOPOLOGIES)
    topology = rng.choice(TOPOLOGIES, size=PER_STEP, p=p / p.sum()).astype(np.int32)
    lengths = rng.gamma(4.0, 0.02, size=(PER_STEP, 2 * n - 2))
    before = np.zeros((0, 2 * n - 2)) if state.lengths is None else state.lengths
    state = State(
        state.patterns,
        state.settings,
        state.seed,
        state.count + 1,
        np.concatenate([state.topology, topology]),
        np.concatenate([before, lengths]),
        np.concatenate([state.log_weights, rng.normal(size=PER_STEP)]),
    )
    stage = "explore" if state.count < 3 else "adapt" if state.count < 6 else "sample"
    value = -1000.0 - 5.0 / state.count if state.count > 3 else np.nan
    return state, SimpleNamespace(
        stage=stage, progress=state.count / STEPS, log_evidence=value, std_error=0.04, message=f"step {state.count}"
    )


def result(state):
    if state.count < 6:
        raise RuntimeError("no final sample yet")
    log_weights = state.log_weights - np.logaddexp.reduce(state.log_weights)
    sample = TreeSample(state.patterns.taxa, _trees(state), state.topology, state.lengths, log_weights, state.draws.replicate)
    return SimpleNamespace(
        sample=sample,
        log_evidence=-1000.0 - 5.0 / state.count,
        std_error=0.04,
        replicate_log_evidence=np.full(state.settings.replicates, -1000.5),
        ess=sample.effective_size,
        pareto_k=0.41,
        asdsf=0.01,
        elbo=-1003.0,
        trust_ok=True,
        reasons=(),
        n_samples=sample.n_samples,
        trace=tuple((r, i, -1010.0 + i - r, 0.5) for i in range(9) for r in range(state.settings.replicates)),
    )


def hurried(state):
    """There is no quicker way: the search of the stand-in is a matter of steps."""
    return state
