"""`charset`, `charpartition` and MrBayes's `partition` commands of NEXUS files, as IQ-TREE, MrBayes and PAUP* write them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from vaiphy.formats.nexus_blocks import Command, commands, unquoted
from vaiphy.models.braces import split_outside_braces
from vaiphy.models.grammar import AA_MODELS, alphabet_for

#: What partition files call kinds of data -> our names.
KINDS = {
    "DNA": "DNA", "NT": "DNA", "RNA": "DNA", "AA": "AA", "PROT": "AA", "PROTEIN": "AA", "BIN": "BIN", "BINARY": "BIN",
    "MULTI": "MORPH", "MORPH": "MORPH", "STANDARD": "MORPH",
}  # fmt: skip
_ASSIGNED = re.compile(
    r"\s*(?P<star>\*?)\s*(?P<name>'(?:[^'\n]|'')*+'|[^\s=(*]++)\s*+(?:\([^)]*+\)\s*+)?+=\s*(?P<rest>.*)", re.DOTALL
)
_OTHER_FILE = re.compile(r"\s*[^\s:,]+\.[^\s:,]+\s*:")
_KIND = re.compile(r"\s*([A-Za-z]+)\s*,(.*)", re.DOTALL)

Problems = list[tuple[int, str]]


@dataclass(frozen=True)
class Draft:
    """A part as a file has it: its sites are a text that may name charsets; `model` and `kind` are "" if not given."""

    name: str
    model: str
    kind: str
    sites: str
    line: int
    charsets: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Sets:
    """What the sets of a NEXUS file say: charsets (name in small letters -> text), their names, kinds and lines, partitions."""

    charsets: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, tuple[str, int]] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)
    problems: Problems = field(default_factory=list)


def draft_of(name: str, label: str, sites: str, line: int, charsets: Mapping[str, str] | None = None) -> Draft:
    """A part whose label is a model or a kind of data; neither is found in a label that is something else."""
    label = label.strip()
    kind = KINDS.get(label.upper(), "")
    return Draft(name, "" if kind else _model(label), kind, sites, line, charsets or {})


def nexus_sets(text: str) -> Sets:
    """All sets of a NEXUS text."""
    sets = Sets()
    for command in commands(text):
        if command.word in ("charset", "charpartition", "partition"):
            found = _ASSIGNED.fullmatch(command.text)
            if found is None:
                sets.problems.append((command.line, f"{command.word} needs a name, '=' and sites"))
                continue
            name = unquoted(found["name"])
            if command.word == "charset":
                _charset(command, name, found["rest"].strip(), sets)
            else:
                rest = re.sub(r"^\s*\d+\s*:", "", found["rest"]) if command.word == "partition" else found["rest"]
                begins = command.line + command.text[: found.start("rest")].count("\n")
                sets.partitions[name.lower()] = (rest, begins)
                sets.marked += [name.lower()] if found["star"] else []
    return sets


def nexus_drafts(text: str, own_text: str = "") -> tuple[list[Draft], Problems]:
    """The parts that a NEXUS partition file describes; charsets that it does not define may be in `own_text`."""
    sets = nexus_sets(text)
    own = nexus_sets(own_text) if own_text else Sets()
    charsets = {**own.charsets, **sets.charsets}
    if sets.partitions:
        chosen = sets.marked[-1:] or list(sets.partitions)
        if len(chosen) > 1:
            problem = f"several partitions ({', '.join(chosen)}); mark the one to use with *"
            return [], [*sets.problems, (sets.partitions[chosen[1]][1], problem)]
        return _items(
            *sets.partitions[chosen[0]], charsets, {**own.names, **sets.names}, {**own.kinds, **sets.kinds}
        ), sets.problems
    if not sets.charsets:
        return [], [*sets.problems, (0, "no charset or charpartition found")]
    return _every_charset(sets, charsets), sets.problems


def drafts_named(name: str, sets: Sets, source: str) -> tuple[list[Draft], Problems] | None:
    """The parts of a charpartition of this name, or of charsets with these names; None if there are none."""
    if name.lower() in sets.partitions:
        return _items(*sets.partitions[name.lower()], sets.charsets, sets.names, sets.kinds), sets.problems
    chosen = [word.strip().lower() for word in name.split(",")]
    if not any(word in sets.charsets for word in chosen):
        return None
    missing = [
        (0, f"there is no charset '{word}'; there are {', '.join(sets.names.values())}")
        for word in chosen
        if word not in sets.charsets
    ]
    return [_draft_of_charset(word, sets, sets.charsets) for word in chosen if word in sets.charsets], [*sets.problems, *missing]


def _every_charset(sets: Sets, charsets: Mapping[str, str]) -> list[Draft]:
    return [_draft_of_charset(name, sets, charsets) for name in sets.charsets]


def _draft_of_charset(name: str, sets: Sets, charsets: Mapping[str, str]) -> Draft:
    return Draft(sets.names[name], "", sets.kinds.get(name, ""), sets.charsets[name], sets.lines[name], charsets)


def _charset(command: Command, name: str, rest: str, sets: Sets) -> None:
    key = name.lower()
    if other := _OTHER_FILE.match(rest):
        file = other[0].strip().rstrip(":").strip()
        sets.problems.append((command.line, f"charset '{name}' is about another file ({file}); put all sites into one alignment"))
        return
    if (kind := _KIND.fullmatch(rest)) and kind[1].upper() in (*KINDS, "CODON"):
        if kind[1].upper() == "CODON":
            sets.problems.append((command.line, f"charset '{name}': codon models are not supported; write DNA"))
        else:
            sets.kinds[key] = KINDS[kind[1].upper()]
        rest = kind[2]
    if key in sets.charsets:
        sets.problems.append((command.line, f"charset '{name}' is already in line {sets.lines[key]}; names must differ"))
    sets.charsets[key], sets.names[key], sets.lines[key] = rest, name, command.line


def _items(text: str, line: int, charsets: Mapping[str, str], names: Mapping[str, str], kinds: Mapping[str, str]) -> list[Draft]:
    """`MODEL: charset` (IQ-TREE), `name: sites` (NEXUS) or a charset alone (MrBayes), with commas between."""
    drafts: list[Draft] = []
    for item in split_outside_braces(text, ","):
        at = line + item[: len(item) - len(item.lstrip())].count("\n")
        line += item.count("\n")
        label, sites = _labelled(item)
        key = unquoted(sites).lower()
        draft = draft_of(names.get(key, sites), label, sites, at, charsets)
        name = draft.name if draft.model or draft.kind else unquoted(label) or draft.name
        drafts.append(Draft(name, draft.model, draft.kind or kinds.get(key, ""), sites, at, charsets))
    return drafts


def _labelled(item: str) -> tuple[str, str]:
    """What stands before and behind the first colon outside braces."""
    parts = [part.strip() for part in split_outside_braces(item, ":", 1)]
    return (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])


def _model(label: str) -> str:
    """The model that a label names, "" if it names none; RAxML's LGF and LGX are LG+F and LG+FO."""
    if alphabet_for(label):
        return label
    amino = {name.upper(): name for name in AA_MODELS}
    if label[:-1].upper() in amino and label[-1:].upper() in ("F", "X"):
        return amino[label[:-1].upper()] + {"F": "+F", "X": "+FO"}[label[-1].upper()]
    return ""
