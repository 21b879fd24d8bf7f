"""Alphabets: which letters a character may show, and which states each letter allows.

An observation is a set of possible states, stored as bits: state k of the alphabet is bit k. One state is one bit, an
ambiguity code a union, missing data and gaps all bits (they say nothing, as in every likelihood program). 0 marks a
letter that the alphabet does not know.
"""

import re
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from vaiphy.errors import InputError

#: The labels of morphological characters, in order; MORPH(k) uses the first k.
MORPH_LABELS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#: One observation in a row of text: a set in braces or brackets, or a single letter.
_TOKEN = re.compile(r"\{[^{}()]*\}|\([^{}()]*\)|.", re.DOTALL)
_WITHIN_SETS = " ,\t"


@dataclass(frozen=True)
class Alphabet:
    """States in order, other letters with the states they allow, and the letters for missing data.

    Letters count in either case. `{01}` and `(01)` stand for sets of states in every alphabet.

    >>> DNA.encode("acgu-R").tolist()
    [1, 2, 4, 8, 15, 5]
    >>> MORPH(3).encode("0(12)?").tolist()
    [1, 6, 7]
    """

    name: str
    states: str
    ambiguities: tuple[tuple[str, str], ...] = ()
    missing: str = "?-"

    @property
    def n_states(self) -> int:
        return len(self.states)

    @property
    def everything(self) -> int:
        """The code of missing data: all states."""
        return (1 << self.n_states) - 1

    @property
    def is_nucleotides(self) -> bool:
        return self.name in ("DNA", "RNA")

    @property
    def noun(self) -> str:
        """What one character is called in messages, with its article."""
        known = {"AA": "an amino-acid code", "BIN": "a binary state", "MORPH": "a state label", "MIXED": "a code of its part"}
        return known.get(self.name, "a nucleotide code")

    @property
    def kind(self) -> str:
        """What the characters are, for people."""
        kinds = {
            "AA": "amino acids",
            "BIN": "binary characters",
            "MORPH": "morphological characters",
            "MIXED": "several kinds of data",
        }
        return kinds.get(self.name, self.name)

    @property
    def dtype(self) -> np.dtype:
        """The unsigned integers that hold codes: one byte where that is enough."""
        return np.dtype(np.uint8 if self.n_states <= 8 else np.uint32 if self.n_states <= 32 else np.uint64)

    @cached_property
    def codes(self) -> dict[str, int]:
        """Upper-case letter -> bit set."""
        codes = {letter: 1 << k for k, letter in enumerate(self.states)}
        codes |= {letter: sum(1 << self.states.index(s) for s in allowed) for letter, allowed in self.ambiguities}
        return codes | dict.fromkeys(self.missing, self.everything)

    @cached_property
    def _table(self) -> NDArray:
        table = np.zeros(256, dtype=self.dtype)
        for letter, code in self.codes.items():
            table[[ord(letter), ord(letter.lower())]] = code
        return table

    @cached_property
    def _letters(self) -> dict[int, str]:
        letters = {self.everything: "-"}
        for letter, code in self.codes.items():
            letters.setdefault(code, letter)
        return letters

    def encode(self, text: str) -> NDArray:
        """A row of letters and bracketed sets as codes, one for each character; 0 where a letter is unknown."""
        if "{" in text or "(" in text:
            return np.array([self._encode_token(token) for token in _TOKEN.findall(text)], dtype=self.dtype)
        return self.encode_letters(text)

    def encode_letters(self, text: str) -> NDArray:
        """Letters alone as codes, one each (brackets are unknown letters)."""
        # Characters beyond ASCII must not turn into the "?" that stands for missing data.
        plain = text if text.isascii() else "".join(c if c.isascii() else "\0" for c in text)
        return self._table[np.frombuffer(plain.encode("ascii"), dtype=np.uint8)]

    def _encode_token(self, token: str) -> int:
        inside = token[1:-1] if len(token) > 1 else token
        codes = [self.codes.get(letter.upper(), 0) for letter in inside if len(token) == 1 or letter not in _WITHIN_SETS]
        return int(np.bitwise_or.reduce(np.array(codes, dtype=np.uint64))) if codes and all(codes) else 0

    def decode(self, codes: NDArray) -> str:
        """Codes as text: one letter each where there is one, else a set in braces; missing data are "-".

        >>> AA.decode(AA.encode("arb?{KR}"))
        'ARB-{RK}'
        """
        return "".join(self._letters.get(code) or self._set(code) for code in np.asarray(codes).tolist())

    def _set(self, code: int) -> str:
        return "{" + "".join(state for k, state in enumerate(self.states) if code >> k & 1) + "}"

    def indicators(self, codes: NDArray) -> NDArray[np.float64]:
        """Codes (..., P) as zeros and ones (..., S, P): what the likelihood reads at the leaves."""
        wide = np.asarray(codes).astype(np.uint64)
        planes = [(wide >> np.uint64(k)) & np.uint64(1) for k in range(self.n_states)]
        return np.ascontiguousarray(np.stack(planes, axis=-2), dtype=np.float64)


_IUPAC = (
    ("M", "AC"), ("R", "AG"), ("W", "A_"), ("S", "CG"), ("Y", "C_"), ("K", "G_"),
    ("V", "ACG"), ("H", "AC_"), ("D", "AG_"), ("B", "CG_"),
)  # fmt: skip


def _nucleotides(name: str, fourth: str, other: str) -> Alphabet:
    """DNA or RNA: the fourth base has two letters, both understood."""
    ambiguities = ((other, fourth), *((letter, allowed.replace("_", fourth)) for letter, allowed in _IUPAC))
    return Alphabet(name, "ACG" + fourth, ambiguities, missing="NXO?-")


DNA = _nucleotides("DNA", "T", "U")
RNA = _nucleotides("RNA", "U", "T")
#: Amino acids in the order of their three-letter names, as all published matrices have them. Stop codons, selenocysteine
#: (U) and pyrrolysine (O) count as missing, as in other programs.
AA = Alphabet("AA", "ARNDCQEGHILKMFPSTWYV", (("B", "ND"), ("Z", "QE"), ("J", "IL")), missing="X*UO?-")
BIN = Alphabet("BIN", "01")


@cache
def MORPH(n_states: int) -> Alphabet:
    """Morphological characters with labels 0, 1, ..., 9, A, B, ...: the first `n_states` of them."""
    if not 2 <= n_states <= len(MORPH_LABELS):
        raise InputError(f"{n_states} states; a morphological character has 2 to {len(MORPH_LABELS)}")
    return Alphabet("MORPH", MORPH_LABELS[:n_states])


def mixed(alphabets: tuple[Alphabet, ...]) -> Alphabet:
    """What stands for several alphabets side by side: as many states as the largest; missing data are all of them."""
    return Alphabet("MIXED", MORPH_LABELS[: max(alphabet.n_states for alphabet in alphabets)])


def alphabet_named(name: str, n_states: int = 10) -> Alphabet:
    """The alphabet called DNA, RNA, AA, BIN or MORPH, either case; `n_states` is for MORPH alone."""
    fixed = {alphabet.name: alphabet for alphabet in (DNA, RNA, AA, BIN)}
    word = name.upper()
    if word == "MORPH":
        return MORPH(n_states)
    if word not in fixed:
        raise InputError(f"sequence type '{name}' is unknown; known are {', '.join(fixed)}, MORPH")
    return fixed[word]
