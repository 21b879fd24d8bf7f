"""Which alphabet a file is written in: told, or guessed from its characters."""

from collections import Counter

from vaiphy.alphabets import DNA, MORPH, MORPH_LABELS, Alphabet, alphabet_named

#: What may be given as a sequence type, IQ-TREE's words.
SEQTYPES = ("DNA", "RNA", "AA", "BIN", "MORPH")
#: Letters that stand for amino acids and for no nucleotide.
AMINO_ACIDS = frozenset("EFILPQZJ")
#: Fewer unambiguous bases than this among the letters, and DNA is a doubtful guess.
_FEW_BASES = 0.7


def alphabet_of(letters: Counter[str], seqtype: str = "") -> tuple[Alphabet, str]:
    """The alphabet of characters counted in upper case, and a sentence where the guess should be told.

    Morphological characters get as many states as the highest label needs.
    """
    name = seqtype.upper() or _guess(letters)
    if name == "MORPH":
        highest = max((MORPH_LABELS.index(letter) for letter in letters if letter in MORPH_LABELS and letters[letter]), default=1)
        alphabet = MORPH(max(2, highest + 1))
    else:
        alphabet = alphabet_named(name)
    return alphabet, "" if seqtype else _doubt(letters, alphabet)


def _guess(letters: Counter[str]) -> str:
    alphabetic = sum(n for letter, n in letters.items() if letter.isascii() and letter.isalpha())
    digits = {digit: letters[digit] for digit in "0123456789" if letters[digit]}
    if sum(digits.values()) > 0.5 * (alphabetic + sum(digits.values())):
        return "BIN" if set(digits) <= {"0", "1"} and not alphabetic else "MORPH"
    amino = {letter: letters[letter] for letter in AMINO_ACIDS if letters[letter]}
    return "AA" if len(amino) >= 3 and sum(amino.values()) > 0.1 * alphabetic else "DNA"


def _doubt(letters: Counter[str], alphabet: Alphabet) -> str:
    advice = "if they are something else, say so with --seqtype"
    if alphabet is not DNA:
        size = f" with {alphabet.n_states} states" if alphabet.name == "MORPH" else ""
        return f"the characters look like {alphabet.kind}{size} and are read as such ({alphabet.name}); {advice}"
    counted = sum(n for letter, n in letters.items() if letter.isascii() and letter.isalpha() and letter not in "NXO")
    bases = sum(letters[base] for base in "ACGTU")
    if counted and bases < _FEW_BASES * counted:
        return f"only {bases / counted:.0%} of the letters are A, C, G, T or U; read as nucleotides (DNA); {advice}"
    return ""
