"""What the bridge's parts must be, written down slowly: the proposal of trees with sets, and the evidence by joint states.

Evidence: M sites that share branch lengths are one Markov chain on S^M joint states, with the generator G = the sum over sites
of (rate of the site's category) Q. A branch b ~ Exp(rate) integrates to rate (rate I - G)^-1, whatever Q is; pruning with that
matrix is the integral over all lengths, and categories of rates are summed over. No quadrature, no eigenvectors, no kernel.
"""

from dataclasses import replace
from functools import reduce
from itertools import product
from math import lgamma, log

import numpy as np
from reference.random_trees import random_binary_tree
from reference.shapes import random_patterns
from reference.topologies import names

from vaiphy.kernels import sweep
from vaiphy.posterior.particles import Moves, Particles, evaluated
from vaiphy.posterior.particles import moved as move_all
from vaiphy.posterior.proposal import Proposal, fit, prior_proposal
from vaiphy.posterior.split_law import LEAST_SHARE, SplitSmoothing
from vaiphy.posterior.tree_law import ALONE, Fitting
from vaiphy.target import target_of
from vaiphy.trees.sample import binary_arrays
from vaiphy.trees.tree import Tree

Clade = frozenset[int]
Split = frozenset[Clade]
Place = Clade | tuple[Clade, Clade | None]


def clades_of(children: np.ndarray, top: int) -> dict[int, Clade]:
    """The taxa below every vertex; internal vertices may be numbered in any order."""
    n = len(children) + 2
    found: dict[int, Clade] = {}

    def visit(v: int) -> Clade:
        found[v] = frozenset([v]) if v < n else visit(int(children[v - n, 0])) | visit(int(children[v - n, 1]))
        return found[v]

    visit(int(top))
    return found


def topology_of(children: np.ndarray, top: int) -> frozenset[Clade]:
    return frozenset(clades_of(children, top).values())


