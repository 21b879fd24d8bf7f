"""Three Dask workers at three addresses of a network of their own (namespaces): as on one machine, whatever befalls them.

VAIPHY_NETWORK_RUN replaces what is run, for larger data: VAIPHY_NETWORK_RUN="DS1 --seed 1" pytest tests/workers/test_network.py
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from vaiphy import random_alignment, random_tree, write_alignment

pytestmark = pytest.mark.slow

#: Names and addresses of the namespaces: where scheduler and run are, and one for each worker. Another test of this kind, at the
#: same time, has namespaces of its own; the addresses mean something in these alone.
OWN = f"vp{os.getpid()}"
HUB, WORKERS = (f"{OWN}hub", "10.77.0.1"), [(f"{OWN}w{i}", f"10.77.0.{10 + i}") for i in range(3)]
ADDRESS = f"tcp://{HUB[1]}:8786"
VAIPHY = [sys.executable, "-c", "from vaiphy.cli import main; main()"]
#: Seconds that a link is cut for.
CUT = 30


def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True)


def inside(name, *command):
    return ["ip", "netns", "exec", name, *command]


@pytest.fixture(scope="module")
def network():
    """A bridge with a cable to each worker's namespace."""
    pytest.importorskip("distributed")
    names = [HUB[0], *(name for name, _ in WORKERS)]
    try:
        for name in names:
            ip("netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as problem:
        remove(names)
        pytest.skip(f"network namespaces need root and iproute2: {problem}")
    try:
        ip("-n", HUB[0], "link", "add", "br0", "type", "bridge")
        ip("-n", HUB[0], "addr", "add", f"{HUB[1]}/24", "dev", "br0")
        for device in ("lo", "br0"):
            ip("-n", HUB[0], "link", "set", device, "up")
        for i, (name, address) in enumerate(WORKERS):
            ip("-n", HUB[0], "link", "add", f"cable{i}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("-n", HUB[0], "link", "set", f"cable{i}", "master", "br0", "up")
            ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                ip("-n", name, "link", "set", device, "up")
        yield
    finally:
        remove(names)


def remove(names):
    for name in names:
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            ip("netns", "delete", name)


@contextlib.contextmanager
def cluster(folder):
    """A scheduler and three workers; gives their processes, the scheduler's first."""
    dask = [sys.executable, "-m", "dask"]
    commands = [inside(HUB[0], *dask, "scheduler", "--host", HUB[1], "--no-dashboard")]
    for name, address in WORKERS:
        more = ("--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder / name))
        commands.append(inside(name, *dask, "worker", ADDRESS, "--host", address, *more))
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(open(folder / "dask.log", "a"))
        processes = [stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log)) for command in commands]
        stack.callback(lambda: [process.kill() for process in processes])
        yield processes


def start(data, prefix, *more, where=()):
    """A run of its own process."""
    words = shlex.split(os.environ.get("VAIPHY_NETWORK_RUN", "")) or [str(data), *SMALL]
    with open(f"{prefix}.screen", "w") as log:
        return subprocess.Popen([*where, *VAIPHY, "run", *words, "--prefix", str(prefix), *more], stdout=log, stderr=log)


SMALL = ("--model", "GTR+G4", "--seed", "3", "--replicates", "2", "--bridges", "2", "--particles", "128")


def wait_for(prefix, process, text, seconds=600):
    """Until the run has said something."""
    until = time.monotonic() + seconds
    while text not in screen(prefix):
        assert process.poll() is None, screen(prefix)
        assert time.monotonic() < until, screen(prefix)
        time.sleep(0.2)


def screen(prefix):
    return Path(f"{prefix}.screen").read_text()


def result(prefix):
    """What the run found, and its trees to the last digit."""
    found = json.loads(Path(f"{prefix}.json").read_text())
    files = [Path(f"{prefix}{suffix}").read_text() for suffix in (".trees.nwk", ".splits.tsv", ".run1.p", ".run2.t")]
    return [json.dumps(found["estimates"]), *files]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The folder, the data, and the result of one machine."""
    folder = tmp_path_factory.mktemp("network")
    rng = np.random.default_rng(1)
    tree = random_tree(tuple(f"t{i}" for i in range(14)), rng)
    data = folder / "small.fasta"
    data.write_text(write_alignment(random_alignment(tree, 800, rng)))
    process = start(data, folder / "alone", "-T", "1")
    assert process.wait() == 0, screen(folder / "alone")
    return folder, data, result(folder / "alone")


def nothing(processes):
    pass


def kill_one(processes):
    processes[2].send_signal(signal.SIGKILL)


def cut_one(processes):
    ip("-n", HUB[0], "link", "set", "cable0", "down")
    time.sleep(CUT)
    ip("-n", HUB[0], "link", "set", "cable0", "up")


@pytest.mark.parametrize("accident", [nothing, kill_one, cut_one], ids=lambda f: f.__name__)
def test_equal_to_one_machine(network, alone, accident):
    folder, data, expected = alone
    prefix = folder / accident.__name__
    with cluster(folder) as processes:
        process = start(data, prefix, "--cluster", ADDRESS, where=inside(HUB[0]))
        wait_for(prefix, process, "3 workers")
        accident(processes)
        assert process.wait() == 0, screen(prefix)
        if accident is kill_one:
            assert "2 workers" in screen(prefix)
    assert "warning: a worker" not in screen(prefix)  # alignments may have warnings of their own
    assert result(prefix) == expected


def test_a_lost_scheduler_leaves_the_checkpoint(network, alone):
    """One clear line; the same command, here without a cluster, goes on to the same end."""
    folder, data, expected = alone
    prefix = folder / "lost"
    with cluster(folder) as processes:
        process = start(data, prefix, "--cluster", ADDRESS, where=inside(HUB[0]))
        wait_for(prefix, process, "3 workers")
        time.sleep(3)
        for other in processes:
            other.kill()
        assert process.wait() == 1
    last = screen(prefix).strip().splitlines()[-1]
    assert last.startswith(f"error: the Dask scheduler at {ADDRESS} is lost; the same command"), screen(prefix)
    again = start(data, prefix, "-T", "1")
    assert again.wait() == 0
    assert "continuing from the checkpoint" in screen(prefix)
    assert result(prefix) == expected
