"""How kernels are compiled: the one place where Numba's options are set.

Every kernel releases the GIL, so callers parallelise by running chunks of trees or particles in plain threads
(`vaiphy.parallel`), and is cached on disk, so only the first start on a machine compiles.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numba
from llvmlite import binding as llvm
from llvmlite.binding import Linkage
from numba.core import event
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.typed_passes import NativeLowering

from vaiphy.kernels import compile_cost

# A merge of two partials reads eight rows and writes four; LLVM gives up vectorising when the run-time checks that
# they do not overlap exceed a threshold of eight, where a C compiler goes on. This lets it go on too.
llvm.set_option("vaiphy", "-runtime-memory-check-threshold=256")
llvm.set_option("vaiphy", "-memory-check-merge-threshold=1000")

# Reordering and contraction only: nothing here lets the compiler assume away NaN or infinity.
FASTMATH = {"reassoc", "contract", "arcp", "nsz"}
OPTIONS: dict[str, Any] = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy", "boundscheck": False}
HERE = Path(__file__).parent
#: Names of all kernels and helpers that have been loaded, compiled or not.
KNOWN: set[str] = set()
#: Seconds that a kernel is waited for that another process compiles.
PATIENCE = 300.0
_compiled: list[Any] = []
#: Names of kernels that this process is compiling.
_locked: set[str] = set()


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` with the house options; `function.py_func` stays available as the plain-Python oracle."""
    KNOWN.add(f"{function.__module__}.{function.__name__}")
    try:
        compiled = numba.njit(cache=True, **OPTIONS)(function)
        stamp_sources(compiled)
    except (RuntimeError, AttributeError, OSError):  # no cache, or none that can be trusted: compile at every start
        return numba.njit(**OPTIONS)(function)
    _compiled.append(compiled)
    compiled.__class__ = Kernel
    return compiled


class Kernel(CPUDispatcher):
    """A cached kernel, compiled by one process at a time: others that need it wait, and load what that one has compiled."""

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock, only_one(self), compile_cost.no_garbage():
            return super().compile(sig)


@contextmanager
def only_one(kernel: Any) -> Iterator[None]:
    """Holds a lock on the compilation of a kernel; the system releases it when the process ends, however it ends.

    Where there are no locks this does nothing, and after `PATIENCE` seconds nobody waits any longer: two processes then compile
    the same, which does no harm. Nor does it that the file is removed while others wait for it: they find the kernel compiled.
    """
    stream, name = None, f"{kernel.__module__}.{kernel.__name__}"
    if name in _locked:  # a kernel that calls itself, with other types
        yield
        return
    with suppress(OSError, AttributeError, ImportError):
        import fcntl  # not on every system

        folder = Path(kernel._cache.cache_path)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.lock"
        stream = open(path, "w")  # noqa: SIM115
        if not taken(stream, fcntl):
            with event.trigger_event("vaiphy:wait", data={"dispatcher": kernel}):
                until = time.monotonic() + PATIENCE
                while not taken(stream, fcntl) and time.monotonic() < until:
                    time.sleep(0.02)
    _locked.add(name)
    try:
        yield
    finally:
        _locked.discard(name)
        if stream is not None:
            with suppress(OSError):
                path.unlink(missing_ok=True)
                stream.close()


