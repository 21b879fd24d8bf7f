"""What is known of each sampled tree, as named columns: the content of MrBayes's .p files, BEAST's .log and ArviZ's draws."""

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.likelihood import log_likelihoods
from vaiphy.models.priors import LengthPrior
from vaiphy.trees.counts import log_n_unrooted
from vaiphy.trees.sample import TreeSample

#: Columns that are no parameters: functions of the tree, its lengths and the data.
LOG_LIKELIHOOD, LOG_PRIOR, TREE_LENGTH = "LnL", "LnPr", "TL"


def quantities(sample: TreeSample, patterns: SitePatterns, prior_rate: float, threads: int = 1) -> dict[str, NDArray[np.float64]]:
    """Log-likelihood, log-prior (the topology's included) and length of each tree, then the sampled parameters by name.

    A sample that knows these of its trees is believed; else they are computed under JC69 with exponential branch lengths, the
    model of every method whose samples do not know. A tree that is repeated in the sample is computed once.
    """
    if {LOG_LIKELIHOOD, LOG_PRIOR, TREE_LENGTH} <= sample.parameters.keys():
        return dict(sample.parameters)
    branches = sample.lengths[:, 1:]
    _, first, inverse = np.unique(branches, axis=0, return_index=True, return_inverse=True)
    likelihood = log_likelihoods(sample.parents[sample.topology[first]], sample.lengths[first], patterns, threads)
    prior = LengthPrior("exp", (prior_rate,)).log_density(sample.lengths, sample.n_taxa)
    return {
        LOG_LIKELIHOOD: likelihood[inverse.ravel()],
        LOG_PRIOR: prior - log_n_unrooted(sample.n_taxa),
        TREE_LENGTH: branches.sum(axis=1),
        **sample.parameters,
    }
