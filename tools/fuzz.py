"""Damaged and random inputs at every reader, for as long as asked: our error or a sound result, never anything else.

    python tools/fuzz.py --seconds 180 --seed 1

An input that breaks a reader is written to fuzz-failure.bin, and the exit status is 1.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from formats.test_fuzz import inputs, throw

#: Seconds between two lines of progress.
EVERY = 15.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--inputs", type=int, default=10**12, help="stop after as many inputs")
    parser.add_argument("--seed", type=int, default=None, help="default: drawn from the clock")
    given = parser.parse_args()
    seed = time.time_ns() % 2**32 if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    began = told = time.monotonic()
    for count, (content, parse, error, check) in enumerate(inputs(np.random.default_rng(seed)), 1):
        try:
            throw(content, parse, error, check)
        except Exception:
            Path("fuzz-failure.bin").write_bytes(content)
            print(f"input {count} is in fuzz-failure.bin", flush=True)
            raise
        now = time.monotonic()
        if now - told > EVERY:
            told = now
            print(f"{count:,} inputs in {now - began:.0f} s", flush=True)
        if now - began > given.seconds or count >= given.inputs:
            print(f"{count:,} inputs in {now - began:.0f} s, no fault found")
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
