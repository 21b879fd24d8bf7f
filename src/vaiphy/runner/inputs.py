"""What a run checks and says of its input before it starts."""

from collections.abc import Callable, Sequence
from hashlib import sha256

from vaiphy.alignment import Alignment, SitePatterns, too_few_taxa
from vaiphy.errors import InputError
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import model_words
from vaiphy.output.analysis import Provenance
from vaiphy.runner.saved import Saved


def content_of(data: Alignment) -> str:
    """What the analysis depends on: taxa and sites, however they were written."""
    return sha256("\n".join(data.taxa).encode() + b"\n" + data.sites.tobytes()).hexdigest()


def check_data(data: Alignment, outgroup: Sequence[str]) -> None:
    """Whether there are enough taxa, and the outgroup is among them."""
    problems = [f"{data.source}: the outgroup {name!r} is not among the taxa" for name in outgroup if name not in data.taxa]
    if message := too_few_taxa(data):
        problems.append(message)
    if len(set(outgroup)) > data.n_taxa - 2:
        problems.append(f"{data.source}: the outgroup leaves fewer than two taxa")
    if problems:
        raise InputError(*problems)


def introduce(
    say: Callable[[str], None],
    settings: Settings,
    provenance: Provenance,
    patterns: SitePatterns,
    data: Alignment,
    saved: Saved | None,
) -> None:
    """Say what is run on what, with which model and priors."""
    say(f"command  {provenance.command}")
    say(f"input    {data.source}: {patterns.n_taxa} taxa, {patterns.n_sites} sites, {patterns.n_patterns} patterns")
    say(f"seed     {settings.seed}; {provenance.threads} thread{'s' if provenance.threads != 1 else ''}")
    for k, line in enumerate(model_words(patterns, settings)):
        say(f"{'model' if k == 0 else '':8} {line}")
    for warning in data.warnings:
        say(f"warning: {warning}")
    if saved is not None:
        spent = sum(saved.header["timings"].values())
        say(f"continuing from the checkpoint {saved.path} ({spent:.0f} s of work done)")