class SlowProposal:
    """Trees by splits of clades in their contexts and a Gamma for each branch, from weighted trees, as documented.

    A context is a clade with the clade it is part of (None: of the whole tree).
    """

    def __init__(self, children, lengths, tops, weights, fitting: Fitting) -> None:
        self.n, self.fitting = children.shape[1] + 2, fitting
        self.splits: dict[Place, dict[Split, float]] = {}
        seen: dict[Place, list[tuple[float, float]]] = {}
        inner, outer = [], []
        effective = 1.0 / float(np.square(weights).sum())
        for tree, length, top, weight in zip(children, lengths, tops, (weights * effective).tolist()):
            for v, clade, parent, split in self.vertices(tree, top):
                (outer if v < self.n or v == top else inner).append((weight, float(length[v])))
                for place in (clade, (clade, parent)):
                    seen.setdefault(place, []).append((weight, float(length[v])))
                    if split is not None:
                        table = self.splits.setdefault(place, {})
                        table[split] = table.get(split, 0.0) + weight
        self.frequency = {c: sum(w for w, _ in seen[c]) / effective for c in seen if not isinstance(c, tuple)}
        self.made: dict[Clade, dict[Split, float]] = {}
        self.gammas: dict[Place, tuple[float, float]] = {}
        for place in sorted(seen, key=lambda place: isinstance(place, tuple)):  # clades alone first
            w, b = np.array(seen[place]).T
            if w.sum() < fitting.least_draws:
                continue
            mean = np.average(b, weights=w)
            shape = 1 / max(np.average((b / mean - 1) ** 2, weights=w), 1e-12)
            shape = np.clip(shape * fitting.widening, 0.6, fitting.most_shape)
            base, rate = self.gammas[place[0]] if isinstance(place, tuple) else (1.0, 1 / mean)
            trust = w.sum() / (w.sum() + fitting.pseudo)
            shape, mean = shape**trust * base ** (1 - trust), mean**trust * (base / rate) ** (1 - trust)
            self.gammas[place] = (float(shape), float(shape / mean))
        means = [np.average(np.array(x)[:, 1], weights=np.array(x)[:, 0]) for x in (inner or outer, outer)]
        self.default = {False: (0.8, 1.2 / means[0]), True: (0.8, 0.8 / means[1])}

    def vertices(self, children, top):
        """(vertex, clade, clade of its parent, split) of every vertex but taxon 0; no split at a taxon."""
        clades = clades_of(children, top)
        above = {int(c): clades[self.n + k] for k, pair in enumerate(children) for c in pair}
        for v, clade in clades.items():
            split = frozenset(clades[c] for c in children[v - self.n].tolist()) if v >= self.n else None
            yield v, clade, above.get(v), split

    def split_probability(self, clade: Clade, parent: Clade | None, split: Split) -> float:
        if len(clade) == 2:
            return 1.0
        probability = float(np.prod([float(n_rooted(len(side))) for side in split])) / n_rooted(len(clade))
        smoothing = self.fitting.splits
        for place, novelty in ((clade, smoothing.novelty), ((clade, parent), smoothing.context_novelty)):
            if place not in self.splits:
                continue
            if place == clade:
                made_of_seen = self.share_of_recombined(clade, split)
                probability = smoothing.recombined * made_of_seen + (1 - smoothing.recombined) * probability
            table, total = self.splits[place], sum(self.splits[place].values())
            new = novelty * sum(min(1.0, 1.0 / x) for x in table.values())
            other = max(new / (total + new), smoothing.floor)
            probability = (1 - other) * table.get(split, 0.0) / total + other * probability
        return probability

    def share_of_recombined(self, clade: Clade, split: Split) -> float:
        table = self.recombined(clade)
        kept = {s: x for s, x in table.items() if x >= LEAST_SHARE * sum(table.values())}
        return kept.get(split, 0.0) / sum(kept.values())

    def recombined(self, clade: Clade) -> dict[Split, float]:
        """Splits of a clade into seen clades: the sum, over all trees below it made of seen ones, of products of frequencies."""
        if clade not in self.made:
            seen = {c: f for c, f in self.frequency.items() if c < clade}
            self.made[clade] = {
                frozenset((c, clade - c)): f * seen[clade - c] * self.n_made(c) * self.n_made(clade - c)
                for c, f in seen.items()
                if clade - c in seen
            }
        return self.made[clade]

    def n_made(self, clade: Clade) -> float:
        return sum(self.recombined(clade).values()) if len(clade) > 1 else 1.0

    def gamma(self, clade: Clade, parent: Clade | None, outer: bool) -> tuple[float, float]:
        return self.gammas.get((clade, parent), self.gammas.get(clade, self.default[outer]))

    def known(self, clade: Clade, parent: Clade | None, split: Split | None) -> str:
        """Where a branch, or a split of it, was seen: in this context, in its clade alone, or nowhere."""
        if split is None:
            return "context" if (clade, parent) in self.gammas else "clade" if clade in self.gammas else "nowhere"
        at_clade, here = self.splits.get(clade, {}), self.splits.get((clade, parent))
        of_clade = "clade" if split in at_clade else "other splits" if at_clade else "nowhere"
        return "context" if here and split in here else f"{of_clade}, {'known' if here else 'new'} context"

    def ways(self, children, top) -> set[tuple[str, str]]:
        """How the lengths and the splits (of more than two taxa) of a tree are known."""
        vertices = list(self.vertices(children, top))
        splits = {("split", self.known(c, p, s)) for _, c, p, s in vertices if s is not None and len(c) > 2}
        return splits | {("length", self.known(c, p, None)) for _, c, p, _ in vertices}

    def log_density(self, children, lengths, top) -> float:
        total = 0.0
        for v, clade, parent, split in self.vertices(children, top):
            total += log(self.split_probability(clade, parent, split)) if split is not None else 0.0
            shape, rate = self.gamma(clade, parent, v < self.n or v == top)
            total += shape * log(rate) + (shape - 1) * log(lengths[v]) - rate * lengths[v] - lgamma(shape)
        return total


