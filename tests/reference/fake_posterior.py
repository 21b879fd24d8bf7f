"""A stand-in for `--method posterior`: a made-up posterior over a few topologies, in steps, exactly repeatable from its arrays.

Each step draws trees from a stream made of the seed and the step's number, as the real sampler does. Parameters are those of the
model that was asked for, drawn from their prior.
"""

import time
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
from reference.random_trees import random_binary_tree

from vaiphy.methods.method import NotYet
from vaiphy.methods.outcome import UNROOTED, Estimate, Outcome, Progress, Trace
from vaiphy.target import target_of
from vaiphy.trees.sample import TreeSample, binary_arrays

STEPS, PER_STEP, TOPOLOGIES = 10, 100, 12
SECONDS = 0.0  # how long a step takes


@dataclass(frozen=True)
class State:
    patterns: object
    settings: object
    seed: int
    count: int = 0
    topology: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    lengths: np.ndarray | None = None
    log_weights: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def done(self):
        return self.count >= STEPS

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
    return state, Progress(stage, state.count / STEPS, value, 0.04, f"step {state.count}")


def result(state):
    if state.count < 6:
        raise NotYet("no final sample yet")
    log_weights = state.log_weights - np.logaddexp.reduce(state.log_weights)
    replicate = np.arange(len(log_weights), dtype=np.int32) % state.settings.replicates
    sample = TreeSample(
        state.patterns.taxa, _trees(state), state.topology, state.lengths, log_weights, replicate, parameters=_parameters(state)
    )
    return SimpleNamespace(sample=sample, log_evidence=-1000.0 - 5.0 / state.count, std_error=0.04, trust_ok=True, reasons=())


def _parameters(state):
    """The columns that the real sampler hands over, in its order."""
    rng = np.random.default_rng([state.seed, 998])
    n = len(state.log_weights)
    target = target_of(state.patterns, state.settings.model_name)
    columns = {"LnL": rng.normal(-1000.0, 3.0, n), "LnPr": rng.normal(20.0, 2.0, n), "TL": state.lengths[:, 1:].sum(axis=1)}
    return columns | target.columns(target.draw_parameters(n, rng))


class FakeMethod:
    """The functions of this module as a method; they are looked up when called, so that tests can replace them."""

    def initialise(self, patterns, settings):
        return State(patterns, settings, settings.seed)

    def step(self, state, threads):
        return step(state, threads)

    def hurried(self, state):
        """There is no quicker way: the search of the stand-in is a matter of steps."""
        return state

    def is_done(self, state):
        return state.done

    def to_arrays(self, state):
        return state.to_arrays()

    def from_arrays(self, arrays, patterns, settings):
        return from_arrays(arrays, patterns, settings)

    def outcome(self, state):
        found = result(state)
        replicates = state.settings.replicates
        estimate = Estimate(
            found.log_evidence,
            found.std_error,
            UNROOTED,
            found.sample.n_samples,
            found.sample.effective_size,
            float("nan"),
            (-1000.5,) * replicates,
            (0.08,) * replicates,
        )
        trace = tuple(Trace(f"replicate {r + 1}", i, -1010.0 + i - r) for i in range(9) for r in range(replicates))
        return Outcome({"posterior": estimate}, found.trust_ok, found.reasons, found.sample, elbo=-1003.0, trace=trace)
