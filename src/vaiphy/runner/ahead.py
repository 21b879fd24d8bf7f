"""A second process that compiles, on a machine where nothing is compiled yet, what a run will need later.

Numba compiles one kernel at a time in a process. So a helper begins with the largest kernel, while the run itself draws its first
trees with small ones, and then goes through a tiny analysis of the same kind; a kernel that one process compiles is waited for by
the other (`kernels.compile.Kernel`). The run needs nothing of the helper: if it fails, everything is compiled here.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import rmtree

import numpy as np

from vaiphy.alignment import compress
from vaiphy.kernels.compile import is_compiled
from vaiphy.kernels.sweep import move_all
from vaiphy.runner import helper
from vaiphy.target import Target, target_of


@contextmanager
def compiled_ahead(target: Target, threads: int) -> Iterator[None]:
    """While the context lasts, a helper compiles what an analysis of the target needs, if that is worth a process.

    It may have been started already, from what the command's arguments said (`runner.helper`).
    """
    family = type(target.family(target.draw_parameters(1, np.random.default_rng(1)))).__name__
    needed = threads > 1 and is_compiled(move_all, family) is False
    model = helper.MODELS[family]
    at_work = helper.taken(model if needed else None)
    if at_work is None and needed:
        at_work = helper.start(model)
    try:
        yield
    finally:
        if at_work is not None:
            at_work.stop()


def perform(model: str, folder: str) -> None:
    """What the helper does: moves of a tiny tree, and then an analysis with files in `folder`."""
    from vaiphy.models.simulate import random_alignment, random_tree, taxon_names
    from vaiphy.posterior.particles import Moves, Particles, moved
    from vaiphy.posterior.proposal import prior_proposal

    rng = np.random.default_rng(1)
    data = random_alignment(random_tree(taxon_names(5), rng), 100, rng, 0.1)
    target = target_of(compress(data), model)
    children, lengths = np.array([[[1, 2], [5, 3], [6, 4]]]), np.full((1, 8), 0.1)
    z, none = target.draw_parameters(1, rng), np.zeros(1)
    particles = Particles(children, lengths, np.array([7]), z, none, none[:, None])
    moved(prior_proposal(target), particles, 0.5, Moves(), (1,), 1)

    from vaiphy.runner.run import run  # which uses this module, and takes its time to load

    # Two threads, since some kernels are only called where work is divided; files, since summaries have kernels too.
    run(data, prefix=f"{folder}/tiny", seed=1, threads=2, replicates=2, n_trees=10, accuracy=1.0, model=model)


def _end_with_the_run(folder: str) -> None:
    """End this process when the one that started it has ended, however it did: nothing else holds the other end of the pipe."""
    sys.stdin.buffer.read()
    rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_the_run, args=sys.argv[2:], daemon=True).start()
    perform(*sys.argv[1:])
