"""The likelihood of a given tree under any model, with the best parameters and, if asked for, the best branch lengths.

Free parameters z are found by L-BFGS, together with a factor on all lengths (rates across sites and tree length depend on each
other), in turn with sweeps of Newton steps over the branches, until a round gains nothing worth mentioning.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from vaiphy.kernels import marginals, newton, sweep
from vaiphy.models.replacement import MAX_LENGTH, MIN_LENGTH
from vaiphy.target import Target
from vaiphy.trees.tree import Tree, TreeError, simplified

Floats = NDArray[np.float64]
#: A round that gains less ends the search; so do this many rounds.
TOLERANCE, MAX_ROUNDS = 1e-5, 100
#: Step of the differences that stand for derivatives in z, and how far from its start z may go.
STEP, REACH = 1e-4, 12.0
#: Where branches without a length start.
UNKNOWN_LENGTH = 0.05


@dataclass(frozen=True, eq=False)
class Optimum:
    """A tree (with its lengths, given or found), the parameters z (d,) it was scored at, and the log-likelihood."""

    tree: Tree
    z: Floats
    log_likelihood: float


def log_likelihood(target: Target, tree: Tree, z: Floats | None = None) -> float:
    """Log-likelihood of a tree with all its lengths known at parameters z (d,); -infinity for impossible data."""
    shape = _shape_of(tree)
    point = target.start_parameters() if z is None else z
    return _exact(target, shape, shape.lengths, point)


def optimum(target: Target, tree: Tree, lengths: bool = True) -> Optimum:
    """The best parameters of the model and, with `lengths`, the best branch lengths; polytomies stay as they are."""
    shape = _shape_of(tree)
    z = target.start_parameters()
    if not lengths:
        if target.n_parameters:
            z = _best_parameters(target, shape, shape.lengths, z, stretch=False)[0]
        return Optimum(tree, z, _exact(target, shape, shape.lengths, z))
    own = np.where(np.isfinite(shape.lengths), shape.lengths, UNKNOWN_LENGTH)
    own = np.where(shape.vertex >= 0, np.clip(np.abs(own), MIN_LENGTH, MAX_LENGTH), 0.0)
    before = -np.inf
    for _ in range(MAX_ROUNDS):
        value = _best_lengths(target, shape, own, z)
        if not target.n_parameters or value - before < TOLERANCE:
            break
        z, factor = _best_parameters(target, shape, own, z, stretch=True)
        own *= factor
        before = value
    found = shape.rooted.length.copy()
    found[shape.vertex[shape.vertex >= 0]] = own[shape.vertex >= 0]
    return Optimum(simplified(shape.rooted.with_lengths(found)), z, _exact(target, shape, own, z))


@dataclass(frozen=True, eq=False)
class _Shape:
    """A tree as the kernels read it, polytomies resolved by branches of no length.

    `vertex` (2n-2,): the vertex of `rooted` whose branch each one is, -1 for those that were put in.
    """

    rooted: Tree
    children: NDArray[np.int64]
    lengths: Floats
    vertex: NDArray[np.int64]

    @property
    def top(self) -> int:
        return len(self.lengths) - 1


def _shape_of(tree: Tree) -> _Shape:
    plain = simplified(tree)
    n = plain.n_taxa
    if n < 3:
        raise TreeError(f"a tree of {n} taxa; at least 3 are needed")
    if (plain.degree[:n] != 1).any():
        raise TreeError("a taxon is inside the tree; taxa must be leaves")
    rooted = plain.rerooted(0)
    number = {v: v for v in range(n)}
    children: list[list[int]] = []
    vertex = list(range(n))

    def join(a: int, b: int, v: int) -> int:
        children.append([a, b])
        vertex.append(v)
        return n + len(children) - 1

    for v in rooted.postorder.tolist():
        if v < n:
            continue
        first, *others = (number[below] for below in rooted.children[v])
        for k, other in enumerate(others):
            first = join(first, other, v if k == len(others) - 1 else -1)
        number[v] = first
    names = np.array(vertex)
    lengths = np.where(names >= 0, rooted.length[names], 0.0)
    lengths[0] = 0.0
    return _Shape(rooted, np.array(children, dtype=np.int64), lengths, names)


def _exact(target: Target, shape: _Shape, lengths: Floats, z: Floats) -> float:
    family = target.family(z[None, :])
    return float(marginals.exact_log_likelihood(family, 0, target.data, shape.children, lengths, shape.top))


def _scores(target: Target, shape: _Shape, lengths: Floats, z: Floats) -> Floats:
    """Log-likelihoods at N parameter points (N, d) with lengths (N, 2n-2)."""
    n = len(z)
    out = np.empty(n)
    children = np.ascontiguousarray(np.broadcast_to(shape.children, (n, *shape.children.shape)))
    sweep.log_likelihoods(
        target.family(z), np.arange(n), target.data, children, np.ascontiguousarray(lengths), np.full(n, shape.top), out
    )
    return out


def _best_lengths(target: Target, shape: _Shape, lengths: Floats, z: Floats) -> float:
    """Improves `lengths` in place; returns the log-likelihood."""
    free = shape.vertex > 0
    family = target.family(z[None, :])
    return float(
        newton.best_lengths(
            family, 0, target.data, shape.children, lengths, shape.top, free, MIN_LENGTH, MAX_LENGTH, 0.1 * TOLERANCE, 100
        )
    )


def _best_parameters(target: Target, shape: _Shape, lengths: Floats, z: Floats, stretch: bool) -> tuple[Floats, float]:
    """(z, factor on all lengths, 1 unless `stretch`) of highest likelihood near z."""
    d = target.n_parameters

    def scores(points: Floats) -> Floats:
        factors = np.exp(points[:, d:]) if stretch else np.ones((len(points), 1))
        return _scores(target, shape, factors * lengths, points[:, :d])

    start = np.append(z, 0.0) if stretch else z
    widest = np.append(np.full(d, REACH), 2.0) if stretch else np.full(d, REACH)
    best = _climb(scores, start, widest)
    return best[:d], float(np.exp(best[d])) if stretch else 1.0


def _climb(scores: Callable[[Floats], Floats], start: Floats, widest: Floats) -> Floats:
    """L-BFGS with central differences, all points of one gradient computed together; never ends below its start."""
    steps = STEP * np.concatenate([np.zeros((1, len(start))), np.eye(len(start)), -np.eye(len(start))])

    def loss(point: Floats) -> tuple[float, Floats]:
        values = scores(point + steps)
        size = len(point)
        return -values[0], -(values[1 : size + 1] - values[size + 1 :]) / (2.0 * STEP)

    found = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(start - widest, start + widest)),
        options={"ftol": 1e-12, "gtol": 1e-4},
    )
    return found.x if -found.fun >= scores(start[None])[0] else start
