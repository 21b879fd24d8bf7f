"""`--method vaiphy` in steps: any saved state leads to the same outcome; labelled trees and states share their names."""

import gzip
from itertools import count

import numpy as np
import pytest
from reference.standin import NAMES, fasta

from vaiphy.alignment import compress
from vaiphy.errors import InputError
from vaiphy.formats import newick, parse_alignment
from vaiphy.methods import outcome, variational
from vaiphy.methods.settings import Settings
from vaiphy.runner import run as runner
from vaiphy.runner.steps import run_steps


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(variational, "N_SAMPLES", 50)
    monkeypatch.setattr(variational, "REPEATS", 3)
    monkeypatch.setattr(variational, "N_TREES", 40)
    monkeypatch.setattr(variational, "CHUNK", 4)


@pytest.fixture
def patterns():
    return compress(parse_alignment(fasta(NAMES)))


@pytest.mark.parametrize("law", ["spanning", "slantis"])
def test_any_saved_state_leads_to_the_same_outcome(patterns, law):
    settings = Settings(seed=5, method="vaiphy", replicates=2, tree_law=law, iterations=9)
    saved = []
    ticks = (3.0**k for k in count())
    whole = run_steps(patterns, settings, save=lambda state, times: saved.append(state), clock=ticks.__next__, threads=2)
    assert whole.complete
    assert list(whole.outcome.estimates) == ["vaiphy_iwelbo", "vaiphy_miselbo"]
    header, expected = outcome.to_arrays(whole.outcome)
    assert len(saved) > 6
    for state in saved[:: max(1, len(saved) // 5)]:
        again, found = outcome.to_arrays(run_steps(patterns, settings, state=state).outcome)
        assert str(again) == str(header)
        assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def test_the_fit_is_that_of_vi(patterns):
    from vaiphy import vi

    result = run_steps(patterns, Settings(seed=5, method="vaiphy", replicates=2)).outcome
    fit = vi.fit(patterns, rng=np.random.default_rng(0))  # the exact law needs no chance
    first = [point.value for point in result.trace if point.stage == "replicate 1"]
    assert first == pytest.approx(fit.elbo_trace)


def test_trees_and_states_have_the_same_vertex_names(tmp_path):
    path = tmp_path / "apes.fasta"
    path.write_text(fasta(NAMES))
    result = runner.run(path, prefix=path, method="vaiphy", seed=1, replicates=2, n_trees=30)
    text = (tmp_path / "apes.fasta.trees.nwk").read_text()
    trees = newick.read_trees(text)
    assert len(trees) == 30
    rows = gzip.decompress((tmp_path / "apes.fasta.state.gz").read_bytes()).decode().splitlines()
    names = {row.split("\t")[0] for row in rows if not row.startswith(("#", "Node"))}
    assert names == {f"V{k}" for k in range(1, 7)}
    for tree in trees:
        assert {tree.name(v) for v in range(8, tree.n_vertices)} <= names
        assert (tree.degree[8:] >= 3).all()
    assert not (tmp_path / "apes.fasta.run1.t").exists()
    if not result.trust_ok:
        assert text.startswith("[A BOUND, NOT AN ESTIMATE")


def test_wrong_options_are_input_errors(patterns):
    with pytest.raises(InputError, match="expected 'spanning' or 'slantis'"):
        run_steps(patterns, Settings(seed=1, method="vaiphy", tree_law="magic"))
    with pytest.raises(InputError, match="prior rate of branch lengths is 1; the method vaiphy needs at least 4/3"):
        run_steps(patterns, Settings(seed=1, method="vaiphy", length_prior="exp(1)"))
