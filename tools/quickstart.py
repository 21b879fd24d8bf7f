"""Run the commands of docs/quickstart.md with an installed `vaiphy`, as a newcomer would, and compare what they print.

    python tools/quickstart.py VAIPHY FOLDER

VAIPHY is the program to try, FOLDER where to work. Python blocks run in the Python beside it.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "quickstart.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(block: str) -> Iterator[tuple[list[str], str]]:
    """(command, expected output) of a console block; no output expected means that any will do."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        yield shlex.split(line), expected


def shows(output: str, expected: str) -> bool:
    """Whether the lines expected stand in the output, in their order; `...` stands for anything."""
    lines = [line for line in expected.splitlines() if line.strip() not in ("", "...")]
    pattern = r"[\s\S]*?".join("^" + ".*".join(map(re.escape, line.split("..."))) + "$" for line in lines)
    return re.search(pattern, output, flags=re.MULTILINE) is not None


def main(program: str, folder: str) -> None:
    python = str(Path(program).with_name("python"))
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        jobs = [([python, "-c", text], "")] if kind == "python" else list(commands(text))
        for words, expected in jobs:
            words = [program, *words[1:]] if kind == "console" else words
            print("$", "python (the block of the page)" if kind == "python" else shlex.join(words), flush=True)
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode or not shows(done.stdout, expected):
                sys.exit(f"status {done.returncode}; expected:\n{expected}\nfound:\n{done.stdout}")


if __name__ == "__main__":
    main(*sys.argv[1:])
