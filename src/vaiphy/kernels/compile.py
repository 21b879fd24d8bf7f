"""How kernels are compiled: the one place where Numba's options are set.

Every kernel releases the GIL, so callers parallelise by running chunks of trees or particles in plain threads
(`vaiphy.parallel`), and is cached on disk, so only the first start on a machine compiles.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding as llvm

# A merge of two partials reads eight rows and writes four; LLVM gives up vectorising when the run-time checks that
# they do not overlap exceed a threshold of eight, where a C compiler goes on. This lets it go on too.
llvm.set_option("vaiphy", "-runtime-memory-check-threshold=256")
llvm.set_option("vaiphy", "-memory-check-merge-threshold=1000")

# Reordering and contraction only: nothing here lets the compiler assume away NaN or infinity.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy", "boundscheck": False}
HERE = Path(__file__).parent


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with the house options; `function.py_func` stays available as the plain-Python oracle."""
    try:
        compiled = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # no directory to keep compiled code in can be written: compile at every start
        return numba.njit(**OPTIONS)(function)
    # Numba compiles again when the file of a kernel has changed, but not when one has that its helpers come from.
    with suppress(AttributeError, OSError):
        index = compiled._cache._cache_file
        index._source_stamp = (index._source_stamp, source_hash(Path(function.__code__.co_filename)))
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that is only called from other kernels."""
    return numba.njit(**OPTIONS)(function)


@cache
def source_hash(path: Path) -> str:
    """Hash of a module of kernels and of all modules of kernels that it imports from, directly or not."""
    text = path.read_text(encoding="utf-8")
    needed = sorted(set(re.findall(r"^from vaiphy\.kernels\.(\w+) import", text, re.MULTILINE)))
    return sha256("\0".join([text, *(source_hash(HERE / f"{name}.py") for name in needed)]).encode()).hexdigest()
