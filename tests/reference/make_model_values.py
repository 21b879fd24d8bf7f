"""Log-likelihoods of given trees under many models by IQ-TREE and PhyML, recorded in model_values.json for the tests.

Run it from the top of the repository with both programs installed (Debian packages `iqtree`, `phyml`, and `mrbayes` for
its example alignments):

    PYTHONPATH=tests .venv/bin/python -m reference.make_model_values

All parameters are given, none is estimated. Trees have branches of at least 0.001; taxa are called t1, t2, ... in the
order of the alignment. PhyML gets no columns in which all taxa could have either of several states (gaps only, mostly):
with +I it takes them for variable. Sets of states of morphological characters are missing data here, since IQ-TREE does not
read them, and +ASC gets the variable characters only.
"""

import json
import re
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from reference.make_peer_values import alignment_named as dna_named
from reference.make_peer_values import run, trees_of, version
from reference.random_trees import random_binary_tree

from vaiphy.alignment import Alignment
from vaiphy.alphabets import BIN
from vaiphy.formats import newick, parse_alignment, phylip, read_alignment, write_alignment
from vaiphy.search.starts import bionj

RECORD = Path(__file__).with_name("model_values.json")
IQTREE = "iqtree2 -s data.phy -m MODEL -te tree.nwk -blfix -keep-ident -nt 1 -redo -quiet"
PHYML = "phyml -i data.phy -d TYPE OPTIONS -b 0 -u tree.nwk -o n"
MRBAYES = """set autoclose=yes nowarn=yes seed=1 swapseed=1;
execute data.nex;
lset coding=variable RATES;
prset brlenspr=unconstrained:exp(10) SHAPE;
execute tree.nex;
startvals tau=given V=given;
mcmc ngen=1000 nruns=1 nchains=1 samplefreq=1000 printfreq=1000 diagnfreq=1000;
"""
EXAMPLES = Path("/usr/share/doc/mrbayes/examples")
PI = "{0.31,0.22,0.18,0.29}"
#: Model strings for DNA; each is also PhyML's where OPTIONS says how.
DNA = {
    "JC+I{0.2}+G4{0.4}": "-m JC69 -v 0.2 -c 4 -a 0.4",
    f"F81+F{PI}+G4{{0.7}}": "-m F81 -f 0.31,0.22,0.18,0.29 -v 0 -c 4 -a 0.7",
    "K80{3.5}+I{0.3}": "-m K80 -t 3.5 -v 0.3 -c 1",
    "K80{3.5}+I{0.1}+G4{0.6}": "-m K80 -t 3.5 -v 0.1 -c 4 -a 0.6",
    f"HKY{{2.5}}+F{PI}": "-m HKY85 -t 2.5 -f 0.31,0.22,0.18,0.29 -v 0 -c 1",
    f"HKY{{2.5}}+F{PI}+I{{0.15}}+G4{{0.5}}": "-m HKY85 -t 2.5 -f 0.31,0.22,0.18,0.29 -v 0.15 -c 4 -a 0.5",
    f"TN{{2,5}}+F{PI}+G4{{0.5}}": "",
    "TNe{2,5}+I{0.2}": "",
    "K81{2,0.5}+G4{0.5}": "",
    f"K3Pu{{2,0.5}}+F{PI}": "",
    "TPM2{2,0.5}+FQ+I{0.2}": "",
    f"TPM3u{{2,0.5}}+F{PI}+G8{{1.5}}": "",
    f"TIM{{2,0.5,4}}+F{PI}+I{{0.2}}": "",
    f"TIM2{{2,0.5,4}}+F{PI}+G4{{0.5}}": "",
    "TIM3e{2,0.5,4}+G4{0.5}": "",
    f"TVM{{0.6,2,0.5,1.4}}+F{PI}+I{{0.1}}+G4{{0.5}}": "",
    "SYM{0.6,2,0.5,1.4,3}+G4{0.5}": "",
    f"GTR{{0.6,2,0.5,1.4,3}}+F{PI}": "",
    f"GTR{{0.6,2,0.5,1.4,3}}+F{PI}+I{{0.15}}+G4{{0.5}}": "",
    f"GTR{{0.6,2,0.5,1.4,3}}+F{PI}+G4{{0.05}}": "",
    f"GTR{{0.6,2,0.5,1.4,3}}+F{PI}+I{{0.9}}+G4{{80}}": "",
    "GTR{0.6,2,0.5,1.4,3}+F{0.0001,0.2999,0.4,0.3}+G4{0.5}": "",
}
#: Every model on DS1's two trees; elsewhere those that have most parts.
DATA = {
    "DS1": list(DNA),
    "DS4": [model for model in DNA if model.startswith(("GTR", "HKY"))],
    "DS1+IUPAC": [model for model in DNA if model.startswith(("GTR", "K80"))],
}


