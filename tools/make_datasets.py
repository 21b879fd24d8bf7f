"""Make the embedded alignments DS1..DS8 from Debian's package `beast2-mcmc-examples`.

Usage: python tools/make_datasets.py [FOLDER]

FOLDER holds testHKY336.nex.gz and its siblings (default: where the package puts them). Names, order and characters of
the matrices are kept; only the MrBayes commands are left out. The files made do not depend on when they are made.
"""

import gzip
import sys
from pathlib import Path

from vaiphy.datasets import DATASETS

SOURCE = Path("/usr/share/doc/beast2-mcmc/examples/benchmark/mrbayes")
TARGET = Path(__file__).parents[1] / "src/vaiphy/datasets"


def matrix(text: str) -> list[tuple[str, str]]:
    """Taxa and sequences of a NEXUS matrix with one taxon a line, nothing changed."""
    body = text[text.lower().index("matrix") + len("matrix") :]
    rows = (line.split() for line in body[: body.index(";")].splitlines())
    return [(row[0], "".join(row[1:])) for row in rows if row]


def main(folder: Path) -> None:
    for name, record in DATASETS.items():
        text = gzip.decompress((folder / f"testHKY{record.legacy_id[1:]}.nex.gz").read_bytes()).decode("ascii")
        rows = matrix(text)
        sizes = {len(sequence) for _, sequence in rows}
        if len(rows) != record.n_taxa or sizes != {record.n_sites}:
            sys.exit(f"{name}: found {len(rows)} taxa and {sorted(sizes)} sites, not {record.n_taxa} and {record.n_sites}")
        fasta = "".join(f">{taxon}\n{sequence}\n" for taxon, sequence in rows)
        target = TARGET / f"{name}.fasta.gz"
        target.write_bytes(gzip.compress(fasta.encode("ascii"), 9, mtime=0))
        print(f"{target.name}: {len(rows)} taxa, {sizes.pop()} sites, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
