"""Mixtures of VaiPhy that maximise the MISELBO (Kviman et al. 2022), and why no search for them is needed.

With S components q_s and responsibilities r_s(z) = q_s(z) / sum_j q_j(z),

    MISELBO = 1/S sum_s E_{q_s}[log p - log q_s] + log S + 1/S sum_s E_{q_s}[log r_s],

and log r_s <= 0. So no mixture has more than the mean ELBO of its components, plus log S; the most there can be is the best
ELBO of a single fit plus log S, with components that are all as good as the best and do not overlap. Such components are at
hand: names of internal vertices are exchangeable, so a fit with its vertices renamed has the same ELBO, and draws of one are
impossible, to all purposes, under another. Updates with responsibilities would be those of separate fits, since all
responsibilities are one; they would end at the same bound, or below.
"""

from dataclasses import replace
from math import lgamma, log
from typing import Any

import numpy as np

from vaiphy.alignment import SitePatterns
from vaiphy.vi.fits import Fit, fit


def fit_mixture(
    patterns: SitePatterns, n_components: int, *, rng: np.random.Generator, restarts: int = 5, threads: int = 1, **options: Any
) -> list[Fit]:
    """Components whose uniform mixture maximises the MISELBO over the fits found: the best of some, renamed.

    The first fit starts from BIONJ, the others from bootstrapped distances; `options` are those of `fit`.
    """
    if n_components < 1 or restarts < 1:
        raise ValueError("a mixture needs at least one component and one fit to choose from")
    fits = [
        fit(patterns, initial="bootstrap" if k else "bionj", rng=stream, threads=threads, **options)
        for k, stream in enumerate(rng.spawn(restarts))
    ]
    return renamed(max(fits, key=lambda found: max(info.score for info in found.trace)), n_components, rng)


def renamed(found: Fit, n_components: int, rng: np.random.Generator) -> list[Fit]:
    """The fit, and copies whose internal vertices have other names, drawn at random, each order once.

    Do not pass them to `align`, which would name them alike again.
    """
    n_internal = len(found.ancestral)
    if log(n_components) > lgamma(n_internal + 1) + 1e-9:
        raise ValueError(f"{n_internal} internal vertices can be named in fewer than {n_components} ways")
    orders = {tuple(range(n_internal)): None}
    while len(orders) < n_components:
        orders[tuple(rng.permutation(n_internal).tolist())] = None
    return [replace(found, ancestral=np.ascontiguousarray(found.ancestral[list(order)])) for order in orders]
