"""Summaries of very large trees take time that grows with their size, not with its square."""

from time import process_time

from vaiphy.formats import newick
from vaiphy.summary.posterior import summarise
from vaiphy.trees.splits import from_trees


def seconds(n_taxa):
    """CPU seconds to read and summarise one caterpillar."""
    text = "(" * (n_taxa - 1) + "t0:0.1" + "".join(f",t{k}:0.1):0.1" for k in range(1, n_taxa))
    began = process_time()
    found = summarise(from_trees([newick.read(text.removesuffix(":0.1") + ";")]))
    assert len(found.majority.topology) == n_taxa - 3
    return process_time() - began


def test_a_caterpillar_four_times_as_large_takes_no_sixteen_times_as_long():
    seconds(100)
    small = min(seconds(2000) for _ in range(2))
    assert min(seconds(8000) for _ in range(2)) < 11 * small + 0.2
