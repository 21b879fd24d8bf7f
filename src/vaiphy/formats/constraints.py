"""Topological constraints as people write them: a constraint tree, or clades by the names of their taxa.

A constraint tree (IQ-TREE's `-g`) is a Newick or NEXUS tree, multifurcating where nothing is said, of all taxa or of some: every
split of it must be in a tree, once taxa that the constraint tree does not have are taken off. A clade is the split of its taxa
from all others, since trees are unrooted.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vaiphy.errors import InputError
from vaiphy.formats import newick
from vaiphy.formats.files import is_file
from vaiphy.formats.nexus_blocks import unquoted
from vaiphy.formats.trees import parse_trees, read_trees
from vaiphy.trees.constraints import Clade, Constraint, conflict, constrained, short_list
from vaiphy.trees.tree import Tree, TreeError

_NAME = re.compile(r"\s*('(?:[^']|'')*'|[^,]+)\s*,?")


class ConstraintError(InputError):
    """The constraints cannot be used; `problems` lists everything found."""


@dataclass(frozen=True)
class Wanted:
    """Required and forbidden splits as sets of taxa (numbers), and the taxa that the required ones are about."""

    required: tuple[Clade, ...]
    forbidden: tuple[Clade, ...]
    bound: Clade


def wanted(
    taxa: Sequence[str],
    tree: str | Path | None = None,
    monophyletic: Iterable[Sequence[str]] = (),
    not_monophyletic: Iterable[Sequence[str]] = (),
) -> Wanted | None:
    """What a constraint tree (a file, or a Newick string) and lists of names ask for; None if nothing is asked for.

    Raises `ConstraintError` with all problems.
    """
    together, apart = list(monophyletic), list(not_monophyletic)
    if tree is None and not together and not apart:
        return None
    problems: list[str] = []
    everything = frozenset(range(len(taxa)))
    index = newick.Names(taxa).index
    clades = [_clade(names, "monophyletic", index, taxa, problems) for names in together]
    against = [_clade(names, "not monophyletic", index, taxa, problems) for names in apart]
    from_tree, bound = ([], everything) if tree is None else _splits(tree, index, taxa, problems)
    if bound != everything and (clades or against) and not problems:
        problems.append(
            f"the constraint tree has {len(bound)} of the {len(taxa)} taxa; such a tree cannot be used together with clades that "
            "are required or forbidden by name: put all taxa into the tree, or take these clades away"
        )
    if problems:
        raise ConstraintError(*problems)
    required = [*from_tree, *clades]
    if pair := conflict(required, bound):
        a, b = (short_list(required[k], bound, taxa) for k in pair)
        raise ConstraintError(
            f"no tree has both the clade {a} and the clade {b}: they overlap without one being inside the other"
        )
    if both := [clade for clade in against if _side(clade, bound) in {_side(other, bound) for other in required}]:
        raise ConstraintError(f"the clade {short_list(both[0], bound, taxa)} is required and forbidden at once")
    return Wanted(tuple(required), tuple(against), bound)


def lines_of(want: Wanted | None, taxa: Sequence[str]) -> tuple[str, ...]:
    """The same in lines that settings record and `constraint_of` reads."""
    if want is None:
        return ()

    def line(word: str, clade: Clade) -> str:
        return f"{word}: " + ", ".join(newick.quoted(taxa[t]) for t in sorted(clade))

    partial = [line("among", want.bound)] if len(want.bound) < len(taxa) else []
    return (*partial, *(line("has", c) for c in want.required), *(line("lacks", c) for c in want.forbidden))


def constraint_of(lines: Sequence[str], taxa: Sequence[str]) -> Constraint | None:
    """The constraint that lines of `lines_of` describe.

    >>> constraint_of(["has: b, c"], "abcde").n_trees
    3
    """
    if not lines:
        return None
    number = {name: k for k, name in enumerate(taxa)}
    clades: dict[str, list[Clade]] = {"among": [], "has": [], "lacks": []}
    for line in lines:
        word, _, names = line.partition(": ")
        found = [unquoted(name.strip()) for name in _NAME.findall(names)]
        if word not in clades or not all(name in number for name in found):
            raise ConstraintError(f"{line!r} is not a constraint on these taxa")
        clades[word].append(frozenset(number[name] for name in found))
    return constrained(len(taxa), clades["has"], clades["lacks"], clades["among"][0] if clades["among"] else None)


def _clade(names: Sequence[str], what: str, index: dict[str, int], taxa: Sequence[str], problems: list[str]) -> Clade:
    option = "--" + what.replace(" ", "-")
    shown = ",".join(names)
    unknown = [name for name in names if name not in index]
    found = frozenset(index[name] for name in names if name in index)
    if unknown:
        plural = f"{', '.join(map(repr, unknown[:5]))} {'is' if len(unknown) == 1 else 'are'}"
        problems.append(f"{option} {shown}: {plural} not among the {len(taxa)} taxa of the alignment")
    elif len(found) < len(names):
        problems.append(f"{option} {shown}: a taxon is named twice")
    elif not 2 <= len(found) <= len(taxa) - 2:
        every = "no taxon" if not found else "one taxon" if len(found) == 1 else (
            "all taxa" if len(found) == len(taxa) else "all taxa but one"
        )  # fmt: skip
        problems.append(
            f"{option} {shown}: {every}, so every tree has this split; name two taxa or more, and leave out two or more"
        )
    return found


def _splits(tree: str | Path, index: dict[str, int], taxa: Sequence[str], problems: list[str]) -> tuple[list[Clade], Clade]:
    """Splits of a constraint tree and its taxa, numbered as in the alignment."""
    source, found = _read(tree)
    unknown = [name for name in found.taxa if name not in index]
    if unknown:
        problems.append(f"{source}: {', '.join(map(repr, unknown[:5]))} not among the {len(taxa)} taxa of the alignment")
        return [], frozenset(range(len(taxa)))
    number = [index[name] for name in found.taxa]
    bound = frozenset(number)
    if len(bound) < len(number):
        problems.append(f"{source}: two names mean the same taxon of the alignment")
        return [], frozenset(range(len(taxa)))
    below = _below(found)
    clades = [frozenset(number[t] for t in below[v]) for v in range(found.n_taxa, found.n_vertices)]
    splits = [clade for clade in clades if 2 <= len(clade) <= len(bound) - 2]
    distinct = list({_side(clade, bound): clade for clade in splits}.values())
    if not distinct:
        problems.append(f"{source}: the constraint tree groups no taxa, so nothing is required; put two or more into parentheses")
    return distinct, bound


def _read(tree: str | Path) -> tuple[str, Tree]:
    text = str(tree)
    given = "(" in text and not is_file(text)
    source = "constraint tree" if given else text
    try:
        entries = parse_trees(text) if given else read_trees(text)
    except TreeError as error:
        raise ConstraintError(*(f"constraint tree: {p}" if given else p for p in error.problems)) from None
    if len(entries) != 1:
        raise ConstraintError(f"{source}: {len(entries)} trees; a constraint is one tree")
    return source, entries[0].tree


def _below(tree: Tree) -> list[set[int]]:
    """The taxa below each vertex."""
    below = [{v} if v < tree.n_taxa else set() for v in range(tree.n_vertices)]
    order = [tree.root]
    for v in order:
        order += tree.children[v]
    for v in reversed(order):
        for child in tree.children[v]:
            below[v] |= below[child]
    return below


def _side(clade: Clade, of: Clade) -> Clade:
    return of - clade if min(of) in clade else clade
