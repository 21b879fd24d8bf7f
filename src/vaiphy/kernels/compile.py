"""How kernels are compiled: the one place where Numba's options are set.

Every kernel releases the GIL, so callers parallelise by running chunks of trees or particles in plain threads
(`vaiphy.parallel`), and is cached on disk, so only the first start on a machine compiles.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding as llvm

# A merge of two partials reads eight rows and writes four; LLVM gives up vectorising when the run-time checks that
# they do not overlap exceed a threshold of eight, where a C compiler goes on. This lets it go on too.
llvm.set_option("vaiphy", "-runtime-memory-check-threshold=256")
llvm.set_option("vaiphy", "-memory-check-merge-threshold=1000")

# Reordering and contraction only: nothing here lets the compiler assume away NaN or infinity.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with the house options; `function.py_func` stays available as the plain-Python oracle."""
    return numba.njit(cache=True, nogil=True, fastmath=FASTMATH, error_model="numpy", boundscheck=False)(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that is only called from other kernels."""
    return numba.njit(nogil=True, fastmath=FASTMATH, error_model="numpy", boundscheck=False)(function)
