"""Which model where none was asked for, and whether data may be analysed under a model at all."""

import numpy as np

from vaiphy.alignment import SitePatterns
from vaiphy.errors import InputError
from vaiphy.models.grammar import parse


def default_model(patterns: SitePatterns) -> str:
    """The usual model of an alphabet: GTR+G4, LG+G4, or Mk, given that characters vary where none is constant."""
    kind = patterns.alphabet.name
    if kind in ("DNA", "RNA"):
        return "GTR+G4"
    if kind == "AA":
        return "LG+G4"
    return "MK" if n_constant(patterns) else "MK+ASC"


def n_constant(patterns: SitePatterns) -> int:
    """Sites at which one state is possible in all taxa; those without any data are among them."""
    return round(float(patterns.counts[np.bitwise_and.reduce(patterns.codes, axis=0) != 0].sum()))


def check_ascertained(model: str, patterns: SitePatterns) -> None:
    """Refuse +ASC, which says that no character is constant, for data that have constant ones."""
    if parse(model, patterns.alphabet).ascertained and (found := n_constant(patterns)):
        raise InputError(
            f"model '{model}': +ASC is for data without constant characters, and {found} of {patterns.n_sites} are constant (or "
            "have no data); leave them out of the alignment, or leave out +ASC"
        )