#: PhyML's cpREV is not quite the published one, which IQ-TREE and PAML have.
AMINO_ACIDS = {
    "LG+I{0.1}+G4{0.6}": "-m LG -f m -v 0.1 -c 4 -a 0.6",
    "LG+F+G4{0.6}": "",
    "WAG+I{0.1}+G4{0.6}": "-m WAG -f m -v 0.1 -c 4 -a 0.6",
    "JTT+G4{0.6}": "-m JTT -f m -v 0 -c 4 -a 0.6",
    "Dayhoff": "-m Dayhoff -f m -v 0 -c 1",
    "VT+G4{0.6}": "-m VT -f m -v 0 -c 4 -a 0.6",
    "mtREV": "-m MtREV -f m -v 0 -c 1",
    "cpREV": "",
    "Blosum62+FQ+I{0.2}": "",
    "Poisson": "",
    "Poisson+F+I{0.1}+G4{0.6}": "",
}
MORPHOLOGY = ("MK", "MK+G4{0.6}", "MK+ASC", "MK+G4{0.6}+ASC", "ORDERED", "ORDERED+G4{0.6}")
BINARY = ("JC2+ASC", "GTR2+F{0.7,0.3}", "GTR2+F{0.7,0.3}+G4{0.6}+ASC")


def alignment_named(name: str) -> Alignment:
    """A data set by its name in the record, taxa called t1, t2, ...; of MrBayes's examples, the amino acids or morphology.

    `cynmix+variable` has its variable characters only, `cynmix+binary` those whose labels are 0 and 1.
    """
    name, _, kept = name.partition("+") if not name.startswith("DS") else (name, "", "")
    if name == "avian_ovomucoids":
        alignment = read_alignment(EXAMPLES / "avian_ovomucoids.nex")
    elif name == "cynmix":
        alignment = _morphology()
    elif name == "primates":
        alignment = read_alignment(EXAMPLES / "primates.nex")
    else:
        return dna_named(name)
    sites = alignment.sites
    if kept:
        sites = sites[:, np.bitwise_and.reduce(sites, axis=0) == 0]
    if kept == "binary":
        sites = np.where(sites == alignment.alphabet.everything, 3, sites)
        sites = sites[:, (sites <= 3).all(axis=0)].astype(np.uint8)
        alignment = replace(alignment, alphabet=BIN)
    return replace(alignment, taxa=tuple(f"t{i + 1}" for i in range(alignment.n_taxa)), sites=sites)


def _morphology() -> Alignment:
    """The 166 morphological characters of cynmix.nex: the first block of its matrix, sets of states as missing data."""
    text = (EXAMPLES / "cynmix.nex").read_text()
    rows = text.split("Matrix\n", 1)[1].split("\n\n", 1)[0].strip().split("\n")
    fasta = "".join(f">{name}\n{re.sub('{[0-9]+}', '?', characters)}\n" for name, characters in map(str.split, rows))
    return parse_alignment(fasta, seqtype="MORPH")


def without_open_columns(alignment: Alignment) -> Alignment:
    """Without the columns in which several states are possible for all taxa at once."""
    shared = np.bitwise_and.reduce(alignment.sites, axis=0)
    return replace(alignment, sites=alignment.sites[:, (shared & (shared - 1)) == 0])


def write(folder: Path, alignment: Alignment) -> None:
    rows = [alignment.alphabet.decode(row) for row in alignment.sites]
    (folder / "data.phy").write_text(phylip.write(alignment.taxa, rows))


