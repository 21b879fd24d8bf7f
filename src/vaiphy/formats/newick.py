"""Newick: trees as nested parentheses, in and out.

Labels may be quoted, comments and annotations (`[&prob=0.98]`) are kept with their vertex, and a number behind a closing
parenthesis is the support of the branch above it. Underscores are kept as they are: they are not turned into blanks.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite

import numpy as np

from vaiphy.formats.limits import VertexCount
from vaiphy.formats.names import turning
from vaiphy.formats.newick_text import NUMBER, nested, quoted, write
from vaiphy.formats.nexus_blocks import pieces, unquoted
from vaiphy.trees.tree import Tree, TreeError

# One match a vertex, without backtracking (possessive quantifiers), so that reading is a single pass. The alternatives: a
# mark before another "(", a mark with the vertex behind it, and anything else, which is an error.
_COMMENTS = r"(?>(?:\s*+\[[^\]]*+\])*+)"
_LABEL = r"'(?>(?:[^']++|'')*+)'|[^\s()\[\],:;']*+"
_TOKEN = re.compile(
    rf"([(,]){_COMMENTS}\s*+(?=\()"
    rf"|([(,)])({_COMMENTS})\s*+({_LABEL})({_COMMENTS})\s*+(?::({_COMMENTS})\s*+([-+0-9.eEaAfFiInN]*+)({_COMMENTS})\s*+)?"
    r"|(\S)"
)
_LEADING = re.compile(_COMMENTS)
_UNPLACED = -2

__all__ = ["Names", "nested", "quoted", "read", "read_trees", "write"]


class Names:
    """From words in the text to numbers of taxa, prepared once for many trees."""

    def __init__(self, taxa: Sequence[str], translate: Mapping[str, str] | None = None) -> None:
        self.taxa = tuple(taxa)
        if repeated := [taxon for taxon, times in Counter(self.taxa).items() if times > 1]:
            raise TreeError(f"taxon {repeated[0]!r} occurs twice")
        if strange := next((taxon for taxon in self.taxa if turning(taxon)), ""):
            raise TreeError(f"taxon {strange!r}: {turning(strange)} reverses the text that follows it; rename the taxon")
        if "" in self.taxa:
            raise TreeError("a leaf without a name")
        # Later entries win: exact names over other spellings, and the table of the file over both.
        self.index = {spelling: k for k, taxon in enumerate(self.taxa) for spelling in _spellings(taxon)}
        self.index.update({taxon: k for k, taxon in enumerate(self.taxa)})
        by_name = dict(self.index)  # a key of the table may be the name of another taxon
        for key, name in (translate or {}).items():
            if name not in by_name:
                raise TreeError(f"taxon {name!r} of the TRANSLATE table is not among the {len(self.taxa)} expected")
            self.index[key] = by_name[name]


def read(text: str, taxa: Sequence[str] | Names | None = None, inner_leaves: bool = False) -> Tree:
    """The tree in a Newick string (its `;` may be missing).

    With `taxa` the tree must hold exactly those, and they are numbered that way (an underscore matches a blank); without,
    taxa are numbered as they appear. Internal vertices are numbered as their parentheses close, so children come before
    parents. An internal vertex may carry a taxon if `taxa` says so; with `inner_leaves`, leaves that are not among `taxa`
    are internal vertices of degree one. Raises `TreeError`.

    >>> read("((a:1,b:2)0.9:0.5,c:1,d);").taxa
    ('a', 'b', 'c', 'd')
    """
    tokens = _tokens(text)
    if taxa is None:
        if other := next((token[-1] for token in tokens if token[-1]), ""):
            raise TreeError(_where(other, text))
        taxa = [unquoted(word) for _, mark, _, word, *_ in tokens if mark in ("(", ",")]
    return _build(tokens, taxa if isinstance(taxa, Names) else Names(taxa), inner_leaves, text)


def read_trees(text: str, taxa: Sequence[str] | None = None) -> list[Tree]:
    """All trees of a text, each ended by `;`; without `taxa`, the first tree gives the order for all."""
    trees: list[Tree] = []
    names = None if taxa is None else Names(taxa)
    vertices = VertexCount()
    for line, piece, complete in pieces(text, comments=True):
        try:
            if message := vertices.add(piece):
                raise TreeError(message)
            if not complete and trees:
                raise TreeError("not ended by ';'; is the file truncated?")
            trees.append(read(piece, names))
        except TreeError as error:
            first = line + piece.count("\n", 0, len(piece) - len(piece.lstrip()))
            place = f"line {first}, tree {len(trees) + 1}"
            raise TreeError(*(f"{place}: {problem}" for problem in error.problems)) from None
        names = names or Names(trees[0].taxa)
    return trees


def _tokens(text: str) -> list[tuple[str, ...]]:
    leading = _LEADING.match(text)
    body = text[leading.end() if leading else 0 :].strip()
    body = body.removesuffix(";").rstrip()
    if not body:
        raise TreeError("no tree found")
    return _TOKEN.findall(body if body[0] == "(" else "," + body)


def _build(tokens: list[tuple[str, ...]], names: Names, inner_leaves: bool, text: str) -> Tree:
    index, n_taxa = names.index, len(names.taxa)
    size = n_taxa + sum([token[1] == ")" for token in tokens])
    if inner_leaves:
        size += sum(token[1] in ("(", ",") and unquoted(token[3]) not in index for token in tokens)
    parent, length = [_UNPLACED] * size, [np.nan] * size
    words: dict[int, str] = {}
    comments: dict[int, str] = {}
    stack: list[list[int]] = [[]]
    inner, may_open = n_taxa, True
    for before_open, mark, note_first, word, note, note_before, number, note_after, other in tokens:
        if before_open or mark == "(":
            if (before_open or mark) == "(":
                if not may_open:
                    raise TreeError("a '(' that does not follow '(' or ','")
                stack.append([])
            if before_open:
                may_open = True
                continue
        may_open = False
        if mark == ")":
            if len(stack) < 2:
                raise TreeError("a ')' without its '('")
            vertex, inner = inner, inner + 1
            for child in stack.pop():
                parent[child] = vertex
            if word:
                words[vertex] = word
        elif mark:
            vertex = index.get(word, -1)
            if vertex < 0:
                vertex = index.get(unquoted(word), -1)
            if vertex < 0:
                if not inner_leaves:
                    raise TreeError(_unknown(unquoted(word), n_taxa))
                vertex, inner = inner, inner + 1
                if word:
                    words[vertex] = word
            if parent[vertex] != _UNPLACED:
                raise TreeError(f"taxon {names.taxa[vertex]!r} occurs twice")
        else:
            raise TreeError(_where(other, text))
        parent[vertex] = -1
        stack[-1].append(vertex)
        if number:
            try:
                length[vertex] = float(number)
            except ValueError:
                raise TreeError(f"{number!r} is not a branch length") from None
        if note_after or note_before or note or note_first:
            comments[vertex] = _inside(note_first + note + note_before + note_after)
    if len(stack) > 1:
        raise TreeError(f"{len(stack) - 1} '(' without ')'; is the text truncated?")
    if len(stack[0]) != 1:
        raise TreeError("more than one root: all vertices must be inside one pair of parentheses")
    return _finish(names, parent, length, words, comments)


def _finish(names: Names, parent: list[int], length: list[float], words: dict[int, str], comments: dict[int, str]) -> Tree:
    n_taxa = len(names.taxa)
    absent = [k for k in range(n_taxa) if parent[k] == _UNPLACED]
    if absent:
        _place_inside(absent, names, parent, length, words, comments)
    above, lengths = np.array(parent, dtype=np.int32), np.array(length)
    if np.isinf(lengths).any():
        raise TreeError("a branch length is infinite")
    if not words and not comments:
        return Tree(names.taxa, above, lengths)
    support, labels = np.full(len(above), np.nan), [""] * len(above)
    for vertex, word in words.items():
        if NUMBER.fullmatch(word) and isfinite(float(word)):
            support[vertex] = float(word)
        else:
            labels[vertex] = unquoted(word)
    return Tree(
        names.taxa,
        above,
        lengths,
        tuple(labels) if any(labels) else None,
        None if np.isnan(support).all() else support,
        tuple(comments.get(vertex, "") for vertex in range(len(above))) if comments else None,
    )


def _place_inside(
    absent: list[int],
    names: Names,
    parent: list[int],
    length: list[float],
    words: dict[int, str],
    comments: dict[int, str],
) -> None:
    """Taxa that are no leaves may be labels of internal vertices: give those vertices the numbers of the taxa."""
    wanted = set(absent)
    moved: dict[int, int] = {}
    for vertex, word in words.items():
        taxon = names.index.get(unquoted(word), -1)
        if taxon in wanted:
            wanted.remove(taxon)
            moved[vertex] = taxon
    if wanted:
        listed = ", ".join(repr(names.taxa[k]) for k in sorted(wanted)[:5]) + (" ..." if len(wanted) > 5 else "")
        raise TreeError(f"the tree lacks {len(wanted)} of the {len(names.taxa)} taxa: {listed}")
    rest = [vertex for vertex in range(len(names.taxa), len(parent)) if vertex not in moved]
    new = {vertex: len(names.taxa) + k for k, vertex in enumerate(rest)} | moved
    new |= {vertex: vertex for vertex in range(-1, len(names.taxa))}
    old = {number: vertex for vertex, number in new.items() if vertex >= 0 and parent[vertex] != _UNPLACED}
    order = [old[k] for k in range(len(parent) - len(moved))]
    parent[:] = [new[parent[vertex]] for vertex in order]
    length[:] = [length[vertex] for vertex in order]
    for store in (words, comments):
        renumbered = {new[vertex]: value for vertex, value in store.items() if not (store is words and vertex in moved)}
        store.clear()
        store.update(renumbered)


def _unknown(name: str, n_taxa: int) -> str:
    return f"taxon {name!r} is not among the {n_taxa} expected" if name else "a leaf without a name"


def _spellings(taxon: str) -> tuple[str, str]:
    return taxon.replace(" ", "_"), taxon.replace("_", " ")


def _inside(comments: str) -> str:
    """`[one] [two]` as `one][two`."""
    return "][".join(re.findall(r"\[([^\]]*)\]", comments))


def _where(character: str, text: str) -> str:
    for found in _TOKEN.finditer(text):
        if found[found.re.groups] is not None:
            excerpt = text[max(0, found.start() - 12) : found.start() + 12]
            return f"unexpected {character!r} at character {found.start() + 1}, in {excerpt!r}"
    return f"unexpected {character!r}"
