"""Moves of trees: what is kept up to date on the way equals what is computed anew, and plain Python does the same."""

from dataclasses import replace

import numpy as np
import pytest
from reference.bridges import (
    arrays_of,
    caterpillar,
    clades_of,
    log_density,
    log_likelihoods,
    moved,
    one_law,
    random_trees,
    rich_in_contexts,
)
from reference.shapes import interpret, random_patterns
from reference.topologies import names

from vaiphy.alignment import SitePatterns
from vaiphy.kernels import binary, branch, clade_draws, clades, equal_input, partials, regraft, spectral, sweep, tour, workspace
from vaiphy.models.priors import length_prior
from vaiphy.posterior.particles import Moves, evaluated
from vaiphy.posterior.proposal import fit, prior_proposal
from vaiphy.target import target_of

KINDS = {
    "regraft": Moves(regrafts=3, tours=0, stretch=0.0),
    "tour": Moves(regrafts=0, tours=1, stretch=0.0),
    "stretch": Moves(regrafts=0, tours=0, stretch=0.5),
    "together": Moves(regrafts=2, tours=2, stretch=0.5),
}


def case(n_taxa, model, n=12, seed=1, prior="exp(10)"):
    """A proposal fitted to other trees, and trees in any numbering to be moved."""
    rng = np.random.default_rng(seed)
    target = target_of(random_patterns(names(n_taxa), 12, rng), model, length_prior(prior))
    z = 0.3 * target.draw_parameters(n, rng)
    proposal = fit(target, *random_trees(n_taxa, n, rng), z, rng.dirichlet(np.ones(n)), one_law(floor=0.1))
    return proposal, evaluated(proposal, *random_trees(n_taxa, n, rng), z)


@pytest.mark.parametrize("model", ["JC", "HKY+G2"])
@pytest.mark.parametrize("kind", list(KINDS))
def test_what_is_kept_on_the_way_is_right_in_the_end(kind, model):
    changed = 0
    for n_taxa, beta in ((3, 0.5), (4, 0.0), (5, 0.5), (12, 1.0), (40, 0.5)):
        proposal, start = case(n_taxa, model, seed=n_taxa)
        end = moved(proposal, start, beta, KINDS[kind], 3)
        density = log_density(proposal, end.children, end.lengths, end.tops) + proposal.parameters.log_density(end.z)
        likelihood = log_likelihoods(proposal.target, end.z, end.children, end.lengths, end.tops)
        assert end.log_laws[:, 0] == pytest.approx(density, rel=1e-11, abs=1e-9)
        assert end.log_likelihood == pytest.approx(likelihood, rel=1e-11)
        assert (end.lengths[:, 1:] >= branch.MIN_LENGTH * (1 - 1e-12)).all()
        for children, top in zip(end.children, end.tops):
            assert len(clades_of(children, top)) == 2 * n_taxa - 3
            assert clades_of(children, top)[top] == frozenset(range(1, n_taxa))
        changed += (end.children != start.children).any() and not np.array_equal(end.lengths, start.lengths)
    assert changed >= 3 or kind == "stretch"


def test_nothing_underflows_while_a_large_tree_is_moved():
    """Two thousand taxa in a row."""
    rng = np.random.default_rng(5)
    tree = caterpillar(2000, rng)
    children, lengths, tops = arrays_of(tree)
    proposal = prior_proposal(target_of(random_patterns(tree.taxa, 5, rng), "JC", fold=False))
    start = evaluated(proposal, children, lengths, tops, np.zeros((1, 0)))
    end = moved(proposal, start, 1.0, KINDS["together"], 1)
    assert (end.children != start.children).any()
    likelihood = log_likelihoods(proposal.target, end.z, end.children, end.lengths, end.tops)
    assert end.log_likelihood == pytest.approx(likelihood, rel=1e-11)
    assert end.log_likelihood[0] > start.log_likelihood[0]


def guards(proposal, sampled):
    """Log-densities of guarded draws."""
    trees = [(drawn.children, drawn.lengths, drawn.tops) for drawn in sampled]
    return np.concatenate([proposal.log_guarded(*some, d.z)[0] for some, d in zip(trees, sampled)])


