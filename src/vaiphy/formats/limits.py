"""How much a reader takes in before it refuses: a file that unpacks to a thousand times its size must not fill the memory.

Both limits can be set by environment variables, which the messages name.
"""

import os

from vaiphy.errors import InputError

#: Environment variable -> default: megabytes (10^6 bytes) of text, unpacked, and characters (taxa x sites) of an alignment.
MAX_MB, MAX_CHARACTERS = "VAIPHY_MAX_MB", "VAIPHY_MAX_CHARACTERS"
DEFAULTS = {MAX_MB: 500, MAX_CHARACTERS: 200_000_000}


def limit(name: str) -> int:
    """The limit in force; a variable that does not hold a positive whole number is an error."""
    text = os.environ.get(name, "").strip()
    if not text:
        return DEFAULTS[name]
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 15 and int(text) > 0):
        raise InputError(f"the environment variable {name} is {text!r}; it must be a positive whole number")
    return int(text)


def max_bytes() -> int:
    """Bytes of text that a reader takes."""
    return 1_000_000 * limit(MAX_MB)


def too_long(source: str, packed: bool = False) -> str:
    """What is said of a text that is too long."""
    what = "unpacks to more than" if packed else "is larger than"
    return f"{source}: the file {what} {limit(MAX_MB):,} MB; if it is meant to be that large, set {MAX_MB} to a larger number"


def too_many_characters(n_taxa: int, n_sites: int) -> str:
    """What is said of too large an alignment, nothing if it is not too large."""
    most = limit(MAX_CHARACTERS)
    if n_taxa * n_sites <= most:
        return ""
    return (
        f"{n_taxa:,} taxa x {n_sites:,} sites are more than {most:,} characters; "
        f"if there is enough memory, set {MAX_CHARACTERS} to a larger number"
    )
