"""From an alignment and a model string to a target."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.models.alphabets import MORPH, group_by_states, narrowed
from vaiphy.models.defaults import check_ascertained, default_model
from vaiphy.models.priors import LengthPrior
from vaiphy.models.substitution import model_of
from vaiphy.target.parts import Part
from vaiphy.target.target import Target


def target_of(
    patterns: SitePatterns,
    model: str | None = None,
    length_prior: LengthPrior | None = None,
    fold: bool = True,
    by_character: bool = True,
    prior_only: bool = False,
) -> Target:
    """The posterior of one alignment under one model (None: the usual one of its alphabet).

    Patterns that the model cannot tell apart are merged if `fold`. Morphological characters have as many states as their own
    highest label needs, as in MrBayes, or, not `by_character`, as the highest of all, as in IQ-TREE.
    """
    model = model or default_model(patterns)
    check_ascertained(model, patterns)
    groups = {0: np.arange(patterns.n_patterns)}
    if by_character and patterns.alphabet.name == "MORPH":
        groups = group_by_states(patterns.codes, patterns.alphabet)
    parts = tuple(_part(patterns, n_states, chosen, model, fold) for n_states, chosen in groups.items())
    return Target(patterns.taxa, parts, length_prior or LengthPrior(), owners=(0,) * len(parts), prior_only=prior_only)


def _part(patterns: SitePatterns, n_states: int, chosen: NDArray[np.int64], model: str, fold: bool) -> Part:
    """Some of the patterns; as characters of `n_states` states unless that is 0."""
    alphabet = MORPH(n_states) if n_states else patterns.alphabet
    codes = narrowed(patterns.codes[:, chosen], n_states) if n_states else patterns.codes[:, chosen]
    counts = patterns.counts[chosen]
    own = model_of(model, alphabet, codes, counts)
    data = SitePatterns(patterns.taxa, codes, counts, np.arange(len(chosen)), alphabet)
    merged = own.exchangeable and fold
    if merged:
        data = data.folded
    name = f"{n_states} states" if n_states else "all"
    return Part(name, data.tips.astype(np.float64), data.counts, own, None if merged else chosen)
