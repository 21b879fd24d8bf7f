r"""Partition files: which sites share a model. Two ways to write them, told apart by `#NEXUS`.

RAxML and RAxML-NG, a part a line, with a model or a kind of data (DNA, AA, BIN, MULTI) in front:

    DNA, gene1 = 1-300\3, 500-600
    HKY+G4, gene2 = 301-499

NEXUS (IQ-TREE, MrBayes, PAUP*): `charset` and `charpartition` (or MrBayes's `partition`) commands in any block, the
charsets also in the alignment's own file. Without a charpartition all charsets of the file are parts.

    charpartition mine = HKY+G4: gene1, GTR+I+G4: gene2;
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment
from vaiphy.alphabets import Alphabet
from vaiphy.errors import InputError
from vaiphy.formats.files import is_file, read_text
from vaiphy.formats.nexus_blocks import is_nexus
from vaiphy.formats.nexus_sets import Draft, draft_of, drafts_named, nexus_drafts, nexus_sets
from vaiphy.formats.sitesets import Range, SiteSetError, describe_sites, parse_sites, sites_of
from vaiphy.models.grammar import parse

# Every piece ends at a character that it cannot hold, so that matching is a single pass; blanks around them are stripped later.
_LINE = re.compile(r"(?P<model>[^,={]++(?:\{[^}]*+\}[^,={]*+)*+),(?P<name>[^=]++)=(?P<sites>.*+)")


class PartitionError(InputError):
    """The partition cannot be used; `problems` lists everything found, each with its place."""


@dataclass(frozen=True)
class Subset:
    """A part: its name, its model ("" if none was given) and its sites.

    `str` writes it as a line of a RAxML-NG file, which `parse_subset` reads.
    """

    name: str
    model: str
    ranges: tuple[Range, ...]

    def __str__(self) -> str:
        return f"{self.model}, {self.name} = {', '.join(map(str, self.ranges))}"

    @property
    def sites(self) -> NDArray[np.int64]:
        """Indices of the sites, from 0."""
        return sites_of(self.ranges)


def read_partition(path: str | Path, alignment: Alignment, own_text: str = "") -> tuple[Subset, ...]:
    """The parts that a file describes, or, if there is no such file, a charpartition or charsets of the alignment's own.

    `own_text` is the NEXUS text that the alignment was read from, "" if it was another format. `path` may also be the name of
    a charpartition in it, or names of charsets with commas between. Raises `PartitionError` with all problems.
    """
    name = str(path)
    if own_text and not is_file(name):
        drafts = drafts_named(name, nexus_sets(own_text), alignment.source)
        if drafts is not None:
            return _checked(drafts, alignment, alignment.source)
    return parse_partition(read_text(path, PartitionError), alignment, name, own_text)


def parse_partition(text: str, alignment: Alignment, source: str = "partition", own_text: str = "") -> tuple[Subset, ...]:
    """The parts that a text describes; arguments as for `read_partition`."""
    return _checked(nexus_drafts(text, own_text) if is_nexus(text) else _raxml(text), alignment, source)


def parse_subset(line: str) -> Subset:
    """A part from its own `str`.

    >>> str(parse_subset("GTR{1,2,1,1,2}+G4, gene 1 = 1-300\\\\3, 7"))
    'GTR{1,2,1,1,2}+G4, gene 1 = 1-300\\\\3, 7'
    """
    found = _pieces(line)
    try:
        if found is None:
            raise SiteSetError("write MODEL, name = 1-300, 401-500\\3")
        return Subset(found[1], found[0], parse_sites(found[2], 2**53))
    except SiteSetError as problem:
        raise PartitionError(f"part '{line}': {problem.problems[0]}") from None


def blocks_of(alignment: Alignment) -> tuple[tuple[int, int, Alphabet], ...]:
    """(first site, behind the last site, alphabet), from 0; several in a mixed NEXUS file."""
    return alignment.blocks or ((0, alignment.n_sites, alignment.alphabet),)


def own_partition(alignment: Alignment) -> tuple[Subset, ...]:
    """The parts of an alignment that says itself what its sites are: one for each kind of data."""
    blocks = blocks_of(alignment)
    if len(blocks) == 1:
        return (Subset("all", "", (Range(1, alignment.n_sites),)),)
    kinds = [alphabet.name for _, _, alphabet in blocks]
    names = [kind if kinds.count(kind) == 1 else f"{kind}{kinds[: k + 1].count(kind)}" for k, kind in enumerate(kinds)]
    return tuple(Subset(name, "", (Range(start + 1, stop),)) for name, (start, stop, _) in zip(names, blocks))


def alphabet_at(alignment: Alignment, sites: NDArray[np.int64]) -> Alphabet | None:
    """The alphabet of some sites, None if they have different ones."""
    found = [alphabet for start, stop, alphabet in blocks_of(alignment) if ((sites >= start) & (sites < stop)).any()]
    names = {alphabet.name for alphabet in found}
    return max(found, key=lambda alphabet: alphabet.n_states) if len(names) == 1 else None


def _raxml(text: str) -> tuple[list[Draft], list[tuple[int, str]]]:
    drafts: list[Draft] = []
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.split("#", 1)[0]
        if not line.strip():
            continue
        found = _pieces(line)
        if found is None:
            problems.append((number, f"'{line.strip()}' is not a part; write MODEL, name = 1-300, 401-500\\3"))
        else:
            draft = draft_of(found[1].strip("'\""), found[0], found[2], number)
            drafts.append(draft)
            if not draft.model and not draft.kind:
                problems.append((number, f"part '{draft.name}': '{found[0]}' is neither a model nor DNA, AA, BIN or MULTI"))
    if not drafts and not problems:
        problems.append((0, "no parts found"))
    return drafts, problems


def _pieces(line: str) -> tuple[str, str, str] | None:
    """Model or kind of data, name and sites of a line, None if it is no part."""
    found = _LINE.fullmatch(line.strip())
    if found is None or not found["name"].strip():
        return None
    return found["model"].strip(), found["name"].strip(), found["sites"].strip().removesuffix(";").rstrip()


def _checked(found: tuple[list[Draft], list[tuple[int, str]]], alignment: Alignment, source: str) -> tuple[Subset, ...]:
    """The parts, or everything that is wrong with them."""
    drafts, problems = found[0], list(found[1])
    n_sites, subsets = alignment.n_sites, []
    owner = np.full(n_sites, -1)
    broken = bool(problems)
    seen: dict[str, int] = {}
    for k, draft in enumerate(drafts):
        label = f"part '{draft.name}'"
        if draft.name.lower() in seen:
            problems.append((draft.line, f"{label} is already in line {seen[draft.name.lower()]}; names must differ"))
        seen.setdefault(draft.name.lower(), draft.line)
        try:
            ranges = parse_sites(draft.sites, n_sites, draft.charsets)
        except SiteSetError as error:
            problems += [(draft.line, f"{label}: {problem}") for problem in error.problems]
            broken = True
            continue
        sites = sites_of(ranges)
        problems += [(draft.line, f"{label}: {problem}") for problem in _content_problems(draft, sites, alignment)]
        for other in np.unique(owner[sites]).tolist():
            if other >= 0:
                shared = describe_sites(sites[owner[sites] == other])
                problems.append(
                    (draft.line, f"{label}: {shared} already in part '{drafts[other].name}' (line {drafts[other].line})")
                )
        owner[sites] = k
        subsets.append(Subset(draft.name, draft.model, ranges))
    left = np.flatnonzero(owner < 0)
    if len(left) and drafts and not broken:  # where a part could not be read, what is left out says nothing
        problems.append(
            (0, f"{describe_sites(left)} in no part ({len(left)} in all); give a part to every site of the alignment")
        )
    if problems:
        ordered = sorted(problems, key=lambda problem: problem[0])
        raise PartitionError(*(f"{source}, line {line}: {text}" if line else f"{source}: {text}" for line, text in ordered))
    return tuple(subsets)


def _content_problems(draft: Draft, sites: NDArray[np.int64], alignment: Alignment) -> list[str]:
    """What is wrong with a part that can be read."""
    if len(sites) == 0:
        return ["it has no sites"]
    distinct, times = np.unique(sites, return_counts=True)
    problems = [f"{describe_sites(distinct[times > 1])} listed twice"] if (times > 1).any() else []
    if len(distinct) == 1:
        problems.append("it has one site only; join it to another part")
    alphabet = alphabet_at(alignment, sites)
    if alphabet is None:
        kinds = ", ".join(f"{a.name} {start + 1}-{stop}" for start, stop, a in blocks_of(alignment))
        return [*problems, f"its sites are of different kinds ({kinds}); make parts of one kind each"]
    if draft.kind and not _same_kind(draft.kind, alphabet):
        problems.append(f"the partition says {draft.kind}, but the alignment has {alphabet.kind} there")
    if draft.model:
        try:
            parse(draft.model, alphabet)
        except InputError as error:
            problems += error.problems
    return problems


def _same_kind(kind: str, alphabet: Alphabet) -> bool:
    characters = ("BIN", "MORPH")
    own = "DNA" if alphabet.is_nucleotides else alphabet.name
    return kind == own or (kind in characters and own in characters)
