"""Files to text: gzip, limits, encodings and line ends out of the way, so that every reader sees lines ended by a line feed."""

import gzip
import io
import re
import sys
import zlib
from hashlib import sha256
from pathlib import Path

from vaiphy.errors import InputError
from vaiphy.formats.limits import max_bytes, too_long, too_many_lines

#: First bytes of files that people pass by mistake -> what they are.
_FOREIGN = {
    b"PK\x03\x04": "a zip archive (or an Office document)",
    b"BZh": "compressed with bzip2",
    b"\xfd7zXZ\x00": "compressed with xz",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"%PDF": "a PDF document",
    b"{\\rtf": "a rich-text document",
}
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x19\x1b-\x1f\x7f]")


def read_text(path: str | Path, error: type[InputError] = InputError) -> str:
    """The text of a file ("-" is standard input), unpacked and with lines ended by a line feed; raises `error`."""
    return read_hashed(path, error)[0]


def is_file(name: str | Path) -> bool:
    """Whether there is a file of this name; what is too long to be one, or has bytes that no name has, is none."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def read_hashed(path: str | Path, error: type[InputError] = InputError) -> tuple[str, str]:
    """The text of a file as `read_text` has it, and the SHA-256 of the file as it is."""
    source = str(path)
    most = max_bytes()
    try:
        if source == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with open(Path(path), "rb") as stream:
                content = stream.read(most + 1)
    except FileNotFoundError:
        raise error(f"{source}: there is no such file") from None
    except IsADirectoryError:
        raise error(f"{source}: this is a folder, not a file") from None
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise error(f"{source}: cannot be read ({reason})") from None
    source = "standard input" if source == "-" else source
    if len(content) > most:
        raise error(too_long(source))
    return decode(content, source, error), sha256(content).hexdigest()


def decode(content: bytes, source: str, error: type[InputError] = InputError) -> str:
    """Bytes to text: gunzip, guess the encoding, normalise line ends."""
    if content.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as stream:
                content = stream.read(max_bytes() + 1)
        except (OSError, EOFError, zlib.error):
            raise error(f"{source}: the gzip data is truncated or damaged") from None
        if len(content) > max_bytes():
            raise error(too_long(source, packed=True))
    if not content.strip():
        raise error(f"{source}: the file is empty")
    for start, kind in _FOREIGN.items():
        if content.startswith(start):
            raise error(f"{source}: this is {kind}, not plain text; unpack or export it as text first")
    text = _characters(content, source, error).replace("\r\n", "\n").replace("\r", "\n")
    if message := too_many_lines(text):
        raise error(f"{source}: {message}")
    return text


def _characters(content: bytes, source: str, error: type[InputError]) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return content.decode("utf-16")
        except UnicodeDecodeError:
            raise error(f"{source}: this is a binary file, not text") from None
    if found := _CONTROL.search(content):
        line = 1 + len(re.findall(rb"\r\n|\r|\n", content[: found.start()]))
        raise error(
            f"{source}, line {line}: byte {found[0][0]:#04x} does not belong in a text file; this looks like a binary file"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")
