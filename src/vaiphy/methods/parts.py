"""Targets of several parts, each with a model of its own."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.alphabets import MORPH, Alphabet, alphabet_named
from vaiphy.errors import InputError
from vaiphy.formats.partitions import Subset, alphabet_at
from vaiphy.formats.sitesets import describe_sites
from vaiphy.models.alphabets import group_by_states, narrowed
from vaiphy.models.defaults import default_model
from vaiphy.models.grammar import alphabet_for, parse
from vaiphy.models.priors import LengthPrior
from vaiphy.models.substitution import model_of
from vaiphy.target import Part, Target


def target_of_parts(
    patterns: SitePatterns,
    subsets: tuple[Subset, ...],
    prior: LengthPrior | None = None,
    linked_rates: bool = True,
    prior_only: bool = False,
) -> Target:
    """The posterior of an alignment whose parts have a model each; every part must name its model.

    Morphological characters are sorted by their numbers of states (MrBayes's convention: the highest label seen plus one);
    those of one part share its parameters and its rate.
    """
    parts: list[Part] = []
    owners: list[int] = []
    for subset in subsets:
        owner = len(parts)
        for alphabet, codes in _pieces(patterns, subset):
            own = compress(Alignment(patterns.taxa, codes, alphabet=alphabet))
            model = model_of(subset.model, alphabet, own.codes, own.counts)
            if model.exchangeable:
                own = own.folded
            parts.append(Part(subset.name, own.tips.astype(np.float64), own.counts, model))
            owners.append(owner)
    linked = linked_rates or len(subsets) == 1
    return Target(patterns.taxa, tuple(parts), prior or LengthPrior(), linked, tuple(owners), prior_only)


def with_models(subsets: tuple[Subset, ...], alignment: Alignment, model: str | None = None) -> tuple[Subset, ...]:
    """Parts with a model each: their own, else `model` if it is for their kind of data, else the default of that kind.

    Raises `InputError` if `model` is given and fits no part, or where +ASC meets characters that may be constant.
    """
    out, problems, used = [], [], False
    for subset in subsets:
        alphabet = alphabet_at(alignment, subset.sites)
        assert alphabet is not None  # the partition was checked
        name = subset.model
        if not name and model is not None and _is_for(model, alphabet):
            name, used = model, True
        name = str(parse(name, alphabet)) if name else _usual(alignment.sites[:, subset.sites], alphabet)
        constant = _may_be_constant(alignment.sites[:, subset.sites])
        if parse(name, alphabet).ascertained and constant.any():
            where = describe_sites(subset.sites[constant])
            problems.append(f"part '{subset.name}': +ASC is for characters that vary; {where} may be constant; leave out +ASC")
        out.append(Subset(subset.name, name, subset.ranges))
    if problems:
        raise InputError(*problems)
    if model is not None and not used and not all(subset.model for subset in subsets):
        raise InputError(f"model '{model}' fits none of the parts that have no model of their own")
    return tuple(out)


def _usual(codes: NDArray, alphabet: Alphabet) -> str:
    patterns = compress(Alignment(tuple(map(str, range(len(codes)))), codes, alphabet=alphabet))
    return str(parse(default_model(patterns), alphabet))


def _may_be_constant(codes: NDArray) -> NDArray[np.bool_]:
    """Which characters (columns) may have the same state in all taxa."""
    return np.asarray(np.bitwise_and.reduce(codes, axis=0) != 0)


def _is_for(model: str, alphabet: Alphabet) -> bool:
    kind = alphabet_for(model)
    return (kind == "DNA" and alphabet.is_nucleotides) or kind == alphabet.name or {kind, alphabet.name} == {"BIN", "MORPH"}


def _pieces(patterns: SitePatterns, subset: Subset) -> list[tuple[Alphabet, NDArray]]:
    """The codes (n_taxa, n_sites) of a part with their alphabet; one piece for each number of states of a character."""
    alphabet = patterns.alphabet
    codes = patterns.codes[:, patterns.site_pattern[subset.sites]]
    kind = alphabet_for(subset.model) if alphabet.name == "MIXED" else alphabet.name
    if kind == "MORPH":
        return [(MORPH(k), narrowed(codes[:, where], k)) for k, where in group_by_states(codes, alphabet).items()]
    own = alphabet_named(kind)
    return [(own, (codes & codes.dtype.type(own.everything)).astype(own.dtype))]
