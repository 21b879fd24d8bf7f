"""`import vaiphy` and `vaiphy --help` are quick: nothing heavy is loaded before it is needed."""

import os
import re
import subprocess
import sys
import time

import pytest

import vaiphy

HEAVY = ("numba", "scipy", "matplotlib", "jinja2", "rich", "numpy", "torch")
HELP = "from vaiphy.cli import main; main(['--help'], standalone_mode=False)"


def loaded(code):
    """Names of heavy packages in memory after running some code in a fresh Python."""
    end = f"; import sys; print('loaded:', *[name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code + end], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("code", ["import vaiphy", HELP])
def test_nothing_heavy(code):
    assert loaded(code) == []


def test_reading_needs_no_numba():
    code = "from vaiphy.formats import read_alignment; read_alignment('DS1')"
    assert set(loaded(code)) <= {"numpy"}


EARLY = """
import os, sys
class Watch:
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            print("threads:", os.environ.get("OPENBLAS_NUM_THREADS"))
sys.meta_path.insert(0, Watch())
from vaiphy.cli import main
main(["run", "--help"], standalone_mode=False)
import numpy
"""


def test_numpy_is_told_to_use_one_thread_before_it_is_loaded():
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=True, env=environment)
    assert re.findall("threads: (.*)", done.stdout) == ["1"]


def test_half_a_second():
    # The best of several: other work on the machine must not fail the test.
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", HELP], capture_output=True, check=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


def test_public_names_resolve():
    for name in vaiphy.__all__:
        assert getattr(vaiphy, name) is not None
    assert set(vaiphy.__all__) <= set(dir(vaiphy))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        vaiphy.nonsense  # noqa: B018
