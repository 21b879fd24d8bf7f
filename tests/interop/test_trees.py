"""Trees in other libraries: taxa, topology, lengths and supports are those of ours, seen through each library's own API."""

import subprocess
import sys
from io import StringIO
from math import isnan

import pytest

from vaiphy import InputError
from vaiphy.formats.newick import read as read_newick
from vaiphy.interop.building import library

from .conftest import NAMES, branches, same_branches


def through_dendropy(tree):
    return {
        frozenset(leaf.taxon.label for leaf in node.leaf_iter()): (
            node.edge.length,
            next((note.value for note in node.annotations if note.name == "posterior"), None),
        )
        for node in tree.preorder_node_iter()
        if node.parent_node is not None
    }


def through_ete(tree):
    return {frozenset(node.leaf_names()): (node.dist, node.support) for node in tree.traverse() if node.up is not None}


def through_biopython(tree):
    return {
        frozenset(leaf.name for leaf in clade.get_terminals()): (clade.branch_length, clade.confidence)
        for clade in tree.find_clades()
        if clade is not tree.root
    }


def through_toytree(tree):
    return {
        frozenset(node.get_leaf_names()): (node.dist, None if isnan(node.support) else node.support)
        for node in tree.traverse()
        if not node.is_root()
    }


def through_cogent3(tree):
    return {
        frozenset([node.name] if node.is_tip() else node.get_tip_names()): (node.length, node.support)
        for node in tree.preorder()
        if not node.is_root()
    }


LIBRARIES = {
    "dendropy": ("dendropy", through_dendropy),
    "ete": ("ete4", through_ete),
    "biopython": ("Bio", through_biopython),
    "toytree": ("toytree", through_toytree),
    "cogent3": ("cogent3", through_cogent3),
}


@pytest.fixture(params=LIBRARIES)
def converter(request, analysis):
    """The method of the analysis and the way back, for each library that is installed."""
    module, back = LIBRARIES[request.param]
    try:
        library(module, module)
    except ImportError:
        pytest.skip(f"{module} is not installed")
    return getattr(analysis, f"to_{request.param}"), back


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
class TestTrees:
    def test_summary_trees_come_back(self, analysis, converter):
        convert, back = converter
        for name, tree in (("consensus", analysis.consensus), ("credible", analysis.credible_tree)):
            expected = branches(tree)
            assert any(support is not None for _, support in expected.values())
            same_branches(back(convert(name)), expected)

    def test_the_sample_comes_back(self, analysis, converter):
        convert, back = converter
        sample = list(convert("sample"))
        assert len(sample) == 200
        ours = analysis.chosen("sample")
        assert len({tree.topology for tree in ours}) > 3
        for k in (0, 7, 199):
            same_branches(back(sample[k]), branches(ours[k]))

    def test_names_of_vertices_are_those_of_the_files(self, analysis, converter):
        convert, _ = converter
        tree = convert("consensus")
        text = str(sorted(all_names(tree)))
        for vertex in range(len(NAMES), analysis.consensus.n_vertices):
            assert analysis.consensus.name(vertex) in text


def all_names(tree):
    """Names of the inner nodes, whatever the library calls them."""
    walk = next(getattr(tree, way) for way in ("preorder_node_iter", "traverse", "find_clades", "preorder") if hasattr(tree, way))
    return {str(getattr(node, "label", None) or getattr(node, "name", "")) for node in walk()}


def test_biopython_writes_what_we_read(analysis):
    phylo = pytest.importorskip("Bio.Phylo", reason="Biopython is not installed")
    plain = analysis.to_biopython()
    for clade in plain.find_clades():  # Biopython does not quote names; ours would break its Newick
        clade.name = str(NAMES.index(clade.name)) if clade.is_terminal() else None
    out = StringIO()
    phylo.write(plain, out, "newick", format_branch_length="%.12g", format_confidence="%.12g")
    back = read_newick(out.getvalue())
    supports = sorted(float(x) for x in back.support if x == x)
    assert supports == pytest.approx(sorted(float(x) for x in analysis.consensus.support if x == x))


def test_dendropy_and_we_count_the_same_splits(analysis):
    dendropy = pytest.importorskip("dendropy", reason="DendroPy is not installed")
    trees = analysis.to_dendropy("sample")
    distribution = trees.split_distribution()
    table, n = analysis.posterior.splits, len(NAMES)
    everything = (1 << n) - 1
    for row in range(table.n_trivial, len(table)):
        split = table.splits[row]
        # DendroPy has the side without its first taxon as well, but counts bits from the first taxon of the namespace.
        key = dendropy.Bipartition.normalize_bitmask(split, everything, lowest_relevant_bit=1)
        # Each of the 12 topologies occurs as often as its probability says, give or take one of the 200 trees.
        assert distribution[key] == pytest.approx(table.support[row], abs=12 / 200)


def test_what_there_is_to_choose_from(analysis):
    with pytest.raises(InputError, match="consensus, credible and sample"):
        analysis.to_dendropy("best")


def test_a_missing_library_is_named():
    with pytest.raises(ImportError, match="pip install no-such-library"):
        library("no_such_library", "no-such-library")


def test_libraries_are_loaded_only_when_asked():
    names = ["dendropy", "ete4", "Bio", "toytree", "cogent3", "arviz", "xarray", "pandas", "skbio"]
    code = f"import sys, vaiphy.output.analysis, vaiphy.formats; print([n for n in {names} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
