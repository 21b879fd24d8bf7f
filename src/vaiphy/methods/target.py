"""What the settings of a run ask to be inferred, and that in words."""

from dataclasses import replace

from vaiphy.alignment import SitePatterns, require_nucleotides
from vaiphy.formats.constraints import constraint_of
from vaiphy.formats.partitions import parse_subset
from vaiphy.methods.parts import target_of_parts
from vaiphy.methods.settings import Settings
from vaiphy.models.defaults import default_model
from vaiphy.models.priors import length_prior
from vaiphy.target import Target, target_of

#: Methods whose trees are unrooted and binary; the others say themselves what their trees are.
_BINARY = ("posterior", "phi-csmc", "csmc", "vbpi")


def resolved(settings: Settings, patterns: SitePatterns, source: str) -> Settings:
    """The settings with a model: the one asked for, or the usual one of the method and the alphabet.

    The paper's methods are for nucleotides and JC69; `source` names the data if they are something else.
    """
    if settings.method != "posterior":
        require_nucleotides(source, patterns.alphabet, f"the method {settings.method}")
        return settings if settings.model else replace(settings, model="JC")
    chosen = settings if settings.model or settings.partition else replace(settings, model=default_model(patterns))
    target_for(patterns, chosen)  # says what is wrong with the model before anything is written
    return chosen


def target_for(patterns: SitePatterns, settings: Settings, fold: bool = True) -> Target:
    """What the settings ask to be inferred; `fold` as in `target_of`."""
    return replace(_target(patterns, settings, fold), constraint=constraint_of(settings.constraints, patterns.taxa))


def _target(patterns: SitePatterns, settings: Settings, fold: bool) -> Target:
    """The target without constraints of its trees."""
    if settings.partition:
        subsets = tuple(parse_subset(line) for line in settings.partition)
        linked = settings.part_rates == "linked"
        return target_of_parts(patterns, subsets, length_prior(settings.length_prior), linked, settings.prior_only)
    model = settings.model or (None if settings.method == "posterior" else "JC")
    return target_of(patterns, model, length_prior(settings.length_prior), fold, prior_only=settings.prior_only)


def model_words(patterns: SitePatterns, settings: Settings) -> list[str]:
    """The model and all priors in plain sentences."""
    sentences = target_for(patterns, settings).words()
    if settings.method in _BINARY:
        return sentences
    return [*sentences[:-1], "Topologies: all labelled trees of the augmented space equally likely."]
