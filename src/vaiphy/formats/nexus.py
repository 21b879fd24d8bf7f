"""NEXUS tree files: TREES blocks with and without TRANSLATE, weights and rooting marks, in and out.

The matrices of DATA and CHARACTERS blocks are read by `nexus_data`.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vaiphy.formats import newick
from vaiphy.formats.limits import VertexCount
from vaiphy.formats.nexus_blocks import Command, commands, unquoted, without_comments, words
from vaiphy.trees.tree import Tree, TreeError

_TREE = re.compile(r"\s*\*?\s*('(?:[^'\n]|'')*'|[^\s=\[]+)\s*((?:\[[^\]]*\]\s*)*)=\s*((?:\[[^\]]*\]\s*)*)")
_WEIGHT = re.compile(r"\[&W\s+([0-9.eE+-]+)\s*(?:/\s*([0-9.eE+-]+)\s*)?\]", re.IGNORECASE)
_ROOTING = re.compile(r"\[&([RU])\]", re.IGNORECASE)
_NOTHING = re.compile(r"[\s,]*+\Z")
_PAIR = re.compile(r"\s*('(?:[^'\n]|'')*'|[^\s,]+)\s+('(?:[^'\n]|'')*'|[^\s,]+)\s*")


@dataclass(frozen=True)
class TreeEntry:
    """A tree of a file with its name, its weight (`[&W 1/3]`) and whether it is marked as rooted; None where unsaid."""

    tree: Tree
    name: str = ""
    weight: float | None = None
    rooted: bool | None = None


def read_trees(text: str, taxa: Sequence[str] | None = None) -> list[TreeEntry]:
    """All trees of all TREES blocks.

    Taxa are numbered as in `taxa`, else as in the TAXLABELS or the TRANSLATE table, else as they appear in the first
    tree. Raises `TreeError` with the line and the name of the tree.
    """
    entries: list[TreeEntry] = []
    labels: list[str] = []
    table: dict[str, str] = {}
    names: newick.Names | None = None
    vertices = VertexCount()
    for command in commands(text, comments=True):
        if command.block == "taxa" and command.word == "taxlabels":
            labels = words(without_comments(command.text))
        elif command.block == "trees" and command.word == "translate":
            table = _table(command)
            names = None
        elif command.block == "trees" and command.word in ("tree", "utree"):
            if not command.complete:
                raise TreeError(f"line {command.line}: the tree is not ended by ';'; is the file truncated?")
            try:
                if message := vertices.add(command.text):
                    raise TreeError(message)
                if names is None:
                    names = _names(taxa, labels, table, entries)
                entry = _entry(command, names)
            except TreeError as error:
                raise TreeError(*(f"line {command.line}: {problem}" for problem in error.problems)) from None
            entries.append(entry)
            names = names or newick.Names(entry.tree.taxa)
    if not entries:
        raise TreeError("no TREES block with a tree found")
    return entries


def write_trees(
    entries: Iterable[TreeEntry | Tree],
    translate: bool = True,
    comment: str = "",
    digits: int | None = None,
    lengths: bool = True,
    support: bool = True,
    comments: bool = True,
) -> str:
    """A NEXUS file with one TREES block; all trees are on the same taxa.

    `translate` writes numbers for the taxa with a TRANSLATE table; `comment` goes to the top of the file; the others are
    as in `newick.write`. Trees without a rooting mark are marked as unrooted.
    """
    rows = [entry if isinstance(entry, TreeEntry) else TreeEntry(entry) for entry in entries]
    if not rows:
        raise TreeError("there are no trees to write")
    taxa = rows[0].tree.taxa
    if any(row.tree.taxa != taxa for row in rows):
        raise TreeError("the trees are not on the same taxa in the same order")
    quoted = [newick.quoted(taxon) for taxon in taxa]
    lines = ["#NEXUS"]
    if comment:
        lines.append("[" + comment.replace("[", "(").replace("]", ")") + "]")
    lines += ["BEGIN TAXA;", f"  DIMENSIONS NTAX={len(taxa)};", "  TAXLABELS"]
    lines += [f"    {name}" for name in quoted] + ["  ;", "END;", "BEGIN TREES;"]
    if translate:
        lines.append("  TRANSLATE")
        lines += [f"    {k} {name}," for k, name in enumerate(quoted, 1)]
        lines[-1] = lines[-1].removesuffix(",") + ";"
    numbers = [str(k) for k in range(1, len(taxa) + 1)] if translate else None
    for k, row in enumerate(rows, 1):
        text = newick.write(row.tree, lengths, support, comments=comments, digits=digits, names=numbers)
        weight = "" if row.weight is None else f"[&W {row.weight!r}] "
        name = newick.quoted(row.name or f"tree_{k}")
        lines.append(f"  TREE {name} = {weight}[&{'R' if row.rooted else 'U'}] {text}")
    return "\n".join([*lines, "END;", ""])


def _entry(command: Command, names: newick.Names | None) -> TreeEntry:
    head = _TREE.match(command.text)
    if head is None:
        raise TreeError("a TREE command must read TREE name = (...)")
    marks = head[2] + head[3]
    rooting = _ROOTING.search(marks)
    rooted = rooting[1].upper() == "R" if rooting else (False if command.word == "utree" else None)
    name = unquoted(head[1])
    try:
        tree = newick.read(command.text[head.end() :], names)
    except TreeError as error:
        raise TreeError(*(f"tree {name!r}: {problem}" for problem in error.problems)) from None
    return TreeEntry(tree, name, _weight(marks), rooted)


def _weight(marks: str) -> float | None:
    found = _WEIGHT.search(marks)
    if found is None:
        return None
    try:
        weight = float(found[1]) / float(found[2] or 1)
    except (ValueError, ZeroDivisionError, OverflowError):
        weight = -1.0
    if not 0 <= weight < float("inf"):
        raise TreeError(f"{found[0]} is not a weight")
    return weight


def _names(taxa: Sequence[str] | None, labels: list[str], table: dict[str, str], entries: list[TreeEntry]) -> newick.Names | None:
    if taxa is None:
        taxa = entries[0].tree.taxa if entries else (labels or list(table.values()))
    return newick.Names(taxa, table) if taxa else None


def _table(command: Command) -> dict[str, str]:
    """The TRANSLATE table: what stands in the trees -> names."""
    text = without_comments(command.text)
    table: dict[str, str] = {}
    position = 0
    while not _NOTHING.match(text, position):
        pair = _PAIR.match(text, position)
        if pair is None:
            raise TreeError(f"line {command.line}: the TRANSLATE table is not a list of pairs 'key name,'")
        table[unquoted(pair[1])] = unquoted(pair[2])
        position = pair.end()
        if position < len(text) and text[position] == ",":
            position += 1
        elif position < len(text):
            raise TreeError(f"line {command.line}: a comma is missing in the TRANSLATE table after {pair[2]}")
    return table
