"""The lock of a prefix: one run at a time, whatever happens to the lock's file in between."""

import pytest

from vaiphy.errors import InputError
from vaiphy.runner import log
from vaiphy.runner.log import locked


def test_the_lock_leaves_no_file_behind(tmp_path):
    with locked(tmp_path / "apes"):
        assert [path.name for path in tmp_path.iterdir()] == [".apes.lock"]
    assert not list(tmp_path.iterdir())


def test_a_run_that_opened_the_file_before_it_was_removed_does_not_hold_a_lock_of_its_own(tmp_path, monkeypatch):
    """The first run ends, and removes the file, between another's opening and locking it; a third run comes later."""
    prefix = tmp_path / "apes"
    first = locked(prefix)
    first.__enter__()
    lock = log._lock

    def late(stream, prefix):
        monkeypatch.setattr(log, "_lock", lock)
        first.__exit__(None, None, None)
        lock(stream, prefix)

    monkeypatch.setattr(log, "_lock", late)
    with locked(prefix):
        assert (tmp_path / ".apes.lock").exists()
        with pytest.raises(InputError, match="another run"), locked(prefix):
            pass
    assert not list(tmp_path.iterdir())
