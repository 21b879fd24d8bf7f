"""`--method csmc` and `phi-csmc` in steps: any saved state leads to the same outcome; the runs are those of `vaiphy.csmc`."""

from itertools import count

import numpy as np
import pytest
from reference.standin import NAMES, fasta

from vaiphy import csmc
from vaiphy.alignment import compress
from vaiphy.formats import parse_alignment
from vaiphy.methods import outcome
from vaiphy.methods.settings import Settings
from vaiphy.runner.steps import run_steps


@pytest.fixture
def patterns():
    return compress(parse_alignment(fasta(NAMES)))


@pytest.mark.parametrize("method", ["csmc", "phi-csmc"])
def test_any_saved_state_leads_to_the_same_outcome(patterns, method):
    settings = Settings(seed=5, method=method, replicates=3, particles=64)
    saved = []
    ticks = (3.0**k for k in count())
    whole = run_steps(patterns, settings, save=lambda state, times: saved.append(state), clock=ticks.__next__, threads=2)
    header, expected = outcome.to_arrays(whole.outcome)
    assert list(whole.outcome.estimates) == [method.replace("-", "_")]
    assert len(saved) == (3 if method == "csmc" else 6)
    for state in saved:
        again, found = outcome.to_arrays(run_steps(patterns, settings, state=state).outcome)
        assert str(again) == str(header)
        assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def test_the_guided_runs_agree_with_the_posterior_method(patterns):
    found = run_steps(patterns, Settings(seed=2, method="phi-csmc", particles=1024, replicates=4), threads=2).outcome
    exact = run_steps(patterns, Settings(seed=2, model="JC"), threads=2).outcome
    here, there = found.estimates["phi_csmc"], exact.estimates["posterior"]
    assert abs(here.log_evidence - there.log_evidence) < 4 * np.hypot(here.std_error, there.std_error) + 0.02
    assert found.sample.weights.sum() == pytest.approx(1)
    assert found.sample.n_samples == 4096


def test_a_replicate_is_a_run(patterns):
    settings = Settings(seed=3, method="csmc", particles=64, replicates=2)
    found = run_steps(patterns, settings).outcome
    rng = np.random.default_rng([3, 20, 3, 1])
    again = csmc.run(patterns, rng=rng, proposal="vanilla", n_particles=64)
    assert found.sample.of_replicate(1).n_samples == 64
    # The proposal's own stream is unused by "vanilla", so the run is the same.
    assert found.estimates["csmc"].runs[1] == again.log_evidence
