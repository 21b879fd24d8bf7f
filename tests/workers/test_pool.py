"""Work spread over processes: all of it, in order, shared values sent once; the sampler's results do not depend on it."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest
from reference.shapes import random_patterns
from reference.topologies import names
from workers import tasks

from vaiphy.errors import InputError
from vaiphy.posterior import states
from vaiphy.posterior.settings import Settings
from vaiphy.target import target_of
from vaiphy.workers import pool as pools
from vaiphy.workers import remote
from vaiphy.workers.cluster import pool_of
from vaiphy.workers.pool import ExecutorPool, difference
from vaiphy.workers.spread import LostWorkers, Shared, each, spread

SHARED = Shared((np.array(3.0), 0.5))
PIECES = [(np.full(4, float(i)),) for i in range(21)]
TINY = Settings(
    replicates=2, accuracy=0.001, min_effective=100, max_deviation=0.05, max_split_error=0.1,
    oversampling=3, learn_particles=16, most_settling=8,
    pilot_particles=16, min_particles=16, max_particles=24, max_bridges=2,
)  # fmt: skip


@pytest.fixture(scope="module")
def alone():
    """A tiny run on one thread, state by state, before there are other processes: they then load what it has compiled.

    The same kernel compiled twice, in processes that compile in another order, may differ in its last bits.
    """
    target = target_of(random_patterns(names(6), 8, np.random.default_rng(3)), "HKY+G2")
    states_ = [states.initialise(target, replace(TINY, kinds=("bootstrap", "prior")), 5)]
    while not states_[-1].done:
        states_.append(states.step(states_[-1]))
    return states_


@pytest.fixture(scope="module")
def processes(alone):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn"), initializer=sys.path.extend, initargs=(sys.path,)) as executor:
        yield executor


def test_results_come_in_the_order_of_the_pieces(processes):
    pool = ExecutorPool(processes)
    for task_pieces in (PIECES, PIECES[:1], []):
        found = spread(tasks.scaled, (SHARED,), task_pieces, pool)
        assert [x.tolist() for x in found] == [[3.0 * i + 0.5] * 4 for i in range(len(task_pieces))]
    assert pool.words() == "2 workers"


def test_shared_values_travel_once_to_each_worker(processes):
    pool, big = ExecutorPool(processes), Shared((np.ones(100_000), 0.0))
    for _ in range(5):
        spread(tasks.scaled, (big,), [(np.ones(100_000),)] * 4, pool)
    # Twice unasked, and at most once more to each of the four batches that may come to a worker without it.
    assert 2 * 800_000 < pool.traffic["shared"] < 6.1 * 800_000
    assert pool.traffic["batches"] == 20


def test_a_worker_without_a_value_asks_for_it():
    key = Shared((1.0, 2.0)).key
    assert remote.perform(tasks.scaled, (key,), b"", None).missing == (key,)


def test_kept_values_are_bounded(monkeypatch):
    monkeypatch.setattr(remote, "KEPT", 3_000)
    monkeypatch.setattr(remote, "_kept", type(remote._kept)())
    several = [Shared((np.full(100, float(i)),)) for i in range(5)]
    for one in several:
        remote._shared(one.key, one.packed())
    assert remote._shared(several[0].key, None) is None
    assert remote._shared(several[-1].key, None)[0][0] == 4.0
    assert len(remote._kept) < 5


def test_errors_of_the_work_reach_the_caller(processes):
    with pytest.raises(ArithmeticError, match="piece 0"):
        spread(tasks.failing, (SHARED,), PIECES, ExecutorPool(processes))


def test_a_pool_that_loses_a_process_ends_with_a_clear_line():
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=sys.path.extend, initargs=(sys.path,)) as executor,
        pytest.raises(LostWorkers, match="a worker process was lost"),
    ):
        spread(tasks.dying, (SHARED,), PIECES, ExecutorPool(executor))


def test_differences_are_named_once():
    other = remote.machine()._replace(numpy="1.0", processor="abacus")
    answer = remote.Answer("far, process 7", other, b"")
    text = difference(answer)
    assert text.startswith("a worker (far, process 7) has NumPy 1.0 (here ")
    assert "processor abacus (here " in text
    assert "Python" not in text
    said = []
    pool = ExecutorPool(None, said.append, 1)
    for one in (answer, answer, answer._replace(machine=remote.machine())):
        pool.meet(one)
    assert said == [f"warning: {text}"]


def test_what_is_no_executor_is_refused():
    with pytest.raises(InputError, match="must be a Dask Client or an executor"):
        pool_of(7)
    ours = ExecutorPool(None, workers=3)
    assert pool_of(ours) is ours


@pytest.mark.parametrize("workers", [1, 3])
def test_threads_see_the_same_values(workers):
    found = spread(tasks.scaled, (SHARED,), [(np.full(4, 2.0),) for _ in range(5)], workers)
    assert [x.tolist() for x in found] == [[6.5] * 4] * 5
    assert each(lambda x: x + 1, [1, 2, 3], workers) == [2, 3, 4]


def test_the_sampler_is_the_same_to_the_last_bit(alone, processes, monkeypatch):
    """Threads against two processes, and against another division into batches."""
    there = odd = alone[0]
    pool, uneven = pool_of(processes), ExecutorPool(processes, workers=5)
    for here in alone[1:]:
        there = states.step(there, pool)
        monkeypatch.setattr(pools, "BATCHES", 3)
        odd = states.step(odd, uneven)
        monkeypatch.undo()
        one = states.to_arrays(here)
        for other in (states.to_arrays(there), states.to_arrays(odd)):
            assert one.keys() == other.keys()
            assert [name for name in one if one[name].tobytes() != other[name].tobytes()] == []
    assert pool.traffic["batches"] > 20
