"""Rare splits that many others come and go with: what a law of all trees knows least, and draws miss.

A small island of trees differs from the rest in several splits and lengths at once. A law blends them: it draws trees of the
island about as often as the product of their frequencies, which may be never. A law fitted to the same trees, with those of the
island weighed up, loses little elsewhere and has what the island needs; so the proposal has one of these for each island.
"""

import numpy as np
from numpy.typing import NDArray

from vaiphy.kernels import clades
from vaiphy.posterior.tree_law import Fitting, RareFitting, Trees, clade_keys, fit_law, splits_in
from vaiphy.target import Target

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def emphasised(target: Target, trees: Trees, weights: Floats, fitting: Fitting) -> list[Floats]:
    """Weights of the trees for the laws of rare splits, the most important first; none if no split needs one."""
    rare = fitting.rare
    every = -(-len(weights) // rare.most_trees)
    every += 1 - every % 2  # odd: halves stay halves
    some = np.arange(0, len(weights), every)
    groups = _rare(trees, weights, rare)
    fewer, own = trees.take(some), weights[some]
    plain = _left_out(target, fewer, own, np.ones(len(some), dtype=bool), None, fitting) if groups else np.zeros(0)
    scored = [(_importance(target, fewer, own, group[some], plain, fitting), k) for k, group in enumerate(groups)]
    chosen = [k for score, k in sorted(scored, reverse=True) if score > np.log(rare.variance)]
    return [_weighed_up(weights, groups[k], rare.emphasis) for k in chosen[: rare.most]]


def _weighed_up(weights: Floats, group: Bools, emphasis: float) -> Floats:
    own = weights[group].sum()
    return np.where(group, emphasis * weights / own, (1.0 - emphasis) * weights / (1.0 - own))


def _rare(trees: Trees, weights: Floats, fitting: RareFitting) -> list[Bools]:
    """The trees with a split, or without it, for rare splits that go with many others."""
    n = trees.children.shape[1] + 2
    found, which = splits_in(trees.children, trees.tops)
    share, square = (np.bincount(which.ravel(), weights=np.repeat(w, n - 2)) for w in (weights, weights**2))
    # Splits of more than half of the trees are rare by their absence.
    mostly = share > 0.5
    share, square = np.where(mostly, 1.0 - share, share), np.where(mostly, np.square(weights).sum() - square, square)
    seen = np.flatnonzero((share >= fitting.smallest) & (share**2 >= fitting.least * square))
    seen = seen[np.argsort(-share[seen], kind="stable")[: fitting.most_splits]]
    if not len(seen):
        return []
    column = np.full(len(found), -1)
    column[seen] = np.arange(len(seen))
    has = np.zeros((len(weights), len(seen) + 1), dtype=bool)
    has[np.arange(len(weights))[:, None], column[which]] = True  # the last column is of all other splits
    has = has[:, :-1] ^ mostly[seen]
    share = share[seen]
    apart = (has - share) * np.sqrt(weights)[:, None]
    alike = np.abs(apart.T @ apart) / np.sqrt(np.outer(share * (1.0 - share), share * (1.0 - share)))
    together = np.square(alike).sum(axis=0)
    together[share >= fitting.emphasis] = 0.0
    chosen: list[int] = []
    for split in np.argsort(-together, kind="stable")[: int((together > 0.0).sum())]:
        if len(chosen) < fitting.most_tried and not (alike[split, chosen] > fitting.alike).any():
            chosen.append(int(split))
    return [has[:, split] for split in chosen]


def _importance(target: Target, trees: Trees, weights: Floats, group: Bools, plain: Floats, fitting: Fitting) -> float:
    """Log of the share of the group's trees times what weighing them up gains in the density of those left out (`plain`)."""
    half = np.arange(len(weights)) % 2 == 0
    if not all((group & kept & (weights > 0.0)).any() for kept in (half, ~half)):
        return -np.inf
    gain = _left_out(target, trees, weights, group, group, fitting) - plain
    total = weights[group].sum()
    return float(weights[group] @ gain[group] / total + np.log(total))


def _left_out(
    target: Target, trees: Trees, weights: Floats, which: Bools, group: Bools | None, fitting: Fitting
) -> Floats:  # fmt: skip
    """Log-densities of some trees (0 elsewhere), each under the law fitted to the half that it is not in, a group weighed up."""
    out = np.zeros(len(weights))
    # Particles keep their places from sweep to sweep, and sets of them have even sizes: none is in both halves.
    half = np.arange(len(weights)) % 2 == 0
    for kept in (half, ~half):
        fitted = np.where(kept, weights, 0.0) / weights[kept].sum()
        if group is not None:
            fitted = _weighed_up(fitted, group, fitting.rare.emphasis)
        own = which & ~kept
        out[own] = _log_density(target, trees, fitted, own, fitting)
    return out


def _log_density(target: Target, trees: Trees, weights: Floats, which: Bools, fitting: Fitting) -> Floats:
    """Of some trees under the law fitted to weighted ones."""
    kept, out = weights > 0.0, np.empty(int(which.sum()))
    law = fit_law(target, trees.take(kept), weights[kept], fitting)
    clades.log_densities(law.clades, clade_keys(target.n_taxa), *trees.take(which), out)
    return out