def n_rooted(n_leaves: int) -> int:
    """(2n - 3)!!"""
    return reduce(lambda a, b: a * b, range(2 * n_leaves - 3, 0, -2), 1)


def joint_evidence(trees, tips, generator, pi, rates, weights, prior_rate=10.0) -> np.ndarray:
    """p(X | topology) of each tree `children` (top last) under Exp(prior_rate) lengths; `tips` (n_taxa, S, M), one column a site.

    `rates`, `weights`: categories, invariable sites (rate 0) among them.
    """
    n_taxa, n_states, n_sites = tips.shape
    leaves = [reduce(np.kron, tips[t].T) for t in range(n_taxa)]
    frequency = reduce(np.kron, [pi] * n_sites)
    total = np.zeros(len(trees))
    for classes in product(range(len(rates)), repeat=n_sites):
        joint = np.zeros((n_states**n_sites,) * 2)
        for site, c in enumerate(classes):
            before, after = np.eye(n_states**site), np.eye(n_states ** (n_sites - site - 1))
            joint += rates[c] * np.kron(np.kron(before, generator), after)
        over = prior_rate * np.linalg.inv(prior_rate * np.eye(len(joint)) - joint)
        share = np.prod([weights[c] for c in classes])
        for i, children in enumerate(trees):
            partial = list(leaves)
            for a, b in children.tolist():
                partial.append((over @ partial[a]) * (over @ partial[b]))
            total[i] += share * float(frequency @ (leaves[0] * (over @ partial[-1])))
    return total


def quartet_evidence(tips, exchange, pi, rates, weights, prior_rate=10.0) -> np.ndarray:
    """The same for four taxa, three sites and K models at once, (K,): the mean over the three topologies.

    `exchange` (K, S, S), `pi` (K, S), `rates` and `weights` (K, C). Here the chain is diagonalised, for speed.
    """
    root = np.sqrt(pi)
    q = exchange * root[:, :, None] * root[:, None, :]
    diagonal = -np.einsum("kij,kj->ki", exchange, pi)
    states = np.arange(pi.shape[1])
    q[:, states, states] = diagonal
    q /= -np.einsum("ki,ki->k", pi, diagonal)[:, None, None]
    values, vectors = np.linalg.eigh(q)
    forward, backward = np.swapaxes(vectors, 1, 2) * root[:, None, :], vectors / root[:, :, None]
    # Axes: model, categories of the three sites, then one axis of states (or eigenvalues) for each site.
    rate = rates[:, :, None] * -values[:, None, :]
    k, c, s = rate.shape
    decay = (
        rate.reshape(k, c, 1, 1, s, 1, 1) + rate.reshape(k, 1, c, 1, 1, s, 1) + rate.reshape(k, 1, 1, c, 1, 1, s)
    )  # fmt: skip
    integral = prior_rate / (prior_rate + decay)
    share = np.einsum("ka,kb,kc->kabc", weights, weights, weights)

    def turned(matrix, x):
        return np.einsum("kxi,kyj,kzl,kabcijl->kabcxyz", matrix, matrix, matrix, x, optimize=True)

    leaf = []
    for t in range(4):
        ends = [np.einsum("kis,s->ki", forward, tips[t, :, site]) for site in range(3)]
        start = ends[0][:, :, None, None] * ends[1][:, None, :, None] * ends[2][:, None, None, :]
        leaf.append(turned(backward, integral * start[:, None, None, None]))
    total = 0.0
    for a, b, d, e in ((0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)):
        left, right = turned(forward, leaf[a] * leaf[b]), turned(forward, leaf[d] * leaf[e])
        total = total + np.einsum("kabc,kabcijl,kabcijl,kabcijl->k", share, left, integral, right, optimize=True)
    return total / 3


def moved(proposal: Proposal, particles: Particles, beta: float, moves: Moves, seed: int, times: int = 1):
    """Particles after `times` rounds of the moves of trees (parameters stay)."""
    for k in range(times):
        particles = move_all(proposal, particles, beta, moves, (seed, k), 2)[0]
    return particles


