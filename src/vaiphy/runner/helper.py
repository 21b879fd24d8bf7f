"""The process that compiles ahead of a run (`runner.ahead`): started before anything heavy is loaded, taken over, or stopped.

A command knows from its arguments alone, and from names of files, that nothing is compiled yet and which kernels it will need;
loading NumPy and Numba and reading the alignment take as long again as the helper takes to get to work.
"""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

#: Models of the helper's tiny analysis, one for each family of kernels.
MODELS = {"EqualInput": "JC", "Spectral": "GTR+G4"}
#: First words of models of the first family. Others, and data without a model (mostly nucleotides), are of the second.
EQUAL_INPUT = {"JC", "JC69", "F81", "MK", "POISSON"}
#: What the largest kernel is called in a cache.
LARGEST = "sweep.move_all-*.nbi"


@dataclass(frozen=True, eq=False)
class Helper:
    """A process that compiles what the tiny analysis of a model needs."""

    model: str
    process: "subprocess.Popen[bytes]"
    folder: "TemporaryDirectory[str]"

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()
        self.folder.cleanup()


_begun: list[Helper] = []


def start(model: str) -> Helper | None:
    """A helper at work, if it can be started."""
    if not sys.executable:
        return None
    folder = TemporaryDirectory(prefix="vaiphy-", ignore_cleanup_errors=True)
    command = [sys.executable, "-m", "vaiphy.runner.ahead", model, folder.name]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    nowhere = subprocess.DEVNULL
    with suppress(OSError):
        environment = {**os.environ, "PYTHONPATH": path}
        return Helper(
            model, subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere), folder
        )
    folder.cleanup()
    return None


def start_early(model: str | None, threads: int) -> None:
    """Start a helper for a run that is about to begin, if nothing at all seems to be compiled yet; `taken` finds it."""
    if threads < 2 or _begun or is_anything_compiled():
        return
    word = (model or "").upper().partition("+")[0].partition("{")[0]
    helper = start(MODELS["EqualInput" if word in EQUAL_INPUT else "Spectral"])
    if helper is not None:
        _begun.append(helper)


def taken(model: str | None = None) -> Helper | None:
    """The helper started early, if it compiles what this model needs; one that does not is stopped."""
    helper = _begun.pop() if _begun else None
    if helper is not None and helper.model != model:
        helper.stop()
        return None
    return helper


def is_anything_compiled() -> bool:
    """Whether a cache of Numba's holds the largest kernel, for whatever family and whatever version of its source."""
    here = Path(__file__).parents[1] / "kernels" / "__pycache__"
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"
    given = os.environ.get("NUMBA_CACHE_DIR")
    places = [Path(given)] if given else [here, home]
    return any(found for place in places for pattern in (LARGEST, f"*/{LARGEST}") for found in place.glob(pattern))
