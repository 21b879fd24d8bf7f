"""A finished run whose taxa have awkward names, and what other libraries must say about its trees."""

import pytest
from reference.standin import fasta, use_standin

from vaiphy.formats import parse_alignment
from vaiphy.runner import run as runner

#: Names with blanks, quotes, Newick's punctuation and a number; the root is beside the first.
NAMES = ("Homo sapiens", "it's", "p(q):r", "100", "new_name", "Lemur", "a,b;c", "[d]")


@pytest.fixture(scope="session")
def analysis():
    data = parse_alignment(fasta([f"t{i}" for i in range(len(NAMES))]))
    with pytest.MonkeyPatch.context() as patch:
        use_standin(patch)
        return runner.run(type(data)(NAMES, data.sites, source="names"), seed=1, n_trees=200)


def branches(tree):
    """Taxa below each branch of a tree of ours -> (length, support)."""
    return {
        frozenset(name for i, name in enumerate(tree.taxa) if tree.clades[v] >> i & 1): (
            float(tree.length[v]),
            None if tree.support is None or tree.support[v] != tree.support[v] else float(tree.support[v]),
        )
        for v in range(tree.n_vertices)
        if v != tree.root
    }


def same_branches(found, expected):
    """Whether two such mappings agree: same clades, lengths and supports to rounding of a text."""
    assert found.keys() == expected.keys()
    for clade, (length, support) in expected.items():
        assert found[clade][0] == pytest.approx(length, rel=1e-9)
        assert found[clade][1] == (None if support is None else pytest.approx(support, rel=1e-9)), clade
