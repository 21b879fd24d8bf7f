"""What is said while kernels are compiled."""

import subprocess
import sys

import pytest

from vaiphy.kernels.announce import CompileWatch, announced

KERNEL = """
from vaiphy.kernels.announce import announced
from vaiphy.kernels.compile import inlined, kernel
def helper(x): return x + 1
def caller(x): return helper(x) * 2
helper.__module__ = caller.__module__ = "vaiphy.kernels.made_up"
helper = inlined(helper)
try:
    caller = kernel(caller)
except RuntimeError:
    raise SystemExit("no cache")
said = []
with announced(said.append, lambda now: said.append(str(now))) as watch:
    caller(1)
    caller(2)
print(*said, watch.n_compiled, watch.seconds > 0, sep="\\n")
"""


def test_each_kernel_is_told_once_with_its_number():
    said, shown = [], []
    watch = CompileWatch(said.append, shown.append, lambda: 7)
    for name in ("vaiphy.kernels.edges.sweep", "numba.np.arrayobj.impl", "vaiphy.kernels.edges.lift"):
        watch.on_start(name)
    for _ in range(3):
        watch.on_end()
    watch.on_start("vaiphy.kernels.edges.sweep")  # for other types
    watch.on_end()
    assert len(said) == 1
    assert [str(now) for now in shown] == ["kernel 1 of at most 7: edges.sweep", "kernel 2 of at most 7: edges.lift"]
    assert watch.n_compiled == 2
    assert watch.seconds > 0


def test_time_is_counted_once_for_kernels_within_kernels(monkeypatch):
    clock = iter([10.0, 14.0, 20.0, 21.0])
    monkeypatch.setattr("vaiphy.kernels.announce.time.perf_counter", lambda: next(clock))
    watch = CompileWatch(lambda line: None)
    watch.on_start("a")
    watch.on_start("b")
    watch.on_end()
    watch.on_end()
    watch.on_start("c")
    watch.on_end()
    assert watch.seconds == pytest.approx(5.0)


def test_numba_tells_what_it_compiles(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(KERNEL)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "compiling kernels (once on this machine) ...",
        "kernel 1 of at most 2: made_up.caller",
        "kernel 2 of at most 2: made_up.helper",
        "2",
        "True",
    ]


def test_nothing_is_said_when_nothing_is_compiled():
    said = []
    with announced(said.append) as watch:
        pass
    assert (said, watch.seconds, watch.n_compiled) == ([], 0.0, 0)
