"""A second process that compiles, on a machine where nothing is compiled yet, what a run will need later.

Numba compiles one kernel at a time in a process. So a helper begins with the largest kernel, while the run itself draws its first
trees with small ones, and then goes through a tiny analysis of the same kind; a kernel that one process compiles is waited for by
the other (`kernels.compile.Kernel`). The run needs nothing of the helper: if it fails, everything is compiled here.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from vaiphy.alignment import compress
from vaiphy.kernels.compile import is_compiled
from vaiphy.kernels.sweep import move_all
from vaiphy.target import Target, target_of

#: Models of the tiny analysis, one for each family of kernels.
MODELS = {"EqualInput": "JC", "Spectral": "GTR+G4"}


@contextmanager
def compiled_ahead(target: Target, threads: int) -> Iterator[None]:
    """While the context lasts, a helper compiles what an analysis of the target needs, if that is worth a process."""
    family = type(target.family(target.draw_parameters(1, np.random.default_rng(1)))).__name__
    if threads < 2 or is_compiled(move_all, family) is not False:
        yield
        return
    with TemporaryDirectory(prefix="vaiphy-", ignore_cleanup_errors=True) as folder:
        helper = _start(MODELS[family], folder)
        try:
            yield
        finally:
            if helper is not None:
                _stop(helper)


def _start(model: str, folder: str) -> "subprocess.Popen[bytes] | None":
    if not sys.executable:
        return None
    command = [sys.executable, "-m", "vaiphy.runner.ahead", model, folder]
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    nowhere = subprocess.DEVNULL
    with suppress(OSError):
        return subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere
        )
    return None


def _stop(helper: "subprocess.Popen[bytes]") -> None:
    helper.kill()
    helper.wait()
    if helper.stdin is not None:
        with suppress(OSError):
            helper.stdin.close()


def perform(model: str, folder: str) -> None:
    """What the helper does: moves of a tiny tree, and then an analysis with files in `folder`."""
    from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
    from vaiphy.posterior.particles import Moves, Particles, moved
    from vaiphy.posterior.proposal import prior_proposal
    from vaiphy.runner.run import run  # which uses this module

    rng = np.random.default_rng(1)
    data = random_alignment(random_tree(taxon_names(5), rng), 100, rng, 0.1)
    target = target_of(compress(data), model)
    children, lengths = np.array([[[1, 2], [5, 3], [6, 4]]]), np.full((1, 8), 0.1)
    z, none = target.draw_parameters(1, rng), np.zeros(1)
    particles = Particles(children, lengths, np.array([7]), z, none, none[:, None])
    moved(prior_proposal(target), particles, 0.5, Moves(), (1,), 1)
    # Two threads, since some kernels are only called where work is divided; files, since summaries have kernels too.
    run(data, prefix=f"{folder}/tiny", seed=1, threads=2, replicates=2, n_trees=10, accuracy=1.0, model=model)


def _end_with_the_run() -> None:
    """End this process when the one that started it has ended, however it did: nothing else holds the other end of the pipe."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    perform(*sys.argv[1:])
