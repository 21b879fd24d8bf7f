"""A prior that allows long branches, and data that have one: the posterior's heavy tail is not missed."""

import re

import numpy as np
import pytest
from reference.exact import log_evidence, unrooted_topologies
from reference.quartets import long_branch, quartet_log_evidence

from vaiphy.alignment import Alignment
from vaiphy.output import words
from vaiphy.runner import run as runner

#: Exact log-evidence of `long_branch(1)` with `--prior-rate 0.02`; the slow test computes it again.
EXACT = -273.4546


def test_the_quartets_are_integrated_exactly():
    bases = long_branch(2, n_sites=6)
    wanted = log_evidence(unrooted_topologies(4), 1 << bases, rate=0.5)
    assert quartet_log_evidence(bases, 0.5) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.slow
def test_the_recorded_evidence():
    assert quartet_log_evidence(long_branch(1), 0.02) == pytest.approx(EXACT, abs=1e-4)


def test_a_low_rate_of_the_prior():
    data = Alignment(tuple("abcd"), (1 << long_branch(1)).astype(np.uint8))
    found = runner.run(data, model="JC", prior_rate=0.02, seed=1, threads=2)
    assert found.trust_ok
    assert found.log_evidence == pytest.approx(EXACT, abs=4 * found.std_error)
    assert found.std_error < 0.06


def test_headline_and_reasons_name_one_error():
    data = Alignment(tuple("abcd"), (1 << long_branch(1)).astype(np.uint8), source="quartet")
    found = runner.run(data, model="JC", seed=1, accuracy=1e-4, replicates=2, bridges=2)
    assert not found.trust_ok
    named = [error for reason in found.reasons for error in re.findall(r"standard error is ([0-9.]+)", reason)]
    assert named == [f"{found.std_error:.3f}"]
    assert words.number(found.estimate).endswith(f"± {found.std_error:.{3 if found.std_error < 0.02 else 2}f}")
