"""What spreading work costs, measured: bytes that travel, seconds a particle and sweep, stages on 1 to 4 workers.

    python tools/scaling.py constants 100 1000 GTR+G4      seconds and bytes for random data of that size
    python tools/scaling.py workers                        stages on 1 to 4 Dask workers, measured and predicted

For the latter, pieces of work sleep as long as real ones compute and carry as many bytes, so that four workers can be tried on
a machine with two cores. Times of computations are CPU seconds of one thread. docs/scaling.md has the figures.
"""

import pickle
import sys
import time
from math import ceil

import numpy as np

from vaiphy import compress, random_alignment, random_tree
from vaiphy.posterior.parameters import at_points, weigh_piece
from vaiphy.posterior.particles import PIECE, move_piece
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.target import target_of
from vaiphy.workers.cluster import DaskPool, connected
from vaiphy.workers.pool import BATCHES
from vaiphy.workers.spread import Shared


def constants(n_taxa: int, n_sites: int, model: str, n: int = 2) -> None:
    """Print seconds and bytes for n particles of random data."""
    rng = np.random.default_rng(1)
    tree = random_tree(tuple(f"t{i}" for i in range(n_taxa)), rng)
    target = target_of(compress(random_alignment(tree, n_sites, rng)), model)
    proposal = prior_proposal(target)
    children, lengths, tops, z = proposal.sample(n, [1])
    own = at_points(target.family(z if target.n_parameters else z[:1]), np.arange(n))
    shared = (*target.shared.value, *proposal.shared.value)
    piece = (0, *own, 0.5, 1, 1, 0.3, children, lengths, tops, (1, 2, 3))
    done = move_piece(*shared, *piece)  # compiles
    began = time.thread_time()
    move_piece(*shared, *piece)
    seconds = (time.thread_time() - began) / n
    weigh_piece(*target.shared.value, *own, children, lengths, tops)  # compiles
    began = time.thread_time()
    weigh_piece(*target.shared.value, *own, children, lengths, tops)
    weighing = (time.thread_time() - began) / n
    sent, back = (len(pickle.dumps([value], protocol=5)) / n for value in (piece, done))
    many = proposal.sample(512, [2])
    learned = fit(target, *many, np.full(512, 1 / 512))  # compiles, too
    began = time.thread_time()
    fit(target, *many, np.full(512, 1 / 512))
    fitting = time.thread_time() - began
    print(f"{n_taxa} taxa, {n_sites} sites, {target.n_patterns} patterns, {model}")
    print(f"  a sweep of a particle   {seconds:.4f} s  ({1e9 * seconds / n_taxa / target.n_patterns:.0f} ns a taxon and pattern)")
    print(f"  a likelihood            {weighing:.4f} s")
    print(f"  a particle              {sent:.0f} bytes there, {back:.0f} back")
    print(f"  the data, once          {len(target.shared.packed()) / 1e6:.2f} MB")
    print(f"  a proposal, once        {len(learned.shared.packed()) / 1e6:.2f} MB at most (512 particles that share nothing)")
    print(f"  fitting it              {fitting:.2f} s here, while the workers wait")


def asleep(ballast: bytes, seconds: float, size: int, values: np.ndarray) -> np.ndarray:
    """A piece that takes its time and sends back as much as a real one."""
    time.sleep(seconds)
    return np.zeros(size, dtype=np.uint8)


def workers(n_pieces: int = 64, seconds: float = 0.16, size: int = 8000, repeats: int = 5) -> None:
    """Print seconds of a stage of `n_pieces` pieces (here 20 ms a particle, 1 kB each way) on 1 to 4 workers."""
    shared = Shared((b"x" * 2_000_000,))
    pieces = [(seconds, size, np.zeros(size, dtype=np.uint8)) for _ in range(n_pieces)]
    empty = [(0.0, 8, np.zeros(8, dtype=np.uint8))]
    for n in (1, 2, 3, 4):
        with connected(f"local:{n}") as client:
            client.wait_for_workers(n)
            pool = DaskPool(client)
            pool.spread(asleep, (shared,), pieces[: 8 * n])
            trip = min(_seconds(pool, shared, empty) for _ in range(20))
            found = [_seconds(pool, shared, pieces) for _ in range(repeats)]
        batch = ceil(n_pieces / (BATCHES * n))
        rounds = ceil(ceil(n_pieces / batch) / n)
        predicted = rounds * batch * seconds + trip
        print(
            f"{n} workers: {min(found):.3f} s (median {np.median(found):.3f}); predicted {predicted:.3f}; a round trip {trip:.4f}"
        )


def _seconds(pool: DaskPool, shared: Shared, pieces: list) -> float:
    began = time.perf_counter()
    pool.spread(asleep, (shared,), pieces)
    return time.perf_counter() - began


if __name__ == "__main__":
    if sys.argv[1:2] == ["constants"]:
        constants(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], PIECE if len(sys.argv) < 6 else int(sys.argv[5]))
    elif sys.argv[1:] == ["workers"]:
        workers()
    else:
        sys.exit(__doc__)
