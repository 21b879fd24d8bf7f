"""Evidence from repeated sets of importance weights."""

import numpy as np
import pytest

from vaiphy.summary.evidence import evidence_of


def test_summary_of_repeats():
    rng = np.random.default_rng(5)
    weights = rng.normal(-10.0, 0.1, size=(8, 300))
    result = evidence_of(weights)
    assert result.log_estimates.shape == (8,)
    assert result.n_samples == 300
    assert result.mean == pytest.approx(-10.0 + 0.005, abs=0.01)
    assert result.standard_error == pytest.approx(result.standard_deviation / np.sqrt(8))
    assert result.trustworthy
    assert np.isnan(evidence_of(weights[:1]).standard_deviation)
