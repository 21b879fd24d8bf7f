"""The cache of compiled kernels: used when nothing has changed, left when a helper elsewhere has, done without if need be."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import caching

from vaiphy.kernels import compile as compiling

KERNELS = Path(compiling.__file__).parent
IMPORT = "from vaiphy.kernels.{0} import {1}\n"
HELPER = IMPORT.format("compile", "inlined") + "@inlined\ndef helper(x):\n    return x + {}\n"
MIDDLE = (
    IMPORT.format("compile", "inlined") + IMPORT.format("helper", "helper") + "@inlined\ndef middle(x):\n    return helper(x)\n"
)
CALLER = (
    IMPORT.format("compile", "kernel") + IMPORT.format("middle", "middle") + "@kernel\ndef caller(x):\n    return middle(x)\n"
)


def copy_compiling(package):
    for name in ("compile.py", "compile_cost.py"):
        shutil.copy(KERNELS / name, package)


def test_a_change_in_a_helper_of_another_file_compiles_its_kernels_again(tmp_path):
    package = tmp_path / "vaiphy" / "kernels"
    package.mkdir(parents=True)
    for name, text in {"../__init__": "", "__init__": "", "helper": HELPER.format(1), "middle": MIDDLE, "caller": CALLER}.items():
        (package / f"{name}.py").write_text(text)
    copy_compiling(package)

    def run():
        code = "from vaiphy.kernels.caller import caller; print(caller(10), sum(caller.stats.cache_hits.values()))"
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return tuple(map(int, done.stdout.split()))

    assert run() == (11, 0)
    assert run() == (11, 1)
    (package / "helper.py").write_text(HELPER.format(2))
    assert run() == (12, 0)
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_without_a_place_for_the_cache_kernels_compile_anyway(monkeypatch):
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])

    def double(x):
        return 2 * x

    assert compiling.kernel(double)(np.float64(4.0)) == 8.0


def test_without_numbas_stamp_nothing_is_cached(monkeypatch):
    """If Numba renames what the cache is kept fresh by, kernels compile at every start: slow, never stale."""

    class Renamed(caching.IndexDataCacheFile):
        __slots__ = ("stamp",)

        def __init__(self, cache_path, filename_base, source_stamp):
            super().__init__(cache_path, filename_base, source_stamp)
            self.stamp = self.__dict__.pop("_source_stamp")

    monkeypatch.setattr(caching, "IndexDataCacheFile", Renamed)

    def triple(x):
        return 3 * x

    with pytest.raises(AttributeError):
        compiling.stamp_sources(numba.njit(cache=True)(triple))
    compiled = compiling.kernel(triple)
    assert compiled(np.float64(4.0)) == 12.0
    assert not compiled.stats.cache_path


def test_the_hash_covers_every_file_of_kernels(tmp_path, monkeypatch):
    for path in KERNELS.glob("*.py"):
        shutil.copy(path, tmp_path)
    monkeypatch.setattr(compiling, "HERE", tmp_path)
    whole = compiling.room_hash.__wrapped__
    seen = {whole()}
    for path in sorted(tmp_path.glob("*.py")):
        path.write_text(path.read_text() + "# edited\n")
        seen.add(whole())
    assert len(seen) == 1 + len(list(KERNELS.glob("*.py")))


def test_kernels_share_no_code():
    """A kernel's copies of helpers carry its name, so that none is taken for another's, whatever was loaded first."""

    @numba.njit(**compiling.OPTIONS)
    def vaiphy_helper(x, n):
        if n < 2:
            return x
        return np.sin(vaiphy_helper(x, n - 1)) + vaiphy_helper(x, n - 2)

    def vaiphy_kernel(x):
        return vaiphy_helper(x, 6) - vaiphy_helper(x - 1.0, 8)

    compiled = numba.njit(**compiling.OPTIONS)(vaiphy_kernel)
    compiled(1.0)
    text = compiled.inspect_llvm(compiled.signatures[0])
    copies = re.findall(r'define linkonce_odr [^@]*@"?([^"(]+)', text)
    # Also if LLVM has inlined all of them, their names are in the text.
    assert re.search(r'vaiphy_helper[^" ]*[.]vaiphy_kernel', text)
    assert all(name.endswith("vaiphy_kernel") or name.startswith("NRT_") for name in copies)


def test_kernels_count_no_references():
    """Numba leaves out what counts references to arrays that helpers borrow, as long as it knows the counters by their names."""

    @compiling.inlined
    def vaiphy_part(x, k):
        return x[k] if k < len(x) else 0.0

    def vaiphy_whole(x, y):
        total = 0.0
        for k in range(len(y)):
            total += vaiphy_part(x, y[k])
        return total

    compiled = numba.njit(**compiling.OPTIONS)(vaiphy_whole)
    assert compiled(np.arange(4.0), np.array([1, 3])) == 4.0
    text = compiled.inspect_llvm(compiled.signatures[0])
    body = re.search(r"^define[^\n]* @_ZN[^\n]*vaiphy_whole.*?^}", text, re.MULTILINE | re.DOTALL)
    assert body is not None
    assert "NRT_" not in body.group()


def test_helpers_have_no_machine_code_of_their_own():
    """Each would cost as much as a kernel; Python calls a copy."""

    @compiling.inlined
    def helper(x):
        return 2.0 * x

    @numba.njit(**compiling.OPTIONS)
    def caller(x):
        return helper(x) + 1.0

    assert caller(2.0) == 5.0
    (compiled,) = helper.overloads.values()
    assert compiled.library._compiled_object is None
    assert helper(2.0) == 4.0


SLOW = IMPORT.format("compile", "kernel") + "@kernel\ndef slow(x):\n    return x + 1\n"
WAITING = """
import sys, time
from numba.core import event
from vaiphy.kernels import compile as compiling
from vaiphy.kernels.slow import slow
compiling.PATIENCE = float(sys.argv[1])
waited = []
class Listener(event.Listener):
    def on_start(self, event): waited.append(True)
    def on_end(self, event): pass
event.register("vaiphy:wait", Listener())
print("ready", flush=True)
print(slow(1), sum(slow.stats.cache_hits.values()), len(waited), compiling.is_compiled(slow, "int64"))
"""


@pytest.mark.parametrize("patience", [60.0, 0.2])
def test_one_process_compiles_a_kernel_and_others_wait(tmp_path, monkeypatch, patience):
    """For a while: a process that holds on to a kernel stops nobody for good."""
    package = tmp_path / "vaiphy" / "kernels"
    package.mkdir(parents=True)
    for name, text in {"../__init__": "", "__init__": "", "slow": SLOW}.items():
        (package / f"{name}.py").write_text(text)
    copy_compiling(package)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    probe = "from vaiphy.kernels.slow import slow; print(slow._cache.cache_path)"
    folder = Path(subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True, text=True).stdout.strip())
    fcntl = pytest.importorskip("fcntl")
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "vaiphy.kernels.slow.slow.lock", "w") as held:
        assert compiling.taken(held, fcntl)
        command = [sys.executable, "-c", WAITING, str(patience)]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            if patience > 1.0:
                with pytest.raises(subprocess.TimeoutExpired):
                    process.wait(1.0)
                fcntl.flock(held, fcntl.LOCK_UN)
            assert process.stdout.read().split() == ["2", "0", "1", "True"]
    assert not list(folder.glob("*.lock"))
