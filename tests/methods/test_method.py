"""What all methods have in common: states are values, and a step leaves the one it was given as it was."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from reference.standin import NAMES, fasta

from vaiphy import csmc
from vaiphy.alignment import compress
from vaiphy.formats import parse_alignment
from vaiphy.methods import method_of, outcome
from vaiphy.methods.settings import Settings
from vaiphy.runner.steps import run_steps


@pytest.mark.parametrize("name", ["vaiphy", "csmc", "phi-csmc", "vbpi"])
def test_a_step_leaves_its_state_as_it_was(name):
    if name == "vbpi":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    patterns = compress(parse_alignment(fasta(NAMES[:5])))
    settings = Settings(seed=1, method=name, replicates=2, particles=32, iterations=12 if name == "vaiphy" else None)
    method = method_of(settings)
    state = method.initialise(patterns, settings)
    for _ in range(5):
        if method.is_done(state):
            break
        before = {key: np.array(array) for key, array in method.to_arrays(state).items()}
        after, _ = method.step(state, 1)
        again, _ = method.step(state, 1)
        assert {key: array.tobytes() for key, array in method.to_arrays(state).items()} == {
            key: array.tobytes() for key, array in before.items()
        }
        first, second = method.to_arrays(after), method.to_arrays(again)
        assert first.keys() == second.keys()
        assert all(first[key].tobytes() == second[key].tobytes() for key in first)
        assert any(key not in before or first[key].tobytes() != before[key].tobytes() for key in first)
        state = after


@pytest.mark.parametrize(("name", "some"), [("vaiphy", {"step_size": 1.0, "samples": 1000}), ("phi-csmc", asdict(csmc.Effort()))])
def test_a_result_records_what_it_was_tuned_by(name, some):
    patterns = compress(parse_alignment(fasta(NAMES[:5])))
    found = run_steps(patterns, Settings(seed=1, method=name, replicates=2, particles=32)).outcome
    assert some.items() <= found.tuning.items()
    header, arrays = outcome.to_arrays(found)
    again = outcome.from_arrays(patterns.taxa, json.loads(json.dumps(header)), arrays)
    assert again.tuning == json.loads(json.dumps(dict(found.tuning)))


def test_too_large_an_error_is_a_reason_and_an_unknown_one_too():
    assert outcome.accuracy_reason(0.05, 0.05) == ()
    assert outcome.accuracy_reason(0.79, 0.05) == (
        "the standard error of the log marginal likelihood is 0.790, above the 0.05 asked for",
    )
    assert len(outcome.accuracy_reason(float("nan"), 0.05)) == 1
