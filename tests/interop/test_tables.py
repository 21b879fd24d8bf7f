"""ArviZ and pandas: the same figures as ours."""

from dataclasses import replace

import numpy as np
import pytest

from vaiphy import InputError
from vaiphy.summary.posterior import summarise
from vaiphy.trees.sample import equal_weights

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def arviz():
    return pytest.importorskip("arviz", reason="ArviZ is not installed")


def with_parameter(analysis, weights=None):
    """The analysis with a sampled parameter `kappa`, and other log-weights if given."""
    sample = analysis.outcome.sample
    kappa = np.random.default_rng(5).lognormal(1.0, 0.3, sample.n_samples)
    sample = replace(sample, parameters={"kappa": kappa}, log_weights=sample.log_weights if weights is None else weights)
    return replace(analysis, outcome=replace(analysis.outcome, sample=sample))


def test_chains_are_replicates(analysis, arviz):
    data = analysis.to_arviz()
    assert dict(data.posterior.sizes) == {"chain": 4, "draw": 200}
    for chain in range(4):
        own = analysis.outcome.sample.of_replicate(chain)
        drawn = equal_weights(own, 200)
        columns = analysis.quantities(drawn)
        assert np.array_equal(data.posterior.TL.values[chain], columns["TL"])
        assert data.sample_stats.lp.values[chain] == pytest.approx(columns["LnL"] + columns["LnPr"])
        assert float(data.sample_stats.ess[chain]) == pytest.approx(own.effective_size)
        weight = dict(zip(own.lengths[:, 1:].sum(axis=1), own.log_weights))
        assert data.sample_stats.log_weight.values[chain] == pytest.approx([weight[x] for x in columns["TL"]])
    assert data.posterior.attrs["log_evidence"] == analysis.log_evidence


def test_summary_of_equal_weights_is_ours_exactly(analysis, arviz):
    """With equal weights, and as many draws as there are samples, nothing is lost in the resampling."""
    n = analysis.outcome.sample.n_samples
    plain = with_parameter(analysis, np.full(n, -np.log(n)))
    plain = replace(plain, settings=replace(plain.settings, n_trees=n // 4))
    data = plain.to_arviz()
    table = arviz.summary(data, kind="stats", round_to="none")
    kappa = plain.outcome.sample.parameters["kappa"]
    assert table.loc["TL", "mean"] == pytest.approx(summarise(plain.outcome.sample).tree_length[0], rel=1e-12)
    assert table.loc["kappa", "mean"] == pytest.approx(kappa.mean(), rel=1e-12)
    assert table.loc["kappa", "sd"] == pytest.approx(kappa.std(), rel=1e-2)
    assert np.array_equal(np.sort(data.posterior.kappa.values.ravel()), np.sort(kappa))


def test_summary_of_weighted_trees_is_ours_within_the_resampling(analysis, arviz):
    run = with_parameter(analysis)
    table = arviz.summary(run.to_arviz(), kind="stats", round_to="none")
    sample = run.outcome.sample
    by_replicate = np.mean(
        [np.average(own.lengths[:, 1:].sum(axis=1), weights=own.weights) for own in map(sample.of_replicate, range(4))]
    )
    lengths = sample.lengths[:, 1:].sum(axis=1)
    error = lengths.std() / np.sqrt(sample.effective_size)
    # Resampling is systematic along topology and tree length: it adds little noise to the mean.
    assert table.loc["TL", "mean"] == pytest.approx(by_replicate, abs=0.3 * error)
    assert table.loc["TL", "mean"] == pytest.approx(summarise(sample).tree_length[0], abs=2 * error)


def test_splits_as_data_frame(analysis):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = analysis.to_dataframe()
    table = analysis.posterior.splits
    kept = table.support >= 0.001
    assert frame["support"].to_numpy() == pytest.approx(table.support[kept])
    assert frame["length_mean"].to_numpy() == pytest.approx(table.mean[kept])
    first = frame.iloc[table.n_trivial]
    assert first["split"].count("*") == first["size"] == len(table.members(table.n_trivial))


def test_topologies_as_data_frame(analysis):
    pytest.importorskip("pandas", reason="pandas is not installed")
    from vaiphy.formats.newick import Names, read

    frame = analysis.to_dataframe("topologies")
    table = analysis.posterior.topologies
    assert frame["probability"].to_numpy() == pytest.approx(table.probability)
    assert frame["cumulative"].iloc[-1] == pytest.approx(1)
    assert read(frame["newick"][1], Names(analysis.patterns.taxa)).topology == table.topologies[1]


def test_sample_as_data_frame(analysis):
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = with_parameter(analysis).to_dataframe("sample")
    assert list(frame.columns) == ["run", "LnL", "LnPr", "TL", "kappa"]
    assert frame["TL"].mean() == pytest.approx(analysis.posterior.tree_length[0], rel=1e-2)
    assert set(frame["run"]) == {1, 2, 3, 4}
    with pytest.raises(InputError, match="splits, topologies and sample"):
        analysis.to_dataframe("trees")
