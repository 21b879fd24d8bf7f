"""One iteration of VaiPhy (paper, Alg. 1), and the state it starts from.

With the `spanning` tree distribution every update is exact and the ELBO never decreases; with `slantis` expectations over
trees are self-normalised importance sampling, as in the paper.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.branches.jc_sampler import jc_rows, likely_length
from vaiphy.branches.law import LengthLaw, Moments, moments
from vaiphy.branches.optimal import optimal_rows
from vaiphy.likelihood import log_likelihoods, node_marginals, optimise
from vaiphy.search import starts
from vaiphy.topology.augmented import AugmentedLaw, LeafLaw
from vaiphy.topology.slantis import SlantisLaw
from vaiphy.topology.spanning import SpanningLaw
from vaiphy.trees.counts import log_n_augmented
from vaiphy.trees.tree import Tree
from vaiphy.vi import updates
from vaiphy.vi.settings import Settings
from vaiphy.vi.updates import Columns, EdgeCounts
from vaiphy.weights import effective_sample_size, log_mean_exp, normalised

Floats = NDArray[np.float64]
#: Draws in the small IWELBO by which sampled iterations are compared: likelihoods are most of their cost.
N_SCORED = 32


@dataclass(frozen=True, eq=False)
class State:
    """What the next iteration needs; arrays on edges are (2n-2, n-2), see `updates`.

    `ancestral` is q(Z) (n-2, 4, P) over the columns with two or more taxa observed. `score` ranks iterations: the
    ELBO, or a small IWELBO with SLANTIS.
    """

    iteration: int
    ancestral: Floats
    log_weights: Floats
    edge_probability: Floats
    sensitivity: Floats
    elbo: float
    score: float


@dataclass(frozen=True)
class Info:
    """What one plots of an iteration. `effective_trees` is the effective number of SLANTIS draws (else NaN)."""

    iteration: int
    elbo: float
    score: float
    change: float
    effective_trees: float


def initialise(
    patterns: SitePatterns,
    settings: Settings,
    *,
    initial: str | Tree = "bionj",
    rng: np.random.Generator,
    threads: int = 1,
) -> State:
    """State before the first iteration.

    `initial`: "bionj" (node marginals on the BIONJ tree with optimised lengths, paper's appendix A.2), "bootstrap"
    (the same from resampled sites: independent starts for an ensemble), "random" (random q(Z)), or an unrooted binary
    tree.
    """
    if patterns.n_taxa < 3:
        raise ValueError(f"the alignment has {patterns.n_taxa} taxa; the augmented tree space needs at least 3")
    data = updates.columns(patterns)
    lengths = None
    if isinstance(initial, str) and initial == "random":
        z = rng.dirichlet(np.ones(4), size=(data.n_internal, len(data.counts)))
        z = np.ascontiguousarray(np.moveaxis(z, 2, 1))
    else:
        tree = _initial_tree(patterns, initial, rng)
        tree, _ = optimise(tree, patterns)
        marginals = node_marginals(tree, patterns)
        z = np.ascontiguousarray(marginals[patterns.n_taxa :, :, data.kept])
        lengths = path_lengths(tree)[:, patterns.n_taxa :]
    if settings.branch_law != "likely":
        lengths = None
    return _complete(data, settings, 0, z, updates.entropy(data, z), lengths, rng, threads)[0]


def step(state: State, data: Columns, settings: Settings, *, rng: np.random.Generator, threads: int = 1) -> tuple[State, Info]:
    """One iteration of Alg. 1: q(Z) vertex by vertex, expected counts, q(B), q(tau). `data` is `columns(patterns)`."""
    z, entropy = updates.sweep_ancestral(
        data,
        state.ancestral,
        state.edge_probability,
        state.sensitivity,
        settings.step_size,
        settings.mix_probabilities,
        threads,
    )
    new, effective = _complete(data, settings, state.iteration + 1, z, entropy, None, rng, threads)
    return new, Info(new.iteration, new.elbo, new.score, new.elbo - state.elbo, effective)


def length_rows(settings: Settings, counts: EdgeCounts) -> Floats:
    """Branch-length distributions (2n-2, n-2, 5) of all edges."""
    if settings.branch_law == "optimal":
        return optimal_rows(counts.statistics, settings.prior_rate)
    return jc_rows(counts.statistics, settings.jc_prior)


def edge_log_weights(settings: Settings, counts: EdgeCounts, rows: Floats, of_rows: Moments) -> Floats:
    """Log-weights of all edges in q*(tau), given branch distributions and their moments."""
    if settings.branch_law == "likely":
        return updates.log_likelihood_weights(counts, likely_length(counts.statistics))
    return updates.log_edge_weights(counts, rows, of_rows, settings.prior_rate)


def edge_moments(rows: Floats, threads: int = 1) -> Moments:
    """Moments of distributions on all edges; each internal edge, which stands in two places, is integrated once."""
    n_internal = rows.shape[1]
    n = rows.shape[0] - n_internal
    vertex, internal = np.nonzero(np.arange(n + n_internal)[:, None] - n < np.arange(n_internal)[None, :])
    found = moments(rows[vertex, internal], threads)
    full = []
    for name in Moments.__dataclass_fields__:
        values = np.zeros((n + n_internal, n_internal))
        values[vertex, internal] = getattr(found, name)
        values[n:] += values[n:].T
        full.append(values)
    return Moments(*full)


def tree_law(settings: Settings, log_weights: Floats) -> AugmentedLaw:
    """The distribution over augmented trees with these edge weights: exact, or proposed by SLANTIS."""
    n = log_weights.shape[0] - log_weights.shape[1]
    core = SpanningLaw(log_weights[n:])
    if settings.tree_law == "slantis":
        return AugmentedLaw(SlantisLaw(log_weights[n:], settings.accepted_only), LeafLaw(log_weights[:n]))
    return AugmentedLaw(core, LeafLaw(log_weights[:n]))


def path_lengths(tree: Tree) -> Floats:
    """Length of the path between any two vertices (n_vertices, n_vertices)."""
    n = tree.n_vertices
    distance = np.zeros((n, n))
    placed = [tree.root]
    for vertex in tree.postorder[::-1][1:].tolist():
        above = tree.parent[vertex]
        row = distance[above, placed] + tree.length[vertex]
        distance[vertex, placed] = distance[placed, vertex] = row
        placed.append(vertex)
    return distance


def _complete(
    data: Columns,
    settings: Settings,
    iteration: int,
    z: Floats,
    entropy: float,
    lengths: Floats | None,
    rng: np.random.Generator,
    threads: int,
) -> tuple[State, float]:
    """Everything that follows from q(Z): expected counts, q(B), edge weights, q(tau) and the ELBO.

    `lengths` fixes the branch lengths instead (the paper's initialisation).
    """
    counts = updates.expected_counts(data, z, threads=threads)
    rows = length_rows(settings, counts)
    of_rows = edge_moments(rows, threads)
    if settings.branch_law == "likely":
        fixed = likely_length(counts.statistics) if lengths is None else np.clip(lengths, 1e-6, None)
        log_weights = updates.log_likelihood_weights(counts, fixed)
        sensitivity = updates.sensitivities_at(fixed)
    else:
        log_weights = updates.log_edge_weights(counts, rows, of_rows, settings.prior_rate)
        sensitivity = updates.sensitivities(of_rows)
    n = data.n_taxa
    law, core = tree_law(settings, log_weights), SpanningLaw(log_weights[n:])
    elbo = float("nan")  # with fixed lengths there is no distribution of branch lengths, hence no bound
    if settings.branch_law != "likely":
        elbo = updates.elbo(data, law.leaves.log_normalisers, core.log_normaliser, entropy)
    probability = np.empty_like(log_weights)
    score, effective = elbo, float("nan")
    if settings.tree_law == "spanning":
        probability[:n] = np.exp(law.leaves.log_probabilities)
        probability[n:] = core.edge_probabilities
    if settings.sampled_score:
        parents, log_density = law.sample(settings.n_trees, rng, threads)
        length_law = LengthLaw(rows, of_rows.log_norm)
        score = _small_iwelbo(data, settings, length_law, parents[:N_SCORED], log_density[:N_SCORED], rng, threads)
    if settings.tree_law == "slantis":
        log_ratio = _log_tree_weights(log_weights, parents) - log_density
        probability[:] = _edge_shares(parents, normalised(log_ratio), n)
        effective = effective_sample_size(log_ratio)
    return State(iteration, z, log_weights, probability, sensitivity, elbo, score), effective


def _log_tree_weights(log_weights: Floats, parents: NDArray[np.int32]) -> Floats:
    """Sum of the edges' log-weights of each tree: its unnormalised log-probability under q*(tau)."""
    n = log_weights.shape[0] - log_weights.shape[1]
    inside = parents >= 0
    values = log_weights[np.arange(parents.shape[1])[None, :], np.where(inside, parents - n, 0)]
    return np.where(inside, values, 0.0).sum(axis=1)


def _edge_shares(parents: NDArray[np.int32], share: Floats, n_taxa: int) -> Floats:
    """Weighted frequency of each edge among trees."""
    n_vertices = parents.shape[1]
    tree, vertex = np.nonzero(parents >= 0)
    above = parents[tree, vertex] - n_taxa
    result = np.zeros((n_vertices, n_vertices - n_taxa))
    np.add.at(result, (vertex, above), share[tree])
    result[n_taxa:] += result[n_taxa:].T.copy()
    return result


def _small_iwelbo(
    data: Columns,
    settings: Settings,
    lengths_law: LengthLaw,
    parents: NDArray[np.int32],
    log_density: Floats,
    rng: np.random.Generator,
    threads: int,
) -> float:
    """IWELBO from some of the iteration's own trees, to choose among iterations; never reported."""
    lengths, log_lengths = lengths_law.sample_trees(parents, rng, threads)
    log_weights = log_joint(data, parents, lengths, settings.prior_rate, threads) - log_density - log_lengths
    return log_mean_exp(log_weights)


def log_joint(data: Columns, parents: NDArray[np.int32], lengths: Floats, prior_rate: float, threads: int = 1) -> Floats:
    """log p(X, B, tau) of trees (T, 2n-2): Z summed out, Exp(prior_rate) on all branches, uniform augmented trees."""
    n = data.n_taxa
    total_length = np.where(parents >= 0, lengths, 0.0).sum(axis=1)
    log_prior = (2 * n - 3) * np.log(prior_rate) - prior_rate * total_length - log_n_augmented(n)
    return log_likelihoods(parents, lengths, data.folded, threads) + log_prior


def _initial_tree(patterns: SitePatterns, initial: str | Tree, rng: np.random.Generator) -> Tree:
    if isinstance(initial, Tree):
        if initial.taxa != patterns.taxa or not initial.is_binary:
            raise ValueError("the initial tree must be unrooted, binary and on the alignment's taxa in the same order")
        return initial
    if initial == "bionj":
        return starts.bionj(starts.distances(patterns), patterns.taxa)
    if initial == "bootstrap":
        total = round(float(patterns.counts.sum()))
        counts = rng.multinomial(total, patterns.counts / patterns.counts.sum()).astype(np.float64)
        return starts.bionj(starts.distances(patterns, counts), patterns.taxa)
    raise ValueError(f"initial is {initial!r}, expected 'bionj', 'bootstrap', 'random' or a tree")
