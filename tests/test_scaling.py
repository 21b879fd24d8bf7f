"""The tools behind docs/scaling.md: they run, and the schedule that one of them plays is right."""

import pytest
import scaling
import speedup


def test_constants_are_measured(capsys):
    scaling.constants(6, 30, "JC", 2)
    text = capsys.readouterr().out
    assert "a sweep of a particle" in text
    assert "a proposal, once" in text


@pytest.mark.parametrize(
    ("threads", "n_workers", "seconds"),
    [
        ([[(0.0, [1.0] * 8)]], 1, 8.0),
        ([[(0.0, [1.0] * 8)]], 2, 4.0),
        ([[(0.5, [1.0] * 8), (0.5, [1.0] * 8)]], 2, 9.0),
        # Eight pieces for three workers travel by twos.
        ([[(0.0, [1.0] * 8)]], 3, 4.0),
        ([[(0.0, [3.0, 1.0, 1.0, 1.0])]], 2, 3.0),
        # Two replicates: one's pieces are done while the other waits, its own seconds follow each other.
        ([[(0.0, [1.0])], [(0.0, [1.0])]], 2, 1.0),
        ([[(1.0, [1.0])], [(1.0, [1.0])]], 2, 3.0),
    ],
)
def test_schedules(threads, n_workers, seconds):
    assert speedup.played(threads, n_workers) == pytest.approx(seconds)
