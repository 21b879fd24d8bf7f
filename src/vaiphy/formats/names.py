"""Names of taxa that do no harm: characters that turn text around, and names that every program reads."""

import re
from collections.abc import Iterable, Sequence

from vaiphy.alignment import AlignmentError

#: Characters that change the direction of the text around them: a name with one can show as another name.
TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile("[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.|-]")


def turning(name: str) -> str:
    """The first character of a name that turns text around, as U+202E; nothing if there is none."""
    found = TURNING.search(name)
    return f"U+{ord(found[0]):04X}" if found else ""


def visible(text: str) -> str:
    """The text with characters that turn it around, and control characters, written out.

    >>> visible("a\u202eb")
    'a\\\\u202eb'
    """
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def safe_names(taxa: Sequence[str]) -> tuple[str, ...]:
    """Names of letters, digits, `_`, `.`, `|` and `-` that begin with a letter, one for each taxon, all different.

    >>> safe_names(("Homo sapiens", "Homo_sapiens", "it's", "12"))
    ('Homo_sapiens', 'Homo_sapiens_2', 'it_s', 't12')
    """
    taken: set[str] = set()
    out = []
    for taxon in taxa:
        plain = _UNSAFE.sub("_", taxon)
        base = plain if plain[:1].isalpha() else f"t{plain}"
        name, k = base, 1
        while name.lower() in taken:  # some programs do not tell capital from small letters
            k += 1
            name = f"{base}_{k}"
        taken.add(name.lower())
        out.append(name)
    return tuple(out)


def unbroken_names(taxa: Iterable[str]) -> list[str]:
    """Names without white space, for formats where a name ends at the first blank; two that become one are an error."""
    names: dict[str, str] = {}
    for taxon in taxa:
        name = re.sub(r"\s", "_", taxon)
        if name in names:
            raise AlignmentError(
                f"the names {names[name]!r} and {taxon!r} would both be written as {name!r}; NEXUS can hold them as they are"
            )
        names[name] = taxon
    return list(names)
