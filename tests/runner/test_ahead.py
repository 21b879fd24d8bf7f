"""The helper that compiles ahead of a run: started only where it helps, gone when the run is, and never needed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pytest

import vaiphy
from vaiphy.alignment import compress
from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
from vaiphy.runner import ahead
from vaiphy.target import target_of


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    return random_alignment(random_tree(taxon_names(4), rng), 30, rng)


@pytest.fixture
def started(monkeypatch):
    """Helpers started, as (model, process); they sleep instead of compiling."""
    processes = []

    def start(model, folder):
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.PIPE)
        processes.append((model, process))
        return process

    monkeypatch.setattr(ahead, "_start", start)
    return processes


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


def test_a_run_does_without_a_helper_that_fails(data, monkeypatch):
    monkeypatch.setattr(ahead, "is_compiled", lambda kernel, word: False)
    arguments = {"seed": 1, "threads": 2, "replicates": 2, "accuracy": 1.0, "model": "JC"}
    failed = []

    def fail(model, folder):
        failed.append(subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"], stdin=subprocess.PIPE))
        return failed[-1]

    monkeypatch.setattr(ahead, "_start", fail)
    one = vaiphy.run(data, **arguments)
    monkeypatch.setattr(ahead, "_start", lambda model, folder: None)
    assert failed
    assert vaiphy.run(data, **arguments).log_evidence == one.log_evidence


def test_a_helper_ends_when_its_run_is_killed(tmp_path):
    """The pipe to it is closed by the system."""
    code = (
        "import time; from vaiphy.runner import ahead\n"
        f"print(ahead._start('JC', {str(tmp_path)!r}).pid, flush=True)\ntime.sleep(60)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment) as run:
        helper = int(run.stdout.readline())
        time.sleep(0.5)
        run.kill()
    until = time.monotonic() + 60
    while exists(helper) and time.monotonic() < until:
        time.sleep(0.1)
    ended = not exists(helper)
    with suppress(ProcessLookupError):
        os.kill(helper, signal.SIGKILL)
    assert ended


def exists(pid):
    """Whether a process is there and at work; who inherits it may take its time to bury it."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
