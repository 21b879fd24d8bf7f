"""Five taxa, two sites, and all fifteen topologies as the support of a network."""

import numpy as np
import pytest
from reference.topologies import all_children, names

from vaiphy.alignment import Alignment, compress
from vaiphy.vbpi.network import network_of
from vaiphy.vbpi.support import Support

CODES = np.array([[1, 2], [1, 4], [2, 4], [4, 15], [8, 3]], dtype=np.uint8)


@pytest.fixture(scope="session")
def patterns():
    return compress(Alignment(names(5), CODES))


@pytest.fixture(scope="session")
def trees():
    return all_children(5)


@pytest.fixture(scope="session")
def network(trees):
    return network_of(trees)


@pytest.fixture(scope="session")
def support(trees):
    """Branch lengths wider than the prior, as two sites that differ everywhere want them, on every topology."""
    return Support(trees, np.full((len(trees), 8), 1.0), np.full((len(trees), 8), 5.0), np.full(len(trees), 1 / 15))
