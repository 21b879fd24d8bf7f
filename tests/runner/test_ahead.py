"""The helper that compiles ahead of a run: started only where it helps, gone when the run is, and never needed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from click.testing import CliRunner

import vaiphy
from vaiphy import cli
from vaiphy.alignment import compress
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.runner import ahead, helper
from vaiphy.target import target_of


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    return random_alignment(random_tree(taxon_names(4), rng), 30, rng)


@pytest.fixture
def started(monkeypatch):
    """Helpers started, as (model, process); they sleep instead of compiling."""
    processes = []

    def start(model):
        processes.append((model, one := pretended("import time; time.sleep(60)")))
        return helper.Helper(model, one, TemporaryDirectory())

    monkeypatch.setattr(helper, "start", start)
    yield processes
    helper.taken()


def pretended(code):
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)


@pytest.mark.parametrize(("model", "tiny"), [("JC", "JC"), ("F81", "JC"), ("HKY+G2", "GTR+G4")])
def test_a_helper_for_the_models_family_that_ends_with_the_run(data, started, monkeypatch, model, tiny):
    monkeypatch.setattr(ahead, "is_compiled", lambda kernel, word: False)
    with suppress(KeyboardInterrupt), ahead.compiled_ahead(target_of(compress(data), model), 2):
        assert started[0][1].poll() is None
        raise KeyboardInterrupt
    ((asked, process),) = started
    assert asked == tiny
    assert process.returncode is not None


@pytest.mark.parametrize(("known", "threads"), [(True, 2), (None, 2), (False, 1)])
def test_no_helper_where_it_would_not_help(data, started, monkeypatch, known, threads):
    """Everything is compiled, nothing can be kept, or there is one thread alone."""
    monkeypatch.setattr(ahead, "is_compiled", lambda kernel, word: known)
    with ahead.compiled_ahead(target_of(compress(data), "JC"), threads):
        assert not started


@pytest.mark.parametrize(
    ("model", "tiny"), [("jc", "JC"), ("F81+I{0.2}", "JC"), ("Mk+ASC", "JC"), ("HKY+G2", "GTR+G4"), (None, "GTR+G4")]
)
def test_started_from_the_arguments_alone_and_taken_over(started, monkeypatch, model, tiny):
    monkeypatch.setattr(helper, "is_anything_compiled", lambda: False)
    helper.start_early(model, 1)
    assert not started
    helper.start_early(model, 2)
    ((asked, process),) = started
    assert asked == tiny
    begun = helper.taken(tiny)
    assert begun.process is process
    assert process.poll() is None
    begun.stop()
    assert helper.taken(tiny) is None


def test_one_of_the_wrong_family_gives_way_to_the_right_one(data, started, monkeypatch):
    """Data without a model are mostly, but not always, nucleotides."""
    monkeypatch.setattr(helper, "is_anything_compiled", lambda: False)
    monkeypatch.setattr(ahead, "is_compiled", lambda kernel, word: False)
    helper.start_early(None, 2)
    with ahead.compiled_ahead(target_of(compress(data), "JC"), 2):
        (_, wrong), (asked, right) = started
        assert wrong.poll() is not None
        assert right.poll() is None
        assert asked == "JC"


@pytest.mark.parametrize("inner", ["sweep.move_all-28.py311.nbi", "somewhere_123/sweep.move_all-28.py311.nbi"])
def test_no_early_helper_where_there_is_a_cache(tmp_path, started, monkeypatch, inner):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not helper.is_anything_compiled()
    (tmp_path / inner).parent.mkdir(exist_ok=True)
    (tmp_path / inner).touch()
    assert helper.is_anything_compiled()
    helper.start_early("JC", 2)
    assert not started


def test_a_command_that_fails_leaves_no_helper(tmp_path, started, monkeypatch):
    monkeypatch.setattr(helper, "is_anything_compiled", lambda: False)
    done = CliRunner().invoke(cli.main, ["run", str(tmp_path / "missing.fasta"), "-T", "2"])
    assert done.exit_code != 0
    ((_, process),) = started
    assert process.poll() is not None


def test_a_run_does_without_a_helper_that_fails(data, monkeypatch):
    monkeypatch.setattr(ahead, "is_compiled", lambda kernel, word: False)
    arguments = {"seed": 1, "threads": 2, "replicates": 2, "accuracy": 1.0, "model": "JC"}
    failed = []

    def fail(model):
        failed.append(helper.Helper(model, pretended("raise SystemExit(1)"), TemporaryDirectory()))
        return failed[-1]

    monkeypatch.setattr(helper, "start", fail)
    one = vaiphy.run(data, **arguments)
    monkeypatch.setattr(helper, "start", lambda model: None)
    assert failed
    assert vaiphy.run(data, **arguments).log_evidence == one.log_evidence


def test_a_helper_ends_when_its_run_is_killed(tmp_path):
    """The pipe to it is closed by the system."""
    code = (
        "import time; from vaiphy.runner import helper\n"
        "begun = helper.start('JC'); print(begun.process.pid, flush=True)\ntime.sleep(60)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as run:
        helper = int(run.stdout.readline())
        time.sleep(0.5)
        assert list(tmp_path.glob("vaiphy-*"))
        run.kill()
    until = time.monotonic() + 60
    while exists(helper) and time.monotonic() < until:
        time.sleep(0.1)
    ended = not exists(helper)
    with suppress(ProcessLookupError):
        os.kill(helper, signal.SIGKILL)
    assert ended
    assert not list(tmp_path.glob("vaiphy-*"))


def exists(pid):
    """Whether a process is there and at work; who inherits it may take its time to bury it."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
