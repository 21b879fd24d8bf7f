"""phi-CSMC as its authors ran it: unbiased once their bias is taken off, and their tree is what they make of it."""

from functools import cache

import numpy as np
import pytest
from csmc.test_unbiased import exact_evidence, patterns_of

from vaiphy import csmc, vi
from vaiphy.csmc import authors
from vaiphy.csmc.forest import taxon_hashes
from vaiphy.csmc.vanilla import PriorLengths, UniformMerger
from vaiphy.trees.tree import Tree


@cache
def fit_of(n_taxa):
    return vi.fit(patterns_of(n_taxa), rng=np.random.default_rng(5), iterations=5, prior_share=0.3)


@pytest.mark.parametrize("n_taxa", [4, 5])
@pytest.mark.parametrize("name", ["vanilla", "authors"])
def test_mean_of_evidence(name, n_taxa):
    vanilla = authors.JoinThree(UniformMerger(), PriorLengths())
    proposal = vanilla if name == "vanilla" else authors.authors_proposal(fit_of(n_taxa), floor=0.2)
    streams = np.random.default_rng(1).spawn(60)
    found = [authors.run(patterns_of(n_taxa), proposal, rng, 500).log_evidence for rng in streams]
    ratio = np.exp(np.array(found) - exact_evidence("unrooted", n_taxa, "JC"))
    error = ratio.std(ddof=1) / np.sqrt(len(ratio))
    assert error < 0.03  # the test has power: log(n - 2) is 0.7 or more
    assert abs(ratio.mean() - 1.0) < 4.0 * error


def test_the_bias_stands_apart():
    found = csmc.run(patterns_of(5), rng=np.random.default_rng(1), proposal="authors", fit=fit_of(5), n_particles=64)
    assert isinstance(found, csmc.AuthorsParticles)
    assert found.bias == pytest.approx(np.log(64) + np.log(3))
    assert found.as_printed == found.log_evidence + found.bias
    several = csmc.estimate(
        patterns_of(5), rng=np.random.default_rng(1), proposal="authors", fit=fit_of(5), n_particles=64, repeats=2
    )
    assert several.bias == found.bias
    assert found.resampled.tolist() == [True, True, False]
    with pytest.raises(ValueError, match="its trees are unrooted"):
        csmc.run(patterns_of(5), rng=np.random.default_rng(1), proposal="authors", fit=fit_of(5), target="rooted")


def test_a_star_is_resolved_one_after_another():
    taxa = tuple("abcde")
    star = Tree(taxa, np.array([5, 5, 5, 5, 5, -1, 5, 6]), np.full(8, 0.1))  # with two vertices that dangle
    found = set(authors.resolved_clades(star).tolist())
    h = taxon_hashes(5)
    everything = np.bitwise_xor.reduce(h)
    sides = {int(h[1] ^ h[2]), int(h[1] ^ h[2] ^ h[3])}
    expected = {int(x) for x in h} | sides
    assert found == expected | {int(everything) ^ clade for clade in expected}
