"""Texts in which marks count only outside braces: model strings and the lists of them in partition files."""

import re


def split_outside_braces(text: str, mark: str, at_most: int = -1) -> list[str]:
    """The pieces of a text between marks (one character) that are not inside braces, `at_most` so many cuts, in one pass.

    >>> split_outside_braces("GTR{1,2}+F{.1,.2,.3,.4}, JC", ",")
    ['GTR{1,2}+F{.1,.2,.3,.4}', ' JC']
    """
    pieces: list[str] = []
    start, inside = 0, False
    for found in re.finditer("[{}" + re.escape(mark) + "]", text):
        if found[0] in "{}":
            inside = found[0] == "{"
        elif not inside and len(pieces) != at_most:
            pieces.append(text[start : found.start()])
            start = found.end()
    return [*pieces, text[start:]]
