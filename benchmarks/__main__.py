"""`python -m benchmarks [--quick]`: measure what has not been measured, then write docs/benchmarks.md from all that has been."""

import argparse
import os
import sys
from pathlib import Path

from benchmarks import cells, plan, ratios

QUICK = cells.RESULTS / "quick"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a few minutes; fails if a ratio is over 30 %% worse than the baseline"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only cells whose name begins so, such as table/DS1"
    )
    parser.add_argument("--repeats", type=int, default=10, help="repeats of what is repeated (default 10)")
    parser.add_argument("--redo", action="store_true", help="measure again what is there")
    parser.add_argument("--stale", action="store_true", help="measure again what was measured with other code")
    parser.add_argument("--page-only", action="store_true", help="measure nothing; write the page from what is there")
    parser.add_argument("--list", action="store_true", help="print the names of the cells and whether they are there")
    parser.add_argument("--timeout", type=float, default=3600.0, help="seconds after which a cell is given up")
    parser.add_argument(
        "--golden", type=Path, help="folder with split frequencies of long runs (default: ../shared/golden if it is there)"
    )
    parser.add_argument("--new-baseline", action="store_true", help="make the ratios measured now the baseline")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    asked = arguments(words)
    golden = asked.golden or cells.ROOT.parent / "shared" / "golden"
    if golden.is_dir():
        os.environ["BENCH_GOLDEN"] = str(golden.resolve())
    results = QUICK if asked.quick else cells.RESULTS
    chosen = plan.quick() if asked.quick else plan.full(asked.repeats)
    if asked.only:
        chosen = [cell for cell in chosen if any(cell.name.startswith(name) for name in asked.only)]
    if asked.list:
        for cell in chosen:
            record = cells.load(cell, results)
            print(f"{cell.name}: {'not run' if record is None else record['status']}")
        return 0
    status = 0
    if not asked.page_only:
        try:
            if asked.quick:
                status = quick(chosen, results, asked)
            else:
                cells.run_all(chosen, results, asked.redo, asked.stale, asked.timeout)
        except KeyboardInterrupt:
            print("interrupted; the same command goes on from here", file=sys.stderr)
            return 130
    from benchmarks import page

    page.write()
    return status


def quick(chosen: list[cells.Cell], results: Path, asked: argparse.Namespace) -> int:
    """The quick form: cells of other code or another machine do not count; the ratios are always measured, and judged."""
    for cell in chosen:
        record = cells.load(cell, results)
        if record is not None and record.get("machine") != cells.machine():
            cells.forget(cell, results)
    judged = [cell for cell in chosen if cell.experiment == "ratios"]
    rest = [cell for cell in chosen if cell.experiment != "ratios"]
    records = cells.run_all(judged, results, redo=True)
    cells.run_all(rest, results, asked.redo, stale=True, timeout=asked.timeout)
    if not records:
        return 0
    if records[0]["status"] != cells.DONE:
        print(f"the ratios could not be measured: {records[0].get('reason')}", file=sys.stderr)
        return 1
    found = records[0]["result"]["ratios"]
    baseline = ratios.read_baseline()
    for _ in range(2):
        if asked.new_baseline or not ratios.worse(found, baseline):
            break
        print("a ratio is worse than the baseline; measuring again", file=sys.stderr)
        again = cells.measure(judged[0], results)
        if again["status"] == cells.DONE:
            found = ratios.merged(found, again["result"]["ratios"])
            again["result"]["ratios"] = found
            cells.save(judged[0], again, results)
    if asked.new_baseline:
        # What could not be measured now, for want of a compiler or of quiet, is judged by what it was.
        ratios.write_baseline(ratios.read_baseline() | found, {"machine": cells.machine(), "versions": cells.versions()})
        return 0
    for line in (problems := ratios.worse(found, baseline)):
        print(f"worse than the baseline: {line}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
