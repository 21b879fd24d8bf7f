"""Checkpoints: exact round trips, damage found, nothing half-written, no pickle."""

import os

import numpy as np
import pytest

from vaiphy.runner import checkpoint
from vaiphy.runner.checkpoint import DamagedCheckpoint


@pytest.fixture
def arrays():
    rng = np.random.default_rng(1)
    return {
        "lengths": rng.exponential(size=(50, 7)),
        "special": np.array([np.nan, -np.inf, -0.0, 5e-324]),
        "empty": np.zeros((0, 3), np.int32),
        "text": np.array(["explore", "sample"]),
        "scalar": np.array(7, dtype=np.uint64),
    }


def test_round_trip_is_exact(tmp_path, arrays):
    path = tmp_path / "x.ckpt"
    checkpoint.save(path, {"seed": 2**63, "name": "é"}, arrays)
    header, found = checkpoint.load(path)
    assert header["seed"] == 2**63
    assert header["name"] == "é"
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes()
    assert os.listdir(tmp_path) == ["x.ckpt"]


@pytest.mark.parametrize("keep", [0, 1, 100, 0.5, -1])
def test_a_truncated_checkpoint_is_told(tmp_path, arrays, keep):
    path = tmp_path / "x.ckpt"
    checkpoint.save(path, {}, arrays)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * keep) if isinstance(keep, float) else keep])
    with pytest.raises(DamagedCheckpoint, match=r"x\.ckpt: the checkpoint is damaged.*--redo"):
        checkpoint.load(path)


def test_any_flipped_bit_is_found(tmp_path, arrays):
    path = tmp_path / "x.ckpt"
    checkpoint.save(path, {}, arrays)
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    for place in [0, len(whole) - 1, *rng.integers(len(whole), size=300).tolist()]:
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(DamagedCheckpoint, match=r"x\.ckpt: the checkpoint is damaged.*--redo"):
            checkpoint.load(path)


@pytest.mark.parametrize("start", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"VaiPhy checkpoint\n"])
def test_random_bytes_are_no_checkpoint(tmp_path, start):
    path = tmp_path / "x.ckpt"
    path.write_bytes(start + np.random.default_rng(3).bytes(5000))
    with pytest.raises(DamagedCheckpoint, match="damaged") as caught:
        checkpoint.load(path)
    assert "pickle" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_objects_are_refused(tmp_path):
    with pytest.raises(TypeError, match="Python objects"):
        checkpoint.save(tmp_path / "x.ckpt", {}, {"bad": np.array([{}], dtype=object)})
    evil = tmp_path / "evil.ckpt"
    with open(evil, "wb") as stream:
        np.savez(stream, **{"header.json": np.array([{}], dtype=object)})
    with pytest.raises(DamagedCheckpoint):
        checkpoint.load(evil)


def test_another_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 999)
    checkpoint.save(tmp_path / "x.ckpt", {"version": "9.9"}, {})
    monkeypatch.undo()
    with pytest.raises(DamagedCheckpoint, match=r"another version of VaiPhy \(9\.9\)"):
        checkpoint.load(tmp_path / "x.ckpt")


def test_a_batch_that_fails_leaves_the_old_files(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("old")

    def full(stream):
        stream.write(b"half")
        raise OSError(28, "No space left on device", str(second))

    def attempt():
        with checkpoint.batch() as files:
            files.write(first, "new")
            files.write(second, full)

    with pytest.raises(OSError, match="No space"):
        attempt()
    assert first.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]
    with checkpoint.batch() as files:
        files.write(first, "new")
        files.write(second, b"more")
        assert first.read_text() == "old"
    assert (first.read_text(), second.read_text()) == ("new", "more")
