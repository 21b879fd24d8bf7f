"""Files that are whole or not there, and checkpoints made of plain arrays.

A file is written under a temporary name in the same folder, flushed to the disk and renamed, so that a reader, or a run
that is started again after a power cut, never sees half of one. A checkpoint is a line that says what it is, the SHA-256
of everything behind it, and a NumPy archive without pickle: a JSON header and named arrays.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.errors import FailedError

#: Raised when the meaning of the arrays changes; a checkpoint of another format is refused.
FORMAT = 3
_HEADER = "header.json"
_MAGIC = b"VaiPhy checkpoint\n"


class DamagedCheckpoint(FailedError):
    """The file is not a checkpoint, or not a whole one."""


class Batch:
    """Files that appear together: all are written before any is renamed, and a failure leaves the old ones alone."""

    def __init__(self) -> None:
        self._pending: list[tuple[Path, Path]] = []

    def write(self, path: Path, content: str | bytes | Callable[[IO[bytes]], object]) -> None:
        """Write one file under a temporary name."""
        temporary = path.with_name(f".{path.name}.tmp")  # always the same, so a killed run leaves nothing that stays
        self._pending.append((temporary, path))
        try:
            with open(temporary, "wb") as stream:
                if callable(content):
                    content(stream)
                else:
                    stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as problem:
            raise OSError(problem.errno, problem.strerror or str(problem), str(path)) from None

    def commit(self) -> None:
        """Give all files their names."""
        for temporary, path in self._pending:
            os.replace(temporary, path)
        folders = {path.parent for _, path in self._pending}
        self._pending.clear()
        for folder in folders:
            _sync_folder(folder)

    def abandon(self) -> None:
        """Remove what was written."""
        for temporary, _ in self._pending:
            temporary.unlink(missing_ok=True)
        self._pending.clear()


@contextmanager
def batch() -> Iterator[Batch]:
    """Files written inside appear together at the end, or, after an exception, not at all."""
    files = Batch()
    try:
        yield files
        files.commit()
    finally:
        files.abandon()


def write_file(path: Path, content: str | bytes | Callable[[IO[bytes]], object]) -> None:
    """Write one file, whole or not at all."""
    with batch() as files:
        files.write(path, content)


def save(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """Write a checkpoint; raises OSError and leaves the earlier one if that cannot be done."""
    with batch() as files:
        write_checkpoint(files, path, header, arrays)


def write_checkpoint(files: Batch, path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray]) -> None:
    """A checkpoint as one of several files that appear together."""
    text = json.dumps({"format": FORMAT, **header}, sort_keys=True).encode()
    named: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8)}
    for name, array in arrays.items():
        if np.asarray(array).dtype.hasobject:
            raise TypeError(f"{name}: arrays of Python objects cannot be saved")
        named[f"state/{name}"] = array
    archive = io.BytesIO()
    np.savez(archive, **named)
    content = archive.getvalue()
    files.write(path, _MAGIC + sha256(content).digest() + content)


def load(path: Path) -> tuple[dict[str, Any], dict[str, NDArray]]:
    """Header and arrays of a checkpoint; nothing is read from it before its checksum is found to be right."""
    whole = path.read_bytes()
    start = len(_MAGIC) + sha256().digest_size
    content = whole[start:]
    if not whole.startswith(_MAGIC) or sha256(content).digest() != whole[len(_MAGIC) : start]:
        raise DamagedCheckpoint(
            f"{path}: the checkpoint is damaged, or not one of this version of VaiPhy; "
            "--redo starts the run again from the beginning"
        )
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        header = json.loads(archive[_HEADER].tobytes())
        arrays = {name.removeprefix("state/"): archive[name] for name in archive.files if name.startswith("state/")}
    if header.get("format") != FORMAT:
        raise DamagedCheckpoint(
            f"{path}: the checkpoint was written by another version of VaiPhy "
            f"({header.get('version', 'unknown')}); --redo starts the run again from the beginning"
        )
    return header, arrays


def _sync_folder(folder: Path) -> None:
    """Make renames survive a power cut, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
