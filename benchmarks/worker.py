"""The process that measures one cell: `python -m benchmarks.worker CELL OUT` (both made by `benchmarks.cells`)."""

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.cells import ABSENT, DONE, Absent, Cell


def peak_megabytes(pid: int | str = "self") -> float:
    """Largest resident memory of a process so far.

    From /proc, because the figure of getrusage starts at what the parent had before the program was loaded.
    """
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if pid == "self" else float("nan")


def answer(cell: Cell) -> dict[str, Any]:
    """Measure the cell here and now."""
    from numba.core import event

    from benchmarks.methods import METHODS

    try:
        with event.install_recorder("numba:compile") as compilations:
            result = METHODS[cell.method](cell)
    except Absent as absent:
        return {"status": ABSENT, "reason": str(absent)}
    # A peer's own process reports for itself.
    cpu = result.pop("cpu_seconds", None)
    peak = result.pop("peak_megabytes", None)
    program = result.pop("program", None)
    return {
        "status": DONE,
        "compiled": sum(1 for _, found in compilations.buffer if found.is_start),
        "cpu_seconds": time.process_time() if cpu is None else cpu,
        "peak_megabytes": peak_megabytes() if peak is None else peak,
        **({"program": program} if program else {}),
        "result": result,
    }


def main() -> None:
    spec, out = sys.argv[1:]
    # BLAS threads would make "one thread" mean nothing.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    Path(out).write_text(json.dumps(answer(Cell(**json.loads(spec)))))


if __name__ == "__main__":
    main()
