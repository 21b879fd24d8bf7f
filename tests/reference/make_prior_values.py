"""Quantiles of MrBayes's priors, from runs without data, recorded in prior_values.json for the tests.

Run it from the top of the repository with MrBayes installed (Debian package `mrbayes`; two minutes):

    PYTHONPATH=tests .venv/bin/python -m reference.make_prior_values
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

RECORD = Path(__file__).with_name("prior_values.json")
N_TAXA = 6
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
COMMANDS = """set autoclose=yes nowarn=yes seed=1 swapseed=1;
execute data.nex;
lset nst=NST rates=invgamma;
prset brlenspr=unconstrained:LENGTHS;
mcmcp data=no ngen=8000000 nruns=1 nchains=1 samplefreq=800 printfreq=8000000 diagnfreq=8000000 filename=out;
mcmc;
"""
RUNS = {"HKY+I+G4, gammadir(1,0.1,1,1)": (2, "gammadir(1,0.1,1,1)"), "GTR+I+G4, exp(10)": (6, "exp(10)"),
        "GTR+I+G4, gammadir(2,3,0.7,0.4)": (6, "gammadir(2,3,0.7,0.4)")}  # fmt: skip


def quantiles(nst: int, lengths: str) -> dict[str, list[float]]:
    """Quantiles of every column of the .p file, the first tenth left out."""
    rows = "".join(f"t{k} {'ACGT'[k % 4]}CGT\n" for k in range(N_TAXA))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        nexus = f"#NEXUS\nbegin data;\ndimensions ntax={N_TAXA} nchar=4;\nformat datatype=dna;\nmatrix\n{rows};\nend;\n"
        (folder / "data.nex").write_text(nexus)
        (folder / "commands").write_text(COMMANDS.replace("NST", str(nst)).replace("LENGTHS", lengths))
        subprocess.run(["mb", "commands"], cwd=folder, capture_output=True, check=True)
        lines = (folder / "out.p").read_text().splitlines()[1:]
    names = lines[0].split("\t")
    values = np.array([[float(word) for word in line.split("\t")] for line in lines[1:]])
    values = values[len(values) // 10 :]
    kept = [name for name in names if name not in ("Gen", "LnL", "LnPr")]
    return {name: np.quantile(values[:, names.index(name)], QUANTILES).round(6).tolist() for name in kept}


def main() -> None:
    record = {
        "commands": COMMANDS,
        "n_taxa": N_TAXA,
        "quantiles": QUANTILES,
        "runs": {name: quantiles(*settings) for name, settings in RUNS.items()},
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
