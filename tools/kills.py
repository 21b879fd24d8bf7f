"""Runs that are killed at random moments, again and again, and continued: the result must be that of a run left alone.

    python tools/kills.py --kills 100 --seed 1

Each life of the program is ended by SIGKILL after a random time (some by SIGTERM or SIGINT) until one finishes; then the next
run begins. All result files but times, log and checkpoint must be equal, byte by byte, to those of the run left alone.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: The longest life in times of the run left alone: some lives must be long enough to end by themselves on a busy machine.
LONGEST = 1.5
PROGRAM = "from vaiphy.cli import main; main(prog_name='vaiphy')"
#: Files that hold times and are not compared.
TIMED = {".log", ".ckpt"}


def command(data: str, prefix: Path, extra: list[str]) -> list[str]:
    return [sys.executable, "-c", PROGRAM, "run", data, "--prefix", str(prefix), "--seed", "7", "-q", *extra]


def outputs(folder: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(folder.iterdir()):
        suffix = path.name.removeprefix("run")
        if suffix in TIMED or path.name.startswith("."):
            continue
        content = path.read_bytes()
        if suffix == ".json":
            content = re.sub(rb'"timings": \{[^}]*\}', b"", content)
        found[suffix] = content.replace(bytes(folder), b"")
    return found


def different(found: dict[str, bytes], wanted: dict[str, bytes]) -> str:
    return ", ".join(name for name in sorted(found.keys() | wanted.keys()) if found.get(name) != wanted.get(name))


def run_alone(data: str, folder: Path, extra: list[str]) -> tuple[float, dict[str, bytes]]:
    """Seconds and files of a run that nobody disturbs."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    began = time.monotonic()
    subprocess.run(command(data, folder / "run", extra), check=True, env=os.environ)
    return time.monotonic() - began, outputs(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--data", default="", help="an alignment; default: a simulated one of 10 taxa")
    parser.add_argument("--seed", type=int, default=1)
    given, extra = parser.parse_known_args()
    rng = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as place:
        data = given.data or str(Path(place) / "ten.fasta")
        if not given.data:
            made = ["simulate", "--taxa", "10", "--sites", "300", "--seed", str(given.seed), "--prefix", str(Path(place) / "ten")]
            subprocess.run([sys.executable, "-c", PROGRAM, *made], check=True)
        alone = Path(place) / "run"
        whole, first = run_alone(data, alone, extra)  # everything is compiled now
        whole, wanted = run_alone(data, alone, extra)
        if first != wanted:
            print("two runs left alone differ: " + different(first, wanted))
            return 1
        print(f"left alone: {whole:.1f} s, {len(wanted)} files", flush=True)
        kills = finished = 0
        while kills < given.kills:
            shutil.rmtree(alone)
            alone.mkdir()
            while True:
                life = subprocess.Popen(command(data, alone / "run", extra), stderr=subprocess.PIPE, text=True)
                try:
                    _, said = life.communicate(timeout=rng.uniform(0.1, LONGEST) * whole if kills < given.kills else None)
                except subprocess.TimeoutExpired:
                    kills += 1
                    if kills % 10 == 0:
                        print(f"{kills} kills", flush=True)
                    life.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
                    _, said = life.communicate()
                    if "Traceback" in said:
                        print(said)
                        return 1
                    continue
                if life.returncode != 0 and "is finished" not in said:  # killed between its last file and its end
                    print(said)
                    return 1
                break
            finished += 1
            found = outputs(alone)
            if found != wanted:
                print("different: " + different(found, wanted))
                return 1
            print(f"{kills} kills, {finished} runs finished with the same result", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
