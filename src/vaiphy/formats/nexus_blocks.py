"""The grammar that NEXUS files share: commands ended by `;` in blocks, comments in square brackets, quoted words."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

QUOTED = re.compile(r"'(?:[^'\n]|'')*'")
_SPECIAL = re.compile(r"[\[\]';]")
_BEFORE_QUOTE = frozenset(" \t\n(),;=:]")
# The first word of a command, behind `#NEXUS`, other lines that begin with `#` (some files have them) and comments.
_SKIPPED = r"(?>(?:\s*+(?:^#[^\n]*+|\[[^\]]*+\]))*+)\s*+"
_HEAD = re.compile(rf"{_SKIPPED}(?:#nexus\b)?+{_SKIPPED}([^\s\[]++)".replace("^#", "^#(?!nexus)", 1), re.I | re.M)
_MAGIC = re.compile(r"(?>(?:\s*+\[[^\]]*+\])*+)\s*+#nexus", re.IGNORECASE)
_WORD = re.compile(r"'(?:[^'\n]|'')*'|\"[^\"\n]*\"|=|[^\s=;]+")


@dataclass(frozen=True)
class Command:
    """One command: its block ("" outside), its first word in small letters, the rest of its text, and where it begins.

    `complete` is false if the file ends before the `;`.
    """

    block: str
    word: str
    text: str
    line: int
    complete: bool


def is_nexus(text: str) -> bool:
    """Whether a text begins with `#NEXUS`, comments before it allowed."""
    return _MAGIC.match(text) is not None


def commands(text: str, comments: bool = False) -> Iterator[Command]:
    """All commands of a NEXUS text; comments become blanks unless `comments` asks for them."""
    block = ""
    for line, content, complete in pieces(text, comments):
        head = _HEAD.match(content)
        if head is None:
            continue
        start, word = head.start(1), head[1].lower()
        line += content.count("\n", 0, start)
        if word == "begin":
            block = without_comments(content[head.end() :]).strip().lower()
            yield Command(block, "begin", "", line, complete)
        elif word in ("end", "endblock"):
            yield Command(block, "end", "", line, complete)
            block = ""
        else:
            yield Command(block, word, content[head.end() :], line, complete)


def options(text: str) -> dict[str, str]:
    """`KEY=value KEY` as a dictionary with keys in small letters; a key without value has the value "yes"."""
    found: dict[str, str] = {}
    words = _WORD.findall(text)
    index = 0
    while index < len(words):
        key = words[index].lower()
        if index + 2 < len(words) and words[index + 1] == "=":
            found[key] = unquoted(words[index + 2])
            index += 3
        else:
            if key != "=":
                found[key] = "yes"
            index += 1
    return found


def without_comments(text: str) -> str:
    """Text with comments (not nested) replaced by blanks; brackets inside a quoted word belong to it."""
    return re.sub(r"((?<![^\s,])'(?:[^']|'')*')|\[[^\]]*\]", lambda found: found[1] or " ", text) if "[" in text else text


def unquoted(word: str) -> str:
    """A word without its quotes."""
    if len(word) >= 2 and word[0] == word[-1] == "'":
        return word[1:-1].replace("''", "'")
    return word[1:-1] if len(word) >= 2 and word[0] == word[-1] == '"' else word


def words(text: str) -> list[str]:
    """The words of a command, quotes removed."""
    return [unquoted(word) for word in _WORD.findall(text)]


def pieces(text: str, comments: bool) -> Iterator[tuple[int, str, bool]]:
    """(line, text, ended by `;`) of each command. One pass: only brackets, quotes and semicolons are looked at."""
    kept = StringIO()  # what is left of the command so far without its comments, of which there may be millions
    depth = start = opened = 0
    line = begin_line = 1
    counted = 0
    position = 0
    while found := _SPECIAL.search(text, position):
        at, mark = found.start(), found[0]
        position = at + 1
        if mark == "[":
            if depth == 0:
                opened = at
            depth += 1
        elif mark == "]" and depth:
            depth -= 1
            if depth == 0 and not comments:
                kept.write(text[start:opened] + _blank(text[opened:position]))
                start = position
        elif depth:
            continue
        elif mark == "'":
            if at == 0 or text[at - 1] in _BEFORE_QUOTE:
                quoted = QUOTED.match(text, at)
                position = quoted.end() if quoted else position
        elif mark == ";":
            yield begin_line, kept.getvalue() + text[start:at], True
            line += text.count("\n", counted, position)
            counted, begin_line = position, line
            kept, start = StringIO(), position
    rest = kept.getvalue() + (text[start:opened] if depth and not comments else text[start:])
    if rest.strip():
        yield begin_line, rest, False


def _blank(comment: str) -> str:
    return "\n" * comment.count("\n") or " "
