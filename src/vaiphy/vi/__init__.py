"""VaiPhy: a variational distribution over trees, branch lengths and ancestral sequences, by coordinate ascent (Alg. 1).

`fit` runs the iterations; `initialise` and `step` are one start and one iteration, for those who run them themselves.
"""

from vaiphy.vi.fits import Fit, align, fit
from vaiphy.vi.mixtures import fit_mixture, renamed
from vaiphy.vi.settings import Settings
from vaiphy.vi.steps import Info, State, initialise, step
from vaiphy.vi.updates import columns

__all__ = ["Fit", "Info", "Settings", "State", "align", "columns", "fit", "fit_mixture", "initialise", "renamed", "step"]
