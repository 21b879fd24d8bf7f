"""Work over threads: all of it, in order, errors included, also from within itself."""

import threading
import time

import pytest

from vaiphy.parallel import map_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_items(threads):
    assert map_threads(lambda x: x * x, range(100), threads) == [x * x for x in range(100)]
    assert map_threads(lambda x: x, [], threads) == []


def test_work_is_shared():
    """Two items that wait for each other finish only if two threads work."""
    meeting = threading.Barrier(2, timeout=10.0)
    assert len(map_threads(lambda _: meeting.wait(), range(2), 2)) == 2


def test_an_error_reaches_the_caller_and_ends_the_rest():
    done = []

    def work(x):
        if x == 3:
            raise ValueError("three")
        time.sleep(1e-4)
        done.append(x)

    with pytest.raises(ValueError, match="three"):
        map_threads(work, range(10_000), 2)
    assert len(done) < 9_999
    assert map_threads(lambda x: x, range(4), 2) == [0, 1, 2, 3]


def test_work_may_itself_use_threads():
    """However deep: a busy helper is not waited for."""

    def depth(k):
        return sum(map_threads(lambda _: depth(k - 1), range(3), 2)) if k else 1

    assert depth(5) == 3**5