@pytest.mark.parametrize("prior", ["exp(10)", "gammadir(1,0.1,1,0.5)"])
@pytest.mark.parametrize("model", ["JC+G2", "HKY+I"])
def test_plain_python_does_the_same(model, prior, monkeypatch):
    proposal, start = case(5, model, n=2, prior=prior)
    compiled = moved(proposal, start, 0.6, KINDS["together"], 4)
    sampled = [proposal.guarded_sample(3, [k]) for k in range(2)]
    fast = guards(replace(proposal, guard=0.5), sampled)
    interpret(monkeypatch, binary, branch, clade_draws, clades, equal_input, partials, regraft, spectral, sweep, tour, workspace)
    monkeypatch.setattr(branch, "log_product", lambda x, begin, end, least: np.log(np.maximum(x[begin:end], least)).sum())
    monkeypatch.setattr(branch, "quick_log", np.log)
    with np.errstate(over="ignore"):  # 64-bit identities wrap around
        plain = moved(proposal, start, 0.6, KINDS["together"], 4)
        drawn = [proposal.guarded_sample(3, [k]) for k in range(2)]
        slow = guards(replace(proposal, guard=0.5), sampled)
    assert slow == pytest.approx(fast, rel=1e-9, abs=1e-12)
    assert np.array_equal(plain.children, compiled.children)
    assert plain.lengths == pytest.approx(compiled.lengths, rel=1e-9)
    assert plain.log_likelihood == pytest.approx(compiled.log_likelihood, rel=1e-10)
    assert plain.log_laws[:, 0] == pytest.approx(compiled.log_laws[:, 0], rel=1e-10)
    for one, two in zip(drawn, sampled):
        assert np.array_equal(one.children, two.children)
        assert one.lengths == pytest.approx(two.lengths, rel=1e-12)
        assert np.array_equal(one.n_wide, two.n_wide)


def test_every_place_of_a_clade_has_the_density_of_the_tree_hung_there(monkeypatch):
    """What a regrafting adds up on its way down is the density of the whole tree, up to a constant of the clade and the rest."""
    proposal, slow, seen = rich_in_contexts(9)
    interpret(monkeypatch, binary, branch, clades, regraft)
    spreads = []
    for children, lengths, top in zip(*(x[:20] for x in seen)):
        for v in range(1, 16):
            if v != top:
                values = densities_by_place(proposal, slow, children.copy(), lengths.copy(), int(top), v)
                assert np.ptp(values[0] - values[1]) < 1e-9
                spreads.append(np.ptp(values[0]))
    assert np.median(spreads) > 3.0


def densities_by_place(proposal, slow, children, lengths, top, v, position=0.3):
    """The clade of v hung into each branch of the rest: log-densities by the kernel, and of whole trees by the slow twin."""
    n, law = slow.n, proposal.laws[0].clades
    parent, below = np.zeros(2 * n - 2, dtype=np.int64), clades_of(children, top)
    for k, pair in enumerate(children):
        parent[pair] = n + k
    p = parent[v]
    s, g = int(children[p - n].sum() - v), parent[p]
    lengths[s] += lengths[p]
    parent[s] = g
    if g:
        children[g - n][children[g - n] == p] = s
    rest = {w: taxa - below[v] for w, taxa in below.items()} | {w: below[w] for w in below if below[w] <= below[v]}
    clade, size = np.zeros(2 * n - 2, dtype=np.uint64), np.zeros(2 * n - 2, dtype=np.int64)
    for w, taxa in rest.items():
        clade[w], size[w] = np.bitwise_xor.reduce(proposal.keys[list(taxa)]), len(taxa)
    path_terms, order = np.zeros(2 * n), [top if g else s]
    kernel, whole = [], []
    with np.errstate(over="ignore"):  # 64-bit identities wrap around
        for w in order:
            kernel.append(regraft.place_terms(w, v, position, path_terms, children, parent, lengths, clade, size, law))
            hung, at = children.copy(), lengths.copy()
            if parent[w]:
                hung[parent[w] - n][hung[parent[w] - n] == w] = p
            hung[p - n], at[w], at[p] = (w, v), position * lengths[w], (1 - position) * lengths[w]
            shape, rate = slow.gamma(below[v], rest[w] | below[v], v < n)
            own = branch.log_gamma(lengths[v], shape, rate)
            whole.append(slow.log_density(hung, at, order[0] if w != order[0] else p) - own)
            if w >= n:
                regraft.pass_down(w, v, path_terms, children, parent, lengths, clade, size, law)
                order += children[w - n].tolist()
    assert len(order) == 2 * (n - size[v]) - 3
    return np.array(kernel), np.array(whole)


def test_sites_that_say_nothing_leave_the_likelihood_at_one():
    patterns = SitePatterns(names(6), np.full((6, 2), 15, dtype=np.uint8), np.ones(2), np.arange(2))
    for model in ("JC+I+G2", "GTR+I+G2"):
        target = target_of(patterns, model, fold=False)
        z = target.draw_parameters(5, np.random.default_rng(1))
        assert log_likelihoods(target, z, *random_trees(6, 5, np.random.default_rng(2))) == pytest.approx(0.0, abs=1e-9)
