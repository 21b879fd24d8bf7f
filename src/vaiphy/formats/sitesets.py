r"""Sets of sites as partition files write them: `1-300`, `5`, `2-.\3` (every third up to the last), `all`, names of charsets.

Sites are numbered from 1 in files and messages, from 0 in arrays.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RANGE = re.compile(r"([0-9]{1,15})(?:-([0-9]{1,15}|\.)(?:[\\/]([0-9]{1,15}))?)?")
_SPACED = re.compile(r"(?<=[\d.])\s*([-\\/])\s*(?=[\d.])")
_TOKEN = re.compile(r"'(?:[^'\n]|'')*'|[^\s,']+")
_EVERYTHING = ("all", "*")
#: Charsets inside each other, and how often each site may be named on average (twice is told apart later, site by site).
_DEEPEST, _MOST_TIMES = 50, 10


@dataclass(frozen=True)
class Range:
    r"""Sites first, first + step, ... up to last, numbered from 1.

    >>> str(Range(1, 300, 3)), str(Range(5, 5))
    ('1-300\\3', '5')
    """

    first: int
    last: int
    step: int = 1

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}-{self.last}" + (f"\\{self.step}" if self.step > 1 else "")


class SiteSetError(ValueError):
    """What is wrong with a set of sites, a sentence each."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems


def parse_sites(text: str, n_sites: int, charsets: Mapping[str, str] | None = None) -> tuple[Range, ...]:
    r"""The ranges that a text names; `charsets` maps names (small letters) to their own texts. Raises `SiteSetError`.

    >>> [str(r) for r in parse_sites("1 - 9\\3, late 7", 20, {"late": "15-."})]
    ['1-9\\3', '15-20', '7']
    """
    found, problems = _Reading(n_sites, charsets or {}).ranges(text)
    if problems:
        raise SiteSetError(*problems)
    return tuple(found)


def sites_of(ranges: tuple[Range, ...]) -> NDArray[np.int64]:
    """The sites in order of appearance, from 0."""
    return np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(r.first - 1, r.last, r.step) for r in ranges)])


def describe_sites(sites: NDArray[np.int64], at_most: int = 4) -> str:
    """Sites (from 0) for a message: `site 7`, `sites 1-3, 9 and 17 more`.

    >>> describe_sites(np.array([0, 1, 2, 8]))
    'sites 1-3, 9'
    """
    ordered = np.unique(sites)
    runs = np.split(ordered, np.flatnonzero(np.diff(ordered) > 1) + 1)
    shown = [str(Range(int(run[0]) + 1, int(run[-1]) + 1)) for run in runs[:at_most]]
    rest = sum(len(run) for run in runs[at_most:])
    return f"site{'s' if len(ordered) > 1 else ''} {', '.join(shown)}" + (f" and {rest} more" if rest else "")


class _Reading:
    """One text and the charsets in it. Each charset is read once, however often and in however many others it occurs."""

    def __init__(self, n_sites: int, charsets: Mapping[str, str]) -> None:
        self._n_sites, self._charsets = n_sites, charsets
        self._known: dict[str, tuple[list[Range], list[str]]] = {}

    def ranges(self, text: str, within: tuple[str, ...] = ()) -> tuple[list[Range], list[str]]:
        """The ranges that a text names and what is wrong with it; `within` are the charsets that it stands in."""
        found: list[Range] = []
        problems: list[str] = []
        n_named = 0
        for token in _TOKEN.findall(_SPACED.sub(r"\1", text)):
            inner, inside = self._token(token, within)
            n_named += sum(len(range(r.first, r.last + 1, r.step)) for r in inner)
            if n_named > _MOST_TIMES * self._n_sites:
                return [], [*problems, f"'{token}' and what is before it name {n_named:,} sites; there are {self._n_sites:,}"]
            found += inner
            problems += inside
        return found, problems

    def _token(self, token: str, within: tuple[str, ...]) -> tuple[list[Range], list[str]]:
        name = token.strip("'").lower()
        match = _RANGE.fullmatch(token)
        if match is None and name in self._charsets:
            return self._charset(name, within)
        if match is None and name in _EVERYTHING:
            return [Range(1, self._n_sites)], []
        if match is None:
            return [], [_unknown(token, self._charsets)]
        first = int(match[1])
        last = first if match[2] is None else self._n_sites if match[2] == "." else int(match[2])
        step = int(match[3] or 1)
        problem = _wrong(token, first, last, step, self._n_sites)
        return ([], [problem]) if problem else ([Range(first, last, step)], [])

    def _charset(self, name: str, within: tuple[str, ...]) -> tuple[list[Range], list[str]]:
        if name in within:
            return [], [f"charset '{name}' contains itself"]
        if len(within) >= _DEEPEST:
            return [], [f"charset '{name}' is inside more than {_DEEPEST} others"]
        if name not in self._known:
            inner, inside = self.ranges(self._charsets[name], (*within, name))
            self._known[name] = inner, [f"charset '{name}': {problem}" for problem in inside]
            return self._known[name]
        return self._known[name][0], []  # what is wrong with it has been said


def _wrong(token: str, first: int, last: int, step: int, n_sites: int) -> str:
    if max(first, last) > n_sites:
        return f"'{token}' goes beyond the alignment's {n_sites} sites"
    if first < 1:
        return f"'{token}': sites are numbered from 1"
    if last < first:
        return f"'{token}' runs backwards"
    return f"'{token}': a step of 0" if step < 1 else ""


def _unknown(token: str, charsets: Mapping[str, str]) -> str:
    if re.fullmatch(r"[\d.\-\\/]+", token):
        return f"'{token}' is not a range of sites; write 1-300, 5 or 1-300\\3"
    known = ", ".join(list(charsets)[:8])
    return f"there is no charset '{token}'" + (f"; there are {known}" if known else "")
