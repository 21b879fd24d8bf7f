"""A Dask cluster of two processes: the command gives the same files as threads do; what is wrong with an address is said."""

import json
import subprocess
import sys

import pytest

from vaiphy.errors import FailedError, InputError
from vaiphy.workers.cluster import connected

VAIPHY = [sys.executable, "-c", "from vaiphy.cli import main; main(prog_name='vaiphy')"]
ALIGNMENT = ">a\nACGTACGTAC\n>b\nACGTACGAAC\n>c\nACGAACGAAC\n>d\nTCGAACGATC\n>e\nTCGAACCATC\n"
RUN = ("five.fasta", "--model", "JC", "--seed", "2", "--replicates", "2", "--bridges", "2", "--particles", "16")


def vaiphy(folder, *words):
    return subprocess.run([*VAIPHY, *words], cwd=folder, capture_output=True, text=True, check=False)


def test_two_processes_give_the_files_of_one_thread(tmp_path):
    pytest.importorskip("distributed")
    (tmp_path / "five.fasta").write_text(ALIGNMENT)
    there = vaiphy(tmp_path, "run", *RUN, "--prefix", "there", "--cluster", "local:2")
    assert there.returncode == 0, there.stderr
    assert "2 workers" in there.stderr
    assert "warning" not in there.stderr
    here = vaiphy(tmp_path, "run", *RUN, "--prefix", "here", "--threads", "1")
    assert here.returncode == 0, here.stderr
    for suffix in (".trees.nwk", ".run1.p", ".run2.t", ".splits.tsv", ".con.tre"):
        assert (tmp_path / f"here{suffix}").read_bytes() == (tmp_path / f"there{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("address", "problem", "text"),
    [
        ("local:0", InputError, "a number of processes, as in local:4"),
        ("local:many", InputError, "a number of processes, as in local:4"),
        ("nonsense://there", InputError, "an address looks like tcp://host:8786 or local:4"),
        ("tcp://127.0.0.1:9", FailedError, "no Dask scheduler answers there"),
    ],
)
def test_addresses(monkeypatch, address, problem, text):
    pytest.importorskip("distributed")
    monkeypatch.setattr("vaiphy.workers.cluster.GREETING", 0.5)
    with pytest.raises(problem, match=text), connected(address):
        pass


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(FailedError, match=r"pip install \"vaiphy\[cluster\]\""), connected("local:2"):
        pass


def test_no_cluster_is_loaded_unasked(tmp_path):
    """A whole run without --cluster, where Dask is installed."""
    (tmp_path / "five.fasta").write_text(ALIGNMENT)
    words = ["run", *RUN, "--prefix", "here", "--quiet"]
    code = f"from vaiphy.cli import main; main({words!r}, standalone_mode=False); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "vaiphy.workers.cluster" in done.stdout.split()
    assert {"dask", "distributed", "mpi4py"}.isdisjoint(done.stdout.split())


def test_shards_on_the_command_line(tmp_path):
    """Two phases and a merger; what a shard needs and cannot have is said."""
    (tmp_path / "five.fasta").write_text(ALIGNMENT)
    options = ("five.fasta", "--model", "JC", "--particles", "16", "--quiet", "--prefix", "r")
    for words, text in (
        (("--shard", "1/2"), "--shard and --phase belong together"),
        (("--shard", "1/2", "--phase", "learn"), "--shard needs a --seed"),
        (("--shard", "1/2", "--phase", "learn", "--seed", "1", "--time-limit", "5m"), "--shard has no --time-limit"),
        (("--shard", "3/2", "--phase", "learn", "--seed", "1"), "a shard is written 3/16"),
        (("--shard", "1/2", "--phase", "draw", "--seed", "1"), "shard 1 of 2 is missing; run it with --shard 1/2 --phase learn"),
    ):
        done = vaiphy(tmp_path, "run", *options, *words)
        assert done.returncode == 2
        assert text in done.stderr
    for phase in ("learn", "draw"):
        for shard in ("1/2", "2/2"):
            done = vaiphy(tmp_path, "run", *options, "--seed", "1", "--shard", shard, "--phase", phase)
            assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    done = vaiphy(tmp_path, "merge", "r")
    assert done.returncode == 0, done.stderr
    assert "Log marginal likelihood" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["settings"]["bridges"] == 2
