"""Our priors are MrBayes's: draws compared with its runs without data (reference/make_prior_values.py)."""

import json

import numpy as np
import pytest
from reference.make_prior_values import RECORD

from vaiphy.alphabets import DNA
from vaiphy.models.priors import length_prior
from vaiphy.models.substitution import model_of

VALUES = json.loads(RECORD.read_text())


@pytest.mark.parametrize("run", VALUES["runs"])
def test_draws_have_mrbayes_quantiles(run):
    text, lengths = run.split(", ")
    rng = np.random.default_rng(1)
    model = model_of(text, DNA)
    ours = model.columns(model.draw_prior(20_000, rng))
    ours["TL"] = length_prior(lengths).draw(VALUES["n_taxa"], 20_000, rng).sum(axis=1)
    assert set(ours) == set(VALUES["runs"][run])
    for name, quantiles in VALUES["runs"][run].items():
        shares = [(ours[name] <= value).mean() for value in quantiles]
        # MrBayes's chain is correlated: some thousand independent draws stand behind its quantiles.
        assert shares == pytest.approx(VALUES["quantiles"], abs=0.03), name
