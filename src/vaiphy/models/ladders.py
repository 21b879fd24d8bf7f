"""Which models are worth comparing: a ladder from the simplest to the richest, for each kind of data."""

from vaiphy.alphabets import Alphabet
from vaiphy.models.grammar import parse

NUCLEOTIDES = ("JC", "K80", "F81", "HKY", "SYM", "GTR")
AMINO_ACIDS = ("Poisson", "JTT", "WAG", "LG", "VT", "Blosum62")
#: How many of the models with +G4 are also tried with +I+G4.
N_INVARIABLE = 2


def ladder(alphabet: Alphabet, ascertained: bool = False) -> tuple[str, ...]:
    """Models to compare; `ascertained` where no character is constant (morphology, which is then compared with +ASC)."""
    if alphabet.is_nucleotides:
        names: tuple[str, ...] = NUCLEOTIDES
    elif alphabet.name == "AA":
        names = AMINO_ACIDS
    else:
        names = ("MK", "ORDERED") if alphabet.name == "MORPH" else ("JC2", "GTR2")
    ending = "+ASC" if ascertained else ""
    return tuple(str(parse(name + rates + ending, alphabet)) for rates in ("", "+G4") for name in names)


def with_invariable(found: dict[str, float], alphabet: Alphabet) -> tuple[str, ...]:
    """The best few of the models with +G4, by their log evidences, with +I+G4 (none where +ASC forbids it)."""
    gamma = sorted((name for name in found if name.endswith("+G4")), key=lambda name: -found[name])
    richer = (name.removesuffix("+G4") + "+I+G4" for name in gamma if "+I" not in name)
    return tuple(name for name in richer if name not in found)[: N_INVARIABLE if alphabet.name in ("DNA", "RNA", "AA") else 0]
