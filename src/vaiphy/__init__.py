"""VaiPhy: Bayesian phylogenetics by variational inference and sequential Monte Carlo.

Public names are loaded on first use, so that `import vaiphy` stays quick.
"""

from importlib import import_module

TYPE_CHECKING = False  # typing takes a hundredth of a second to load, in which Ctrl-C would end in a traceback
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Fit": "vi",
    "fit": "vi",
    "iwelbo": "summary.evidence",
    "miselbo": "summary.evidence",
    "Alignment": "alignment",
    "AlignmentError": "alignment",
    "InputError": "errors",
    "SitePatterns": "alignment",
    "compress": "alignment",
    "Tree": "trees.tree",
    "TreeSample": "trees.sample",
    "Analysis": "output.analysis",
    "Posterior": "summary.posterior",
    "summarise": "summary.posterior",
    "run": "runner.run",
    "compare_models": "runner.ladder",
    "load_analysis": "runner.saved",
    "TreeError": "trees.tree",
    "parse_alignment": "formats",
    "read_alignment": "formats",
    "read_trees": "formats",
    "write_alignment": "formats",
    "describe": "summary.description",
    "random_alignment": "models.simulate",
    "random_tree": "models.simulate",
}
__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> "Any":
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'vaiphy' has no attribute {name!r}")
    return getattr(import_module(f"vaiphy.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
