"""A `mrbayes` block: its lset, prset, partition, link, outgroup and constraint lines as models, priors and constraints of ours.

MrBayes's own defaults hold where the block is silent: nst=1 with free frequencies (F81), equal rates, the Poisson model for amino
acids, Mk for characters of which the constant ones were not scored, compound Dirichlet branch lengths. Whatever is not
understood is named, one line each. Words may be shortened as in MrBayes (`app` for applyto).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from vaiphy.formats.nexus_blocks import Command, commands, words

#: MrBayes's prior of branch lengths unless told.
DEFAULT_LENGTHS = "gammadir(1,0.1,1,1)"
#: Nucleotide models by nst: with equal and with free frequencies.
NUCLEOTIDES = {"1": ("JC", "F81"), "2": ("K80", "HKY"), "6": ("SYM", "GTR")}
AMINO_ACIDS = {
    "poisson": "Poisson", "jones": "JTT", "dayhoff": "Dayhoff", "mtrev": "mtREV", "wag": "WAG", "cprev": "cpREV", "vt": "VT",
    "blosum": "Blosum62", "blosum62": "Blosum62", "lg": "LG", "equalin": "Poisson+FO",
}  # fmt: skip
RATES = {"equal": "", "gamma": "+G{k}", "propinv": "+I", "invgamma": "+I+G{k}"}
#: What a part may be told by lset and prset, and options about all of them.
_LSET = ("applyto", "nst", "rates", "ngammacat", "coding")
_PRSET = (
    "applyto", "statefreqpr", "aamodelpr", "brlenspr", "ratepr", "topologypr", "tratiopr", "revmatpr", "shapepr", "pinvarpr",
)  # fmt: skip
#: Parameters that parts share unless they are unlinked.
LINKED = ("statefreq", "revmat", "tratio", "shape", "pinvar")
_OPTION = re.compile(r"([A-Za-z]\w*)\s*=\s*([^\s=()]*\s*(?:\([^)]*\))?)|(\S+)")
_WHOLE = re.compile("[0-9]{1,9}")
_CONSTRAINT = re.compile(r"\s*(\S+)\s*(?:(hard|partial|negative)\s*|(-?[\d.]+)\s*)?=\s*(.*)", re.DOTALL | re.IGNORECASE)


@dataclass
class Constraint:
    """A constraint line: the taxa of the clade and, if it is partial, those of the other side."""

    kind: str
    clade: list[str]
    others: list[str]


@dataclass
class Block:
    """What a block says. `parts[k]` are the options of part k + 1, `common` those of all parts (both small letters)."""

    partition: str = ""
    common: dict[str, str] = field(default_factory=dict)
    parts: dict[int, dict[str, str]] = field(default_factory=dict)
    length_prior: str = DEFAULT_LENGTHS
    rates_free: bool = False
    unlinked: set[str] = field(default_factory=set)
    outgroup: str = ""
    constraints: dict[str, Constraint] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def option(self, part: int, name: str, default: str) -> str:
        return self.parts.get(part, {}).get(name, self.common.get(name, default))


def has_block(text: str) -> bool:
    """Whether there is a mrbayes block with anything in it."""
    return any(command.block == "mrbayes" and command.word not in ("begin", "end") for command in commands(text))


def read_block(text: str, taxa: Sequence[str]) -> Block:
    """All mrbayes blocks of a NEXUS text, in order."""
    block = Block()
    sets: dict[str, list[str]] = {}
    for command in commands(text):
        if command.block != "mrbayes" or command.word in ("begin", "end", "charset", "partition"):
            continue
        if command.word in ("lset", "prset", "set", "link", "unlink"):
            _options(command, block)
        elif command.word == "outgroup":
            block.outgroup = ",".join(_taxa(command.text, taxa, sets, command, block)[:1])
        elif command.word == "taxset" and "=" in command.text:
            name, _, rest = command.text.partition("=")
            sets[name.strip().lower()] = _taxa(rest, taxa, sets, command, block)
        elif command.word == "constraint" and (found := _CONSTRAINT.fullmatch(command.text)):
            clade, _, others = found[4].partition(":")
            kind = (found[2] or "hard").lower()
            if kind == "hard" and others:
                kind = "partial"
            both = [_taxa(side, taxa, sets, command, block) for side in (clade, others)]
            block.constraints[found[1].lower()] = Constraint(kind, *both)
        else:
            _unknown(block, command, f"'{command.word}{_start(command.text)}'")
    return block


def model_of_part(block: Block, part: int, kind: str) -> str:
    """The model string of a part (numbered from 1) with this kind of data: DNA, RNA, AA, MORPH or BIN."""
    rates = RATES[block.option(part, "rates", "equal")].format(k=block.option(part, "ngammacat", "4"))
    equal = block.option(part, "statefreqpr", "free") == "equal"
    if kind in ("DNA", "RNA"):
        return NUCLEOTIDES[block.option(part, "nst", "1")][not equal] + rates
    if kind == "AA":
        return AMINO_ACIDS[block.option(part, "aamodelpr", "poisson")] + rates
    # Restriction sites (BIN) have free frequencies, and all of them count unless told; other characters neither.
    name, coding = ("MK", "variable") if kind == "MORPH" else ("JC2" if equal else "GTR2", "all")
    return name + rates + ("+ASC" if block.option(part, "coding", coding) == "variable" else "")


def shared_in_mrbayes(block: Block, models: Sequence[str]) -> list[str]:
    """Parameters that two parts would share in MrBayes, where they are the same unless unlinked; here each part has its own."""
    has = {
        "statefreq": ("F81", "HKY", "GTR", "+FO"), "revmat": ("SYM", "GTR"), "tratio": ("K80", "HKY"), "shape": ("+G",),
        "pinvar": ("+I",),
    }  # fmt: skip
    return [
        name
        for name in LINKED
        if name not in block.unlinked and sum(any(word in model for word in has[name]) for model in models) > 1
    ]


def _options(command: Command, block: Block) -> None:
    """One lset, prset, set, link or unlink line."""
    found: list[tuple[str, str]] = []
    for name, value, other in _OPTION.findall(command.text):
        if other:
            _unknown(block, command, f"'{other}' in {command.word}")
        else:
            found.append((name.lower(), re.sub(r"\s+", "", value).lower()))
    if command.word in ("link", "unlink"):
        _linking(command, found, block)
        return
    known = {"lset": _LSET, "prset": _PRSET, "set": ("partition",)}[command.word]
    full = [(_completed(name, known), name, value) for name, value in found]
    chosen = next((value for key, _, value in full if key == "applyto"), "(all)").strip("()")
    parts = [] if chosen == "all" else [int(word) for word in chosen.split(",") if _WHOLE.fullmatch(word)]
    for key, name, value in full:
        if key == "applyto":
            continue
        if key == "" or not _apply(key, value, parts, block):
            _unknown(block, command, f"{name}={value} in {command.word}")


def _apply(key: str, value: str, parts: list[int], block: Block) -> bool:
    """Take one option over; whether it was understood."""
    inside = value[value.find("(") + 1 : -1] if value.endswith(")") else ""
    numbers = [word for word in inside.split(",") if word]
    flat = value.startswith("dirichlet(") and all(_is(word, 1.0) for word in numbers)
    if key == "partition":
        block.partition = value
    elif key == "ratepr":
        if value not in ("variable", "fixed") and not flat:
            return False
        block.rates_free = value != "fixed"
    elif key == "brlenspr":
        return _lengths(value, block)
    elif key == "topologypr":
        if value != "uniform" and not re.fullmatch(r"constraints?\(.*\)", value):
            return False
        block.used = numbers if value != "uniform" else []
    elif key in ("tratiopr", "revmatpr", "shapepr", "pinvarpr"):  # our priors are MrBayes's defaults: only these are understood
        beta = value.startswith("beta(") and all(_is(word, 1.0) for word in numbers)
        exponential = re.fullmatch(r"exp(?:onential)?\((.*)\)", value) is not None and _is(inside, 1.0)
        uniform = value.startswith("uniform(") and [_is(w, x) for w, x in zip(numbers, (0.0, 1.0))] == [True, True]
        return {"tratiopr": beta, "revmatpr": flat, "shapepr": exponential, "pinvarpr": uniform}[key]
    else:
        if key == "statefreqpr":
            value = "equal" if value == "fixed(equal)" else "free" if flat else ""
        elif key == "aamodelpr":
            value = inside if value.startswith("fixed(") and inside in AMINO_ACIDS else ""
        allowed = {"nst": tuple(NUCLEOTIDES), "rates": tuple(RATES), "coding": ("all", "variable")}.get(key)
        if not value or (allowed and value not in allowed) or (key == "ngammacat" and not _WHOLE.fullmatch(value)):
            return False
        for target in [block.parts.setdefault(k, {}) for k in parts] or [block.common, *block.parts.values()]:
            target[key] = value
    return True


def _lengths(value: str, block: Block) -> bool:
    found = re.fullmatch(r"unconstrained:(exp|exponential|gammadir)\(([-\d.,e+]+)\)", value)
    if found is None or len(found[2].split(",")) != (4 if found[1] == "gammadir" else 1):
        return False
    block.length_prior = f"{'gammadir' if found[1] == 'gammadir' else 'exp'}({found[2]})"
    return True


def _linking(command: Command, found: list[tuple[str, str]], block: Block) -> None:
    for name, value in found:
        key = _completed(name, LINKED)
        if not key or value != "(all)":
            _unknown(block, command, f"{name}={value} in {command.word}")
        elif command.word == "unlink":
            block.unlinked.add(key)
        else:
            block.unlinked.discard(key)


def _taxa(text: str, taxa: Sequence[str], sets: dict[str, list[str]], command: Command, block: Block) -> list[str]:
    """Names from names, numbers, ranges (`3-7`, `3-.`) and taxsets."""
    out: list[str] = []
    names = {taxon.lower(): taxon for taxon in taxa}
    for word in words(re.sub(r"(?<=[\d.])\s*-\s*(?=[\d.])", "-", text)):
        span = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}|\.))?", word)
        if word.lower() in names:
            out.append(names[word.lower()])
        elif word.lower() in sets:
            out += sets[word.lower()]
        elif word.lower() == "all":
            out += taxa
        elif span and 1 <= int(span[1]) <= len(taxa):
            last = len(taxa) if span[2] == "." else int(span[2] or span[1])
            out += taxa[int(span[1]) - 1 : last]
        else:
            _unknown(block, command, f"'{word}' (no taxon) in {command.word}")
    return list(dict.fromkeys(out))


def _completed(name: str, known: Sequence[str]) -> str:
    """The one word of `known` that begins like this, "" if there are none or several."""
    begins = [word for word in known if word.startswith(name)]
    return name if name in known else begins[0] if len(begins) == 1 else ""


def _is(word: str, value: float) -> bool:
    try:
        return float(word) == value
    except ValueError:
        return False


def _unknown(block: Block, command: Command, what: str) -> None:
    block.warnings.append(f"mrbayes block, line {command.line}: {what} is not understood and has no effect here")


def _start(text: str) -> str:
    short = " ".join(text.split())
    return (" " + short[:40] + ("..." if len(short) > 40 else "")) if short else ""
