"""A cell is one measurement (experiment x data set x method x repeat), kept as one line of its experiment's file (`records`).

Each cell is measured in a process of its own, so that CPU time and peak memory are its own. A cell that is present is not
measured again, so that an interrupted run goes on where it was. A cell whose program is absent is kept with the reason and
tried again next time.

This module and whatever the main process imports stay free of numpy and numba: a small parent keeps the children's figures clean.
"""

import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import records

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DONE, ABSENT, FAILED = "done", "absent", "failed"
TRIES = 3
#: What a warmed-up method is run on: small enough to take no time, big enough to compile everything.
WARM_UP = "simulated-8x200"


class Absent(Exception):
    """Something that a cell needs is not on this machine; the message says what."""


@dataclass(frozen=True)
class Cell:
    """What is to be measured. `settings` go to the method; `seed` and the rest are its identity."""

    experiment: str
    data: str
    method: str
    repeat: int = 0
    seed: int = 1
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.experiment}/{self.data}/{self.method}/{self.repeat}"

    def path(self, results: Path = RESULTS) -> Path:
        """The file that its record is in, among those of its experiment."""
        return results / f"{self.experiment}.jsonl"


def load(cell: Cell, results: Path = RESULTS) -> dict[str, Any] | None:
    """What is known of a cell: None if it was never measured."""
    return records.read(cell.path(results)).get(records.identity(asdict(cell)))


def load_all(results: Path = RESULTS) -> list[dict[str, Any]]:
    """Every cell in a folder of results (EXPERIMENT.jsonl), in the order of their names."""
    found = [record for path in sorted(results.glob("*.jsonl")) for record in records.read(path).values()]
    return sorted(found, key=records.identity)


def forget(cell: Cell, results: Path = RESULTS) -> None:
    """As if the cell had never been measured."""
    records.discard(cell.path(results), asdict(cell))


def wanted(cell: Cell, record: dict[str, Any] | None, redo: bool = False, stale: bool = False) -> bool:
    """Whether to measure a cell: never measured, not done, or done with other settings (or, if `stale`, other code)."""
    if record is None or redo or record["status"] != DONE:
        return True
    if record["settings"] != cell.settings or record["seed"] != cell.seed:
        return True
    return stale and record["code"] != code_fingerprint()


def measure(cell: Cell, results: Path = RESULTS, timeout: float = 3600.0) -> dict[str, Any]:
    """Measure a cell in a process of its own and keep what came out."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        out = Path(folder) / "out.json"
        command = [sys.executable, "-m", "benchmarks.worker", json.dumps(asdict(cell)), str(out)]
        for _ in range(TRIES):
            begin = time.perf_counter()
            status, said = _run(command, timeout)
            # If kernels had to be compiled (somebody has changed one meanwhile) the figures are those of the compiler: once more.
            if status != 0 or cell.settings.get("peer") or not json.loads(out.read_text()).get("compiled"):
                break
        if status == 0:
            answer = json.loads(out.read_text())
        elif status is None:
            answer = {"status": FAILED, "reason": f"not finished after {timeout:g} s"}
        else:
            answer = {"status": FAILED, "reason": (said.strip().splitlines() or ["no message"])[-1]}
            sys.stderr.write(said)
    record = {
        **asdict(cell),
        "wall_seconds": time.perf_counter() - begin,
        **answer,
        **circumstances(),
    }
    save(cell, record, results)
    return record


def _run(command: list[str], timeout: float) -> tuple[int | None, str]:
    """Run a worker to its end: its exit status (None if it took too long) and what it said on stderr.

    It leads a session of its own, and whatever ends this function ends all of that session: MrBayes, for one, does not
    listen to an interrupt.
    """
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(timeout=timeout)
            return process.returncode, said
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def save(cell: Cell, record: dict[str, Any], results: Path = RESULTS) -> None:
    """Keep what was found of a cell, in place of what was known before."""
    records.append(cell.path(results), record)


def run_all(
    cells: Iterable[Cell], results: Path = RESULTS, redo: bool = False, stale: bool = False, timeout: float = 3600.0
) -> list[dict[str, Any]]:
    """Measure the cells that are wanted, one after another; returns the records of all."""
    todo = list(cells)
    found = []
    warm: set[str] = set()
    for number, cell in enumerate(todo, 1):
        record = load(cell, results)
        if record is None or wanted(cell, record, redo, stale):
            print(f"[{number}/{len(todo)}] {cell.name} ...", file=sys.stderr, flush=True)
            warm_up(cell, warm)
            record = measure(cell, results, timeout)
            said = record.get("reason") or f"{record['wall_seconds']:.1f} s"
            print(f"[{number}/{len(todo)}] {cell.name}: {record['status']}, {said}", file=sys.stderr, flush=True)
        found.append(record)
    return found


def warm_up(cell: Cell, warm: set[str]) -> None:
    """Compile what a method needs, in a process whose figures nobody sees, so that no cell pays for compilation."""
    if cell.method in warm or cell.settings.get("peer") or cell.experiment == "kernels":
        return
    warm.add(cell.method)
    small = {**cell.settings, "tiny": True}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        trial = Cell("warm-up", WARM_UP, cell.method, settings=small)
        command = [sys.executable, "-m", "benchmarks.worker", json.dumps(asdict(trial)), str(Path(folder) / "out.json")]
        _run(command, 600.0)


def circumstances() -> dict[str, Any]:
    """When and where and with what something is measured."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "code": code_fingerprint(),
        "load_average": os.getloadavg()[0],
    }


@cache
def machine() -> dict[str, Any]:
    """The machine in the words that matter: processor, cores, memory, system."""
    model = platform.processor() or platform.machine()
    memory = 0.0
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (OSError, ValueError):
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": model,
        "cores": cores,
        "memory_gb": round(memory, 1),
        "system": platform.system() + " " + platform.machine(),
    }


@cache
def versions() -> dict[str, str]:
    """Versions of everything of ours that a figure depends on; peers state their own."""
    found = {"python": platform.python_version()}
    for package in ("vaiphy", "numpy", "scipy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    try:
        done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        found["commit"] = done.stdout.strip() or "unknown"
    except OSError:
        found["commit"] = "unknown"
    return found


@cache
def code_fingerprint() -> str:
    """Changes when any file of the package changes."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src" / "vaiphy").rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
