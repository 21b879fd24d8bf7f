"""Model strings: `NAME[{rates}][+F..][+I..][+G..][+ASC]`, as IQ-TREE writes them, with RAxML-NG's synonyms.

    GTR+G4      HKY{2.5}+F{0.3,0.2,0.2,0.3}+I{0.1}+G4{0.5}      010212+FO      LG+F+G4      MK+ASC

What follows a name: `+F` (or `+FC`) frequencies counted in the data, `+FQ` (`+FE`) equal, `+FO` free, `+F{..}` (`+FU{..}`)
given; `+I` (`+IO`) a free share of invariable sites, `+I{p}` (`+IU{p}`) a given one; `+G[k]` rates from a gamma
distribution in k categories, 4 unless told, with a free shape, `+G[k]{a}` with a given one; `+ASC` the likelihood given
that no character is constant. A bare name of a model with unequal frequencies (F81, HKY, TN, TIM, TVM, GTR and six-digit
codes) means free frequencies; IQ-TREE would count them. Amino-acid models have their own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from vaiphy.alphabets import AA, BIN, DNA, MORPH, Alphabet
from vaiphy.errors import InputError
from vaiphy.models.braces import split_outside_braces

#: Characters of a model string: 64 frequencies take some 1,300.
LONGEST = 5000
Frequencies = Literal["equal", "empirical", "free", "matrix", "fixed"]

#: Code of the six exchangeabilities (AC AG AT CG CT GT) -> name with equal and with unequal frequencies.
DNA_MODELS = {
    "000000": ("JC", "F81"),
    "010010": ("K80", "HKY"),
    "010020": ("TNe", "TN"),
    "012210": ("K81", "K3Pu"),
    "010212": ("TPM2", "TPM2u"),
    "012012": ("TPM3", "TPM3u"),
    "012230": ("TIMe", "TIM"),
    "010232": ("TIM2e", "TIM2"),
    "012032": ("TIM3e", "TIM3"),
    "012314": ("TVMe", "TVM"),
    "012345": ("SYM", "GTR"),
}
AA_MODELS = ("LG", "WAG", "JTT", "Dayhoff", "VT", "mtREV", "cpREV", "Blosum62", "Poisson")
BIN_MODELS = ("JC2", "GTR2")
MORPH_MODELS = ("MK", "ORDERED")
_SYNONYMS = {
    "JC69": "JC", "K2P": "K80", "HKY85": "HKY", "TN93": "TN", "TRN": "TN", "TRNE": "TNe", "TRNEF": "TNe", "K3P": "K81",
    "K81UF": "K3Pu", "TPM1": "K81", "TPM1U": "K3Pu", "TIM1": "TIM", "TIM1E": "TIMe", "JONES": "JTT",
}  # fmt: skip
MAX_CATEGORIES = 32
MODIFIERS = "+F, +FQ, +FO, +F{..}, +I, +I{p}, +G[k], +G[k]{a}, +ASC"


@dataclass(frozen=True)
class ModelString:
    """What a model string says; `str` gives it back in one canonical form.

    `rates` and `frequencies_given` are None unless given in braces; `alpha` and `p_inv` likewise.
    """

    name: str
    rates: tuple[float, ...] | None = None
    frequencies: Frequencies = "equal"
    frequencies_given: tuple[float, ...] | None = None
    invariable: bool = False
    p_inv: float | None = None
    gamma: bool = False
    n_categories: int = 1
    alpha: float | None = None
    ascertained: bool = False

    def __str__(self) -> str:
        words = [self.name + _braces(self._rates_written()), self._frequency_word()]
        words += ["I" + _braces(self.p_inv) if self.invariable else "", self._gamma_word(), "ASC" if self.ascertained else ""]
        return "+".join(word for word in words if word)

    def _rates_written(self) -> tuple[float, ...] | None:
        """Without the rate of G-T where that is one, as IQ-TREE wants it."""
        last = int(rate_code(self.name)[-1]) if self.rates else 0
        return (*self.rates[:last], *self.rates[last + 1 :]) if self.rates and self.rates[last] == 1.0 else self.rates

    def _frequency_word(self) -> str:
        if self.frequencies == default_frequencies(self.name):
            return ""
        return {"equal": "FQ", "empirical": "F", "free": "FO", "matrix": "", "fixed": "F" + _braces(self.frequencies_given)}[
            self.frequencies
        ]

    def _gamma_word(self) -> str:
        return f"G{self.n_categories}{_braces(self.alpha)}" if self.gamma else ""


def default_frequencies(name: str) -> Frequencies:
    """The frequencies that a bare name means."""
    if name in AA_MODELS and name != "Poisson":
        return "matrix"
    unequal = {pair[1] for pair in DNA_MODELS.values()} | {"GTR2"}
    return "free" if name in unequal or name.isdigit() else "equal"


def rate_code(name: str) -> str:
    """The six-digit code of a nucleotide model, digits in order of first appearance.

    >>> rate_code("HKY"), rate_code("TVM")
    ('010010', '012314')
    """
    return next((code for code, pair in DNA_MODELS.items() if name in pair), name)


def parse(text: str, alphabet: Alphabet) -> ModelString:
    """A model string for data of this alphabet; `InputError` lists every word that is wrong.

    >>> from vaiphy.alphabets import DNA
    >>> str(parse("hky85{2}+FE+g", DNA))
    'K80{2}+G4'
    """
    if len(text) > LONGEST:
        raise InputError(f"model '{text[:20]}...' has {len(text):,} characters; models have at most {LONGEST:,}")
    words = [word.strip() for word in split_outside_braces(text.strip(), "+")]
    problems: list[str] = []
    head = _HEAD.fullmatch(words[0])
    name = _known_name(head.group(1), alphabet) if head else None
    if head is None or name is None:
        problems.append(f"model '{text}': '{words[0]}' is not a model of {alphabet.name}; known are {', '.join(known(alphabet))}")
        name = known(alphabet)[0]
    found: dict[str, Any] = {"name": name, "frequencies": default_frequencies(name)}
    try:
        found["rates"] = _rates(name, head.group(2) if head else None, alphabet)
    except ValueError as error:
        problems.append(f"model '{text}': {error}")
    seen: set[str] = set()
    for word in words[1:]:
        try:
            kind, values = _modifier(word, name, alphabet)
            if kind in seen:
                raise ValueError(f"'+{word}' says the same thing twice")
            seen.add(kind)
            found |= values
        except ValueError as error:
            problems.append(f"model '{text}': {error}")
    if "invariable" in seen and "ascertained" in seen:
        problems.append(f"model '{text}': +I and +ASC contradict each other (constant sites are left out); take one of them")
    if problems:
        raise InputError(*problems)
    found["name"] = _canonical_name(name, found["frequencies"])
    return ModelString(**found)


def known(alphabet: Alphabet) -> tuple[str, ...]:
    """The names of models for this alphabet."""
    if alphabet.name in ("DNA", "RNA"):
        return (*(name for pair in DNA_MODELS.values() for name in pair), "a six-digit code (012345)")
    return {"AA": AA_MODELS, "BIN": (*BIN_MODELS, "MK"), "MORPH": MORPH_MODELS}[alphabet.name]


def alphabet_for(text: str) -> str:
    """The kind of data that a model string is for, by its name alone: DNA, AA, BIN or MORPH ("" if the name is unknown).

    >>> [alphabet_for(text) for text in ("HKY+G", "LG+F", "GTR2", "MK+ASC")]
    ['DNA', 'AA', 'BIN', 'MORPH']
    """
    head = _HEAD.match(text.strip())
    word = head.group(1).upper() if head else ""
    if word == "MK":
        return "MORPH"
    return next((a.name for a in (DNA, AA, BIN, MORPH(2)) if _known_name(word, a)), "")


_HEAD = re.compile(r"([A-Za-z0-9_]+)(?:\{([^{}]*)\})?")


def _known_name(word: str, alphabet: Alphabet) -> str | None:
    """The canonical spelling of a name, None if the alphabet has no such model."""
    if alphabet.name in ("DNA", "RNA") and re.fullmatch(r"\d{6}", word):
        order: dict[str, str] = {}
        return "".join(order.setdefault(digit, str(len(order))) for digit in word)
    if alphabet.name == "BIN" and word.upper() in ("MK", "JC"):
        return "JC2"
    names = {name.upper(): name for name in known(alphabet)}
    return names.get(_SYNONYMS.get(word.upper(), word).upper())


def _canonical_name(name: str, frequencies: object) -> str:
    """HKY with equal frequencies is K80, K80 with others HKY; a code that has a name gets it."""
    if name in BIN_MODELS:
        return BIN_MODELS[frequencies != "equal"]
    pair = DNA_MODELS.get(rate_code(name))
    return pair[frequencies != "equal"] if pair else name


def _rates(name: str, inside: str | None, alphabet: Alphabet) -> tuple[float, ...] | None:
    """Fixed exchangeabilities, one for each distinct rate in order of first appearance.

    IQ-TREE leaves out the rate of G-T, which is one; RAxML-NG gives all.
    """
    if inside is None:
        return None
    code = rate_code(name)
    n_rates = len(set(code)) if alphabet.name in ("DNA", "RNA") else 1
    if n_rates == 1:
        raise ValueError(f"{name} has no rates to give in braces")
    values = _numbers(inside, "rate", lambda x: x >= 0, "at least 0 and less than 1,000,000")
    if len(values) == n_rates - 1:
        last = int(code[-1])
        values = (*values[:last], 1.0, *values[last:])
    if len(values) != n_rates:
        raise ValueError(
            f"{name} has {n_rates} distinct rates; give {n_rates - 1} (relative to G-T) or {n_rates}, not {len(values)}"
        )
    if not any(value > 0 for value in values):
        raise ValueError("all rates are zero")
    return values


def _modifier(word: str, name: str, alphabet: Alphabet) -> tuple[str, dict]:
    upper = word.upper().replace(" ", "")
    for pattern, kind, read in _MODIFIERS:
        found = re.fullmatch(pattern, upper)
        if found:
            return kind, read(found, name, alphabet)
    raise ValueError(f"'+{word}' is unknown; known are {MODIFIERS}")


def _frequency_kind(found: re.Match, name: str, alphabet: Alphabet) -> dict:
    kind = {"": "empirical", "C": "empirical", "Q": "equal", "E": "equal", "O": "free"}[found.group(1)]
    if name in MORPH_MODELS and kind != "equal":
        raise ValueError(f"{name} has equal frequencies: the labels of morphological states mean nothing across characters")
    return {"frequencies": kind}


def _frequencies_given(found: re.Match, name: str, alphabet: Alphabet) -> dict:
    if name in MORPH_MODELS:
        raise ValueError(f"{name} has equal frequencies: the labels of morphological states mean nothing across characters")
    values = _numbers(found.group(1), "frequency", lambda x: 0 < x <= 1, "above 0 and at most 1")
    if len(values) != alphabet.n_states:
        raise ValueError(f"{len(values)} frequencies in braces, expected {alphabet.n_states} in the order {alphabet.states}")
    if abs(sum(values) - 1.0) > 0.01:
        raise ValueError(f"the frequencies in braces sum to {sum(values):g}, not to 1")
    return {"frequencies": "fixed", "frequencies_given": tuple(value / sum(values) for value in values)}


def _invariable(found: re.Match, name: str, alphabet: Alphabet) -> dict:
    if found.lastindex is None:
        return {"invariable": True}
    (p_inv,) = _one(found.group(1), "share of invariable sites", lambda x: 0 <= x < 1, "at least 0 and less than 1")
    return {"invariable": True, "p_inv": p_inv}


def _gamma(found: re.Match, name: str, alphabet: Alphabet) -> dict:
    n_categories = int(found.group(1)) if found.group(1) else 4
    if not 2 <= n_categories <= MAX_CATEGORIES:
        raise ValueError(f"{n_categories} rate categories; +G takes 2 to {MAX_CATEGORIES}")
    values: dict = {"gamma": True, "n_categories": n_categories}
    if found.group(2) is not None:
        (values["alpha"],) = _one(found.group(2), "shape", lambda x: 1e-3 <= x <= 1e4, "between 0.001 and 10,000")
    return values


def _ascertained(found: re.Match, name: str, alphabet: Alphabet) -> dict:
    return {"ascertained": True}


_Reader = Callable[[re.Match, str, Alphabet], dict]
_MODIFIERS: tuple[tuple[str, str, _Reader], ...] = (
    (r"F([CQEO]?)", "frequencies", _frequency_kind),
    (r"FU?\{([^{}]*)\}", "frequencies", _frequencies_given),
    (r"IO?", "invariable", _invariable),
    (r"IU?\{([^{}]*)\}", "invariable", _invariable),
    (r"G(?:A|([0-9]{0,9})M?)(?:\{([^{}]*)\})?", "gamma", _gamma),
    (r"ASC(?:_LEWIS)?", "ascertained", _ascertained),
)


def _numbers(inside: str, what: str, holds: Callable[[float], bool], range_in_words: str) -> tuple[float, ...]:
    """Numbers between commas (IQ-TREE) or slashes (RAxML-NG)."""
    values = []
    for word in re.split(r"[,/]", inside):
        try:
            value = float(word)
        except ValueError:
            raise ValueError(f"'{word.strip()}' in braces is not a number") from None
        if not (holds(value) and abs(value) < 1e6):
            raise ValueError(f"a {what} of {word.strip()} in braces; it must be {range_in_words}")
        values.append(value)
    return tuple(values)


def _one(inside: str, what: str, holds: Callable[[float], bool], range_in_words: str) -> tuple[float, ...]:
    values = _numbers(inside, what, holds, range_in_words)
    if len(values) != 1:
        raise ValueError(f"{len(values)} numbers in braces for the {what}, expected one")
    return values


def _braces(values: float | tuple[float, ...] | None) -> str:
    if values is None:
        return ""
    inside = (values,) if isinstance(values, float) else values
    return "{" + ",".join(repr(float(value)).removesuffix(".0") for value in inside) + "}"
