"""Records of cells on disk: one file of JSON lines an experiment, one line a measurement.

A measurement is appended as one line, so that an interrupted queue loses at most the line it was writing; of two lines about one
cell the later holds. `tidy` drops what has been superseded and sorts the rest.
"""

import json
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def identity(record: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What a record is the record of; also its place in a tidy file."""
    return record["experiment"], record["data"], record["method"], str(record["repeat"])


def read(path: Path) -> dict[tuple[str, str, str, str], Record]:
    """The latest record of each cell in a file; none if there is no file. Lines that are no records are passed over."""
    try:
        state = os.stat(path)
    except FileNotFoundError:
        return {}
    return dict(_parsed(path, state.st_mtime_ns, state.st_size))


def append(path: Path, record: Record) -> None:
    """Add a record in one write; a line that an interrupted run has left unfinished is closed first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab+") as stream:
        unfinished = stream.seek(0, os.SEEK_END) > 0 and stream.seek(-1, os.SEEK_END) >= 0 and stream.read(1) != b"\n"
        stream.write((b"\n" if unfinished else b"") + json.dumps(record).encode() + b"\n")


def discard(path: Path, record: Record) -> None:
    """Forget what is known of a record's cell."""
    kept = read(path)
    kept.pop(identity(record), None)
    _rewrite(path, kept.values())


def tidy(folder: Path) -> None:
    """One line a cell, in order, in every file of a folder."""
    for path in sorted(folder.glob("*.jsonl")):
        _rewrite(path, read(path).values())


@lru_cache(maxsize=32)
def _parsed(path: Path, changed: int, size: int) -> dict[tuple[str, str, str, str], Record]:
    """The records of a file as it was when it had been changed then and was of that size."""
    found = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
            found[identity(record)] = record
        except (ValueError, KeyError, TypeError):
            continue
    return found


def _rewrite(path: Path, records: Iterable[Record]) -> None:
    """Replace a file as a whole, if that changes it."""
    text = "".join(f"{json.dumps(record)}\n" for record in sorted(records, key=identity))
    if text.encode() != path.read_bytes():
        new = path.with_suffix(".new")
        new.write_text(text)
        new.replace(path)
