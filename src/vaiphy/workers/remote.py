"""What happens in a worker's process: a batch of pieces is unpacked, done and packed again; shared values are kept.

Arrays are pickled here rather than by the pool, so that they arrive as they were sent (writable, as compiled kernels expect
them) and so that every kind of pool carries the same bytes.
"""

import os
import pickle
import platform
import socket
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

#: Bytes of shared values that a worker keeps; those used last stay.
KEPT = 1 << 30


class Machine(NamedTuple):
    """What the last bits of a result depend on."""

    vaiphy: str
    python: str
    numpy: str
    numba: str
    processor: str


class Answer(NamedTuple):
    """What a worker sends back: packed results, or the keys of shared values that it does not have."""

    worker: str
    machine: Machine
    results: bytes
    missing: tuple[str, ...] = ()


def perform(task: Callable[..., Any], keys: tuple[str, ...], pieces: bytes, *packed: bytes | None) -> Answer:
    """Do a task for each of the packed `pieces`; `packed` are the shared values of those keys, None where not sent along."""
    found = [_shared(key, given) for key, given in zip(keys, packed)]
    missing = tuple(key for key, value in zip(keys, found) if value is None)
    if missing:
        return Answer(name(), machine(), b"", missing)
    values = [value for one in found if one is not None for value in one]
    results = [task(*values, *piece) for piece in pickle.loads(pieces)]
    return Answer(name(), machine(), pickle.dumps(results, protocol=5))


@cache
def machine() -> Machine:
    """This machine and what is installed on it."""
    import numba
    import numpy
    from llvmlite.binding import get_host_cpu_name

    from vaiphy import __version__

    processor = getattr(numba.config, "CPU_NAME", None) or get_host_cpu_name()
    return Machine(__version__, platform.python_version(), numpy.__version__, numba.__version__, processor)


def name() -> str:
    """This process, for people."""
    return f"{socket.gethostname()}, process {os.getpid()}"


_kept: OrderedDict[str, tuple[int, tuple[Any, ...]]] = OrderedDict()
_lock = Lock()


def _shared(key: str, packed: bytes | None) -> tuple[Any, ...] | None:
    """A shared value, unpacked once and kept; None if it is neither here nor sent along."""
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key][1]
        if packed is None:
            return None
        value: tuple[Any, ...] = pickle.loads(packed)
        _kept[key] = len(packed), value
        while len(_kept) > 1 and sum(size for size, _ in _kept.values()) > KEPT:
            _kept.popitem(last=False)
        return value