def taken(stream: IO[str], locks: Any) -> bool:
    """Lock an open file, if nobody else has."""
    try:
        locks.flock(stream, locks.LOCK_EX | locks.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_compiled(kernel: Any, word: str) -> bool | None:
    """Whether the disk holds a kernel compiled for types whose names have this word in them; None if it cannot be kept there."""
    try:
        return any(word in str(key[0]) for key in kernel._cache._cache_file._load_index())
    except (AttributeError, OSError, TypeError):
        return None


def keep_helpers_private() -> None:
    """Let every kernel run its own copies of the helpers that it calls.

    Numba links helpers into each kernel under public names, and of several copies a process uses the one that it met first:
    a kernel that was just compiled would round otherwise than the same kernel loaded from the cache, and the same seed give
    other last digits. Copies whose names carry the kernel's cannot be mixed up. Numba has no public way for this; where the
    names used here are gone, kernels work as before. Its counters of references keep their names: Numba knows by them which
    calls do nothing and can be left out, and these are atomic operations in every helper.
    """

    optimise = CPUCodeLibrary._optimize_final_module

    def is_copy(function: Any) -> bool:
        shared = not function.is_declaration and function.linkage == Linkage.linkonce_odr
        return shared and not function.name.startswith("NRT_")

    def private(library: Any) -> None:
        functions = list(library._final_module.functions)
        if any("vaiphy" in function.name for function in functions):
            for function in functions:
                if is_copy(function):
                    function.name = f"{function.name}.{library.name}"
        optimise(library)

    CPUCodeLibrary._optimize_final_module = private  # type: ignore[method-assign]


def stamp_sources(compiled: Any) -> None:
    """Let the cached code of a kernel hold only as long as no file of this room has changed.

    Numba compiles again when the file of a kernel has changed, but not when one has that its helpers come from. Its stamp has
    no public name; where the name is gone this raises AttributeError, rather than letting edited helpers run as they were.
    """
    index = compiled._cache._cache_file
    index._source_stamp = (index._source_stamp, room_hash())


def cache_folder() -> str | None:
    """Where compiled kernels are kept; None if they cannot be kept."""
    for compiled in _compiled:
        with suppress(AttributeError):
            return str(compiled._cache.cache_path)
    return None


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a helper that is only called from other kernels; that Python can call it too is for tests."""
    KNOWN.add(f"{function.__module__}.{function.__name__}")
    helper = numba.njit(**HELPER_OPTIONS)(function)
    if HELPER_OPTIONS is not OPTIONS:
        helper.__class__ = Helper
    return helper


class Helper(CPUDispatcher):
    """A helper has no machine code of its own: Python calls a copy that has."""

    def __call__(self, *args: Any) -> Any:
        return callable_copy(self.py_func)(*args)


@cache
def callable_copy(function: Callable[..., Any]) -> Callable[..., Any]:
    return numba.njit(**OPTIONS)(function)


@register_pass(mutates_CFG=True, analysis_only=False)
class HelperLowering(NativeLowering):
    """Makes a helper's code for the kernels that link it in, and neither optimises it nor makes machine code of it.

    Numba would do both for each helper, with all that it calls inlined, and again for each that calls it: most of the time that
    compiling took. The code of a kernel is optimised as a whole.
    """

    _name = "vaiphy_helper_lowering"

    def run_pass(self, state: Any) -> bool:
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().run_pass(state)
        library, lowered = state.library, state["cr"]
        for linked in dict.fromkeys(library._linking_libraries):
            if hasattr(library, "_reload_init"):  # since Numba 0.61
                library._reload_init.update(linked._reload_init)
            library._final_module.link_in(linked._get_module_for_linking(), preserve=True)
        library._finalize_dynamic_globals()
        library._finalized = True
        # Numba finds the helper by its entry point, which must be a built-in function; it is never called.
        entry = [].clear
        state.targetctx.insert_user_function(entry, lowered.fndesc, [library])
        if hasattr(library, "_reload_init"):
            state.reload_init.extend(library._reload_init)
        state["cr"] = lowered._replace(cfunc=entry)
        return True


class HelperCompiler(CompilerBase):
    """Numba's way of compiling, with a helper's last pass."""

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [(HelperLowering, text) if one is NativeLowering else (one, text) for one, text in pipeline.passes]
        pipeline.finalize()
        return [pipeline]


# Where Numba works otherwise inside by now, helpers are compiled as it does, which takes longer.
_as_known = all(hasattr(CPUCodeLibrary, name) for name in ("_get_module_for_linking", "_finalize_dynamic_globals"))
#: Options of helpers, also of those that Numba chooses by the types of what they are called with.
HELPER_OPTIONS: dict[str, Any] = {**OPTIONS, "pipeline_class": HelperCompiler} if _as_known else OPTIONS


@cache
def room_hash() -> str:
    """Hash of all files of kernels: which of them one kernel is made from need not be followed."""
    digest = sha256()
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


with suppress(AttributeError):
    keep_helpers_private()
compile_cost.spare()