def values(data: str, models: dict[str, str], kind: str, tree: str) -> list[dict]:
    """Both programs' log-likelihoods."""
    records = []
    alignment = alignment_named(data)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "tree.nwk").write_text(tree + "\n")
        for model, phyml in models.items():
            record = {"data": data, "model": model}
            write(folder, alignment)
            command = IQTREE.replace("MODEL", model) + ("" if kind == "nt" else f" -st {kind.upper()}")
            record["iqtree"] = run(command, folder, "data.phy.iqtree", r"Log-likelihood of the tree: (\S+)")
            if phyml:
                write(folder, without_open_columns(alignment))
                command = PHYML.replace("TYPE", kind).replace("OPTIONS", phyml)
                record["phyml"] = run(command, folder, "data.phy_phyml_stats.txt", r"Log-likelihood:\s*(\S+)")
            print(record, flush=True)
            records.append({**record, "tree": tree})
    return records


def random_tree(alignment: Alignment, seed: int) -> str:
    tree = random_binary_tree(alignment.n_taxa, np.random.default_rng(seed), alignment.taxa)
    return newick.write(tree.with_lengths(np.maximum(tree.length, 0.001)), digits=6)


def joined_tree(alignment: Alignment) -> str:
    """The BIONJ tree of distances under equal rates of all changes."""
    tips = alignment.alphabet.indicators(alignment.sites)
    known = alignment.sites != alignment.alphabet.everything
    both = (known[:, None] & known[None]).sum(axis=2)
    different = ((tips[:, None] * tips[None]).sum(axis=2) == 0).sum(axis=2) / np.maximum(both, 1)
    share = 1 - 1 / alignment.alphabet.n_states
    tree = bionj(-share * np.log(1 - np.minimum(different, 0.9 * share) / share), alignment.taxa)
    return newick.write(tree.with_lengths(np.maximum(tree.length, 0.001)), digits=6)


def mrbayes(alignment: Alignment, tree: str, rates: str) -> float:
    """MrBayes's log-likelihood of a tree: each character has as many states as its highest label needs."""
    shape = "shapepr=fixed(0.6)" if rates != "equal" else ""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        text = write_alignment(alignment, "nexus")
        (folder / "data.nex").write_text(re.sub(' SYMBOLS="[^"]*"', "", text))
        (folder / "tree.nex").write_text(f"#NEXUS\nbegin trees;\ntree given = {tree}\nend;\n")
        (folder / "commands").write_text(MRBAYES.replace("RATES", f"rates={rates}").replace("SHAPE", shape))
        said = subprocess.run(["mb", "commands"], cwd=folder, capture_output=True, text=True, check=False).stdout
    found = re.search(r"Chain 1 -- (-\S+) --", said)
    assert found, said
    return float(found.group(1))


def main() -> None:
    dna, others, by_character = [], [], []
    for name, models in DATA.items():
        for kind, tree in trees_of(name, alignment_named(name)).items():
            chosen = {model: DNA[model] for model in models}
            dna += [{**record, "kind": kind} for record in values(name, chosen, "nt", tree)]
    birds = alignment_named("avian_ovomucoids")
    others += values("avian_ovomucoids", AMINO_ACIDS, "aa", joined_tree(birds))
    # Without PhyML, which loses factors of 2^256 on trees as long as this.
    others += values("avian_ovomucoids", dict.fromkeys(AMINO_ACIDS, ""), "aa", random_tree(birds, 1))
    wasps = random_tree(alignment_named("cynmix"), 2)
    for name, models in (("cynmix", MORPHOLOGY), ("cynmix+variable", MORPHOLOGY), ("cynmix+binary", BINARY)):
        kind = "bin" if name.endswith("binary") else "morph"
        fitting = [model for model in models if not (name == "cynmix" and "ASC" in model)]
        others += values(name, dict.fromkeys(fitting, ""), kind, wasps)
    for rates, model in (("equal", "MK+ASC"), ("gamma", "MK+G4{0.6}+ASC")):
        value = mrbayes(alignment_named("cynmix+variable"), wasps, rates)
        by_character.append({"data": "cynmix+variable", "model": model, "mrbayes": value, "tree": wasps})
        print(by_character[-1])
    record = {
        "versions": {
            "iqtree": version("iqtree2 --version", r"IQ-TREE.* version \S+"),
            "phyml": version("phyml --version", r"PhyML version \S+"),
            "mrbayes": version("mb -v", r"MrBayes,? .*"),
        },
        "commands": {
            "iqtree": IQTREE + " [-st AA|MORPH|BIN]",
            "phyml": PHYML,
            "phyml's options": {model: options for model, options in (DNA | AMINO_ACIDS).items() if options},
            "mrbayes": MRBAYES,
        },
        "dna": dna,
        "others": others,
        "by_character": by_character,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
