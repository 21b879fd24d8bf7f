"""The cache of compiled kernels: used when nothing has changed, left when a helper elsewhere has, done without if need be."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
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


def test_a_change_in_a_helper_of_another_file_compiles_its_kernels_again(tmp_path):
    package = tmp_path / "vaiphy" / "kernels"
    package.mkdir(parents=True)
    for name, text in {"../__init__": "", "__init__": "", "helper": HELPER.format(1), "middle": MIDDLE, "caller": CALLER}.items():
        (package / f"{name}.py").write_text(text)
    shutil.copy(KERNELS / "compile.py", package)

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


def test_kernels_import_from_each_other_in_the_one_way_that_is_followed():
    for path in sorted(KERNELS.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("vaiphy") for alias in node.names), path
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vaiphy"):
                assert node.module.startswith("vaiphy.kernels."), path
                assert node.col_offset == 0, path


def test_hashes_follow_imports():
    compiling.source_hash.cache_clear()
    hashes = {path.stem: compiling.source_hash(path) for path in KERNELS.glob("*.py")}
    assert len(set(hashes.values())) == len(hashes)
