"""Draws for ArviZ: chain = run, draws of equal weight; the importance weights they come from are in `sample_stats`.

ArviZ up to 0.23 takes an `InferenceData`, from 1.0 on an `xarray.DataTree`.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.interop.building import library
from vaiphy.quantities import LOG_LIKELIHOOD, LOG_PRIOR
from vaiphy.trees.sample import TreeSample, equal_draws

Columns = Mapping[str, NDArray[np.float64]]


def convert(sample: TreeSample, n_draws: int, columns: Callable[[TreeSample], Columns], about: Mapping[str, Any]) -> Any:
    """`columns` gives the quantities of each tree of a sample; `about` becomes the attributes of both groups.

    Group `posterior`: tree length and parameters. Group `sample_stats`: log-likelihood, log-prior and their sum `lp`; the
    `log_weight` that each tree had in its run; the effective sample size `ess` of each run.
    """
    arviz, xarray = library("arviz", "arviz"), library("xarray", "xarray")
    drawn, ess = [], []
    for replicate in range(int(sample.replicate.max()) + 1):
        own = sample.of_replicate(replicate)
        chosen = equal_draws(own, n_draws)
        known = dict(columns(own.select(chosen)))
        drawn.append(known | {"lp": known[LOG_LIKELIHOOD] + known[LOG_PRIOR], "log_weight": own.log_weights[chosen]})
        ess.append(own.effective_size)
    stacked = {name: (("chain", "draw"), np.stack([chain[name] for chain in drawn])) for name in drawn[0]}
    statistics = {name: stacked.pop(name) for name in ("lp", LOG_LIKELIHOOD, LOG_PRIOR, "log_weight")}
    axes = {"chain": np.arange(len(drawn)), "draw": np.arange(n_draws)}
    groups = {
        "posterior": xarray.Dataset(stacked, axes, dict(about)),
        "sample_stats": xarray.Dataset(statistics | {"ess": (("chain",), np.array(ess))}, axes, dict(about)),
    }
    old = int(arviz.__version__.split(".")[0]) < 1
    return arviz.InferenceData(**groups) if old else xarray.DataTree.from_dict(groups)