def log_density(proposal: Proposal, children, lengths, tops) -> np.ndarray:
    """Of trees and lengths under the whole mixture."""
    return proposal.log_path(proposal.log_laws(children, lengths, tops), 0.0)


def one_law(pseudo=10.0, widening=0.9, least_draws=3.0, parameters=None, **splits) -> Fitting:
    """A fitting of one law; `splits`: how far splits that were not seen are trusted."""
    fitting = Fitting(SplitSmoothing(**splits), pseudo, widening, least_draws, **ALONE)
    return replace(fitting, parameters=parameters) if parameters else fitting


def with_tables(proposal: Proposal, **tables) -> Proposal:
    """The proposal, of one law, with some of its tables replaced."""
    (law,) = proposal.laws
    return replace(proposal, laws=(law._replace(clades=law.clades._replace(**tables)),))


def random_trees(n_taxa, n, rng):
    """Trees in any numbering of their internal vertices, with lengths."""
    children, lengths = zip(*(binary_arrays(random_binary_tree(n_taxa, rng)) for _ in range(n)))
    children, lengths = np.array(children, dtype=np.int64), np.array(lengths)
    tops = np.full(n, 2 * n_taxa - 3)
    for i in range(n):
        new = np.concatenate([np.arange(n_taxa), n_taxa + rng.permutation(n_taxa - 2)])
        old = np.argsort(new)
        children[i] = new[children[i]][old[n_taxa:] - n_taxa]
        lengths[i], tops[i] = lengths[i][old], new[tops[i]]
    return children, lengths, tops


def rich_in_contexts(n_taxa):
    """A proposal and its slow twin, from a few trees of one neighbourhood (given too): clades are split by their contexts."""
    rng = np.random.default_rng(12)
    patterns = random_patterns(names(n_taxa), 4, rng)
    of = target_of(patterns, "JC", fold=False)
    start = evaluated(prior_proposal(of), *(np.repeat(x, 60, axis=0) for x in random_trees(n_taxa, 1, rng)), np.zeros((60, 0)))
    near = moved(prior_proposal(of), start, 0.0, Moves(regrafts=1, tours=0, stretch=0.0), 3)
    few = rng.integers(25, size=60)
    lengths = rng.gamma(rng.uniform(1.0, 4.0, size=(25, 1)), 0.05, size=(25, 2 * n_taxa - 2))[few]
    fitting = one_law(floor=0.1, novelty=0.3, context_novelty=0.4, least_draws=1.0, pseudo=2.0)
    arrays = (near.children[few], lengths * rng.gamma(5.0, 0.2, size=lengths.shape), near.tops[few], np.zeros((60, 0)))
    weights = rng.dirichlet(np.ones(60))
    return fit(of, *arrays, weights, fitting), SlowProposal(*arrays[:3], weights, fitting), arrays[:3]


def arrays_of(tree):
    """One tree as the sampler holds many: children, lengths, tops."""
    children, lengths = binary_arrays(tree)
    return children[None].astype(np.int64), lengths[None], np.array([2 * tree.n_taxa - 3])


def caterpillar(n_taxa, rng):
    """A comb, with a few branches as short and as long as they get."""
    parent = np.empty(2 * n_taxa - 2, dtype=np.int32)
    inner = np.arange(n_taxa, 2 * n_taxa - 2)
    parent[inner] = inner - 1
    parent[n_taxa] = 0
    parent[1 : n_taxa - 1] = inner
    parent[n_taxa - 1], parent[0] = inner[-1], -1
    length = rng.exponential(0.1, size=2 * n_taxa - 2)
    length[rng.integers(1, 2 * n_taxa - 2, size=100)] = 1e-9
    length[rng.integers(1, 2 * n_taxa - 2, size=100)] = 50.0
    return Tree(names(n_taxa), parent, length)


def log_likelihoods(target, z, children, lengths, tops):
    """Each tree at its own parameter point."""
    out = np.empty(len(children))
    sweep.log_likelihoods(target.family(z), np.arange(len(z)), target.data, children, lengths, tops, out)
    return out
