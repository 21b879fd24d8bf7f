"""The method vbpi: a saved state goes on as it would have, and without PyTorch one line says so."""

import numpy as np
import pytest
from click.testing import CliRunner
from reference.standin import NAMES, fasta

from vaiphy import cli
from vaiphy.alignment import compress
from vaiphy.errors import InputError
from vaiphy.formats import parse_alignment
from vaiphy.methods import NotYet, vbpi
from vaiphy.methods.settings import Settings
from vaiphy.runner.steps import run_steps


@pytest.fixture
def quick(monkeypatch):
    """Few samples, and chunks so short that there are several of each kind of step."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    for name, value in (("CHUNK", 4), ("N_SAMPLES", 50), ("REPEATS", 4), ("KEPT", 2), ("TREES_A_STEP", 40)):
        monkeypatch.setattr(vbpi, name, value)
    return compress(parse_alignment(fasta(NAMES[:5])))


def test_a_saved_state_leads_to_the_same_outcome(quick):
    settings = Settings(seed=1, method="vbpi", iterations=10, flow="realnvp")
    expected = run_steps(quick, settings).outcome
    method = vbpi.VbpiMethod()
    state = method.initialise(quick, settings)
    with pytest.raises(NotYet):
        method.outcome(state)
    while not method.is_done(state):
        state, progress = method.step(method.from_arrays(method.to_arrays(state), quick, settings), 1)
        assert 0.0 < progress.progress <= 1.0
    found = method.outcome(state)
    assert found.estimates == expected.estimates
    assert found.sample.log_weights.tobytes() == expected.sample.log_weights.tobytes()
    assert set(found.bounds) == {"LB-1", "LB-10"}
    assert found.bounds["LB-1"] < found.bounds["LB-10"]
    assert np.isfinite(found.sample.lengths).all()


def test_a_run_whose_time_is_up_ends_its_training(quick):
    settings = Settings(seed=1, method="vbpi", iterations=1000, flow="none")
    method = vbpi.VbpiMethod()
    state = method.initialise(quick, settings)
    with pytest.raises(NotYet):
        method.hurried(state)
    while state.iteration == 0:
        state, _ = method.step(state, 1)
    state, progress = method.step(method.hurried(state), 1)
    assert progress.stage == "samples"
    assert len(method.outcome(state).estimates["vbpi"].runs) == 1


def test_without_torch_one_line_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr("vaiphy.vbpi.find_spec", lambda name: None)
    path = tmp_path / "a.fasta"
    path.write_text(fasta(NAMES[:5]))
    done = CliRunner().invoke(cli.main, ["run", str(path), "--method", "vbpi"])
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == (
        "error: the method vbpi needs PyTorch, which is not installed; get it with: pip install 'vaiphy[vbpi]'"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"method": "csmc", "flow": "none"}, "--flow is for --method vbpi, not for csmc"),
        ({"method": "vbpi", "flow": "spline"}, "the flow is one of none, planar, realnvp, not spline"),
        ({"method": "vbpi", "proposal": "paper"}, "--proposal is for --method phi-csmc, not for vbpi"),
    ],
)
def test_options_of_other_methods_are_refused(given, said):
    with pytest.raises(InputError, match=said):
        Settings(seed=1, **given)
