"""Newick and NEXUS trees: round trips (also by way of DendroPy), odd but valid files, and messages for broken ones."""

import time

import dendropy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.random_trees import random_binary_tree

from vaiphy.formats import TreeEntry, newick, nexus, parse_trees, read_trees
from vaiphy.trees.tree import Tree, TreeError

NAME = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=8)
LENGTH = st.one_of(st.just(float("nan")), st.floats(0, 1e3), st.floats(0, 1e-200))


@st.composite
def trees(draw, names=NAME, annotated=True):
    """Any tree in which taxa are leaves and internal vertices have children: multifurcating, degree two, any root."""
    n_inner = draw(st.integers(1, 6))
    above = [draw(st.integers(0, k - 1)) if k else -1 for k in range(n_inner)]  # inner vertices, root first
    childless = [k for k in range(n_inner) if k not in above]
    taxa_above = childless + draw(st.lists(st.integers(0, n_inner - 1), max_size=6))
    n = len(taxa_above)
    taxa = tuple(draw(st.lists(names, min_size=n, max_size=n, unique_by=lambda name: name.replace("_", " "))))
    parent = [n + k for k in taxa_above] + [n + k if k >= 0 else -1 for k in above]
    size = len(parent)
    length = [draw(LENGTH) for _ in range(size)]
    labels = support = comments = None
    if annotated:
        inner = range(n, size)
        labels = tuple(
            "" if v not in inner or draw(st.booleans()) else draw(names.filter(lambda x: x not in taxa)) for v in range(size)
        )
        support = [draw(st.floats(0, 100)) if v in inner and not labels[v] else np.nan for v in range(size)]
        comments = tuple(draw(st.sampled_from(["", "&prob=0.9", "a][b", "it's"])) for _ in range(size))
    return Tree(taxa, np.array(parent), np.array(length), labels, None if support is None else np.array(support), comments)


def described(tree):
    """Everything about a tree that does not depend on the numbers of its vertices: vertices by what is below them."""
    below = {}

    def text(vertex):
        children = sorted(text(child) for child in tree.children[vertex])
        label = tree.name(vertex)
        support = np.nan if tree.support is None else tree.support[vertex]
        comment = "" if tree.comments is None else tree.comments[vertex]
        length = np.nan if vertex == tree.root else tree.length[vertex]
        below[vertex] = repr((children, label, repr(float(support)), comment, repr(float(length))))
        return below[vertex]

    return text(tree.root)


@given(trees())
def test_newick_round_trip(tree):
    again = newick.read(newick.write(tree), tree.taxa)
    assert again.taxa == tree.taxa
    assert described(again) == described(tree)


@given(st.lists(trees(), min_size=1, max_size=1), st.booleans(), st.sampled_from([None, 0.25, 1 / 3]), st.booleans())
def test_nexus_round_trip(some, translate, weight, rooted):
    entries = [TreeEntry(tree, f"t {k}", weight, rooted) for k, tree in enumerate(some)]
    text = nexus.write_trees(entries, translate=translate, comment="made [by] a test")
    for taxa in (None, some[0].taxa):
        again = nexus.read_trees(text, taxa)
        assert [(entry.name, entry.weight, entry.rooted) for entry in again] == [("t 0", weight, rooted)]
        assert again[0].tree.taxa == some[0].taxa
        assert described(again[0].tree) == described(some[0])


# DendroPy takes a quoted name that is a single mark or a number for something else: begin with a letter.
PLAIN = st.text("abcXYZ019 '-.()[],:;", max_size=6).filter(lambda name: name.strip() == name).map(lambda name: "x" + name)


@settings(deadline=None)
@given(trees(PLAIN, annotated=False).filter(lambda tree: tree.n_taxa > 1))
def test_dendropy_reads_what_we_write_and_we_what_it_writes(tree):
    text = newick.write(tree)
    theirs = dendropy.Tree.get(data=text, schema="newick", preserve_underscores=True, rooting="force-rooted")
    assert sorted(leaf.taxon.label for leaf in theirs.leaf_node_iter()) == sorted(tree.taxa)
    back = newick.read(theirs.as_string("newick", suppress_rooting=True, unquoted_underscores=True), tree.taxa)
    assert back.topology == tree.topology
    assert sorted(back.clades) == sorted(tree.clades)
    ours = dendropy.TreeList.get(data=nexus.write_trees([tree]), schema="nexus", preserve_underscores=True)
    again = parse_trees(ours.as_string("nexus", unquoted_underscores=True), tree.taxa)
    assert again[0].tree.topology == tree.topology
    finite = np.isfinite(np.delete(tree.length, tree.root)).all()
    if finite:
        assert sum(edge.length or 0 for edge in theirs.preorder_edge_iter()) == pytest.approx(
            np.delete(tree.length, tree.root).sum()
        )


def test_topologies_differ_as_dendropy_says():
    rng = np.random.default_rng(1)
    names = dendropy.TaxonNamespace()
    for n in (4, 7, 12, 40):
        first, second = random_binary_tree(n, rng), random_binary_tree(n, rng)
        pair = [
            dendropy.Tree.get(data=newick.write(tree), schema="newick", taxon_namespace=names, rooting="force-unrooted")
            for tree in (first, second)
        ]
        assert len(first.topology ^ second.topology) == dendropy.calculate.treecompare.symmetric_difference(*pair)


def test_mrbayes_files():
    text = """#NEXUS
[ID: 1234]
[Param: tree]
begin trees;
   translate
       1 Homo_sapiens,
       2 'Pan paniscus',
       3 Gorilla;
   tree gen.1 = [&U] (1:0.1,2:2.0e-2,3:3);
   tree tree_2 [p = 0.053, P = 0.9] = [&W 1/4] [&R] (1[&prob=1]:0.1[&length_mean=2],(2,3)[&prob=0.5]:0.2);
end;
"""
    first, second = parse_trees(text)
    assert first.tree.taxa == ("Homo_sapiens", "Pan paniscus", "Gorilla")
    assert (first.name, first.weight, first.rooted) == ("gen.1", None, False)
    assert (second.name, second.weight, second.rooted) == ("tree_2", 0.25, True)
    assert second.tree.comments == ("&prob=1][&length_mean=2", "", "", "&prob=0.5", "")
    other = parse_trees(text, ["Gorilla", "Pan_paniscus", "Homo sapiens"])[0].tree
    assert other.length[:3].tolist() == [3, 0.02, 0.1]


def test_newick_pieces():
    tree = newick.read(" [&U] ((a:1,b:2)0.9:0.5[x],'c c':-1,d)root;")
    assert tree.taxa == ("a", "b", "c c", "d")
    assert tree.parent.tolist() == [4, 4, 5, 5, 5, -1]
    assert tree.labels == ("", "", "", "", "", "root")
    assert tree.support[4] == 0.9
    assert np.isnan(tree.length[3])
    assert newick.write(tree, lengths=False, comments=False) == "('c c',d,(a,b)0.9)root;"
    assert newick.write(tree, digits=2, support=False, labels=False) == "('c c':-1,d,(a:1,b:2)[x]:0.5);"
    assert newick.write(newick.read("(a:1,(b:2)c:3)'95':1;")) == "(a:1.0,(b:2.0)c:3.0)'95';"


def test_taxa_and_other_labels_inside_the_tree():
    tree = newick.read("((b:1,c:2)a:3,d:1)x;", ["a", "b", "c", "d"])
    assert tree.parent.tolist() == [4, 0, 0, 4, -1]
    assert newick.write(tree) == "((b:1.0,c:2.0)a:3.0,d:1.0)x;"
    dangling = newick.read("((b:1,c:2,h1:1)h2:3,d:1)x;", ["b", "c", "d"], inner_leaves=True)
    assert dangling.n_taxa == 3
    assert dangling.labels == ("", "", "", "h1", "h2", "x")
    assert newick.write(dangling) == "(d:1.0,(b:1.0,c:2.0,h1:1.0)h2:3.0)x;"


def test_a_root_that_is_a_leaf_is_written_from_its_neighbour():
    tree = newick.read("(a:1,b:2,(c:3,d:4):5);").rerooted(0)
    again = newick.read(newick.write(tree), tree.taxa)
    assert again.root >= 4
    assert tree.topology == again.topology
    assert np.delete(again.length, again.root).sum() == 15


BROKEN = {
    "": "no tree",
    ";": "no tree",
    "(a,b": "truncated",
    "(a,b));": "without its",
    "(a,b)(c,d);": "does not follow",
    "(a(b,c));": "does not follow",
    "(a,,b);": "without a name",
    "(a,b),c;": "more than one root",
    "(a,a);": "'a' occurs twice",
    "(a:1x,b);": "unexpected 'x' at character 5",
    "(a:1e,b);": "'1e' is not a branch length",
    "(a:inf,b);": "infinite",
    "(a:1_0,b);": "unexpected",
    "(a b,c);": "unexpected 'b'",
    "('a,b);": 'unexpected "\'"',
    "(a,b)[x;": "unexpected",
    "(a;b);": "truncated",
}


@pytest.mark.parametrize("text", BROKEN)
def test_broken_newick(text):
    with pytest.raises(TreeError) as caught:
        parse_trees(text)
    assert BROKEN[text] in str(caught.value)


def test_places(tmp_path):
    path = tmp_path / "x.tre"
    path.write_text("(a,b,c);\n(a,b,c);\n\n(a,b,d);\n")
    with pytest.raises(TreeError, match=r"x.tre, line 4, tree 3: taxon 'd' is not among the 3 expected"):
        read_trees(path)
    path.write_text("(a,b,c);\n(a,b);\n")
    with pytest.raises(TreeError, match=r"line 2, tree 2: the tree lacks 1 of the 3 taxa: 'c'"):
        read_trees(path)
    path.write_text("#NEXUS\nbegin trees;\ntree one = (a,b,c);\ntree two = (a,b,c;\nend;\n")
    with pytest.raises(TreeError, match=r"x.tre, line 4: tree 'two': 1 '\(' without"):
        read_trees(path)
    path.write_text("#NEXUS\nbegin trees;\ntree one = [&W 1/0] (a,b,c);\nend;\n")
    with pytest.raises(TreeError, match="is not a weight"):
        read_trees(path)
    path.write_text("#NEXUS\nbegin trees;\ntree one = (a,b,c)")
    with pytest.raises(TreeError, match="truncated"):
        read_trees(path)
    path.write_text("#NEXUS\nbegin trees;\ntranslate 1 a 2 b;\ntree one = (1,2);end;")
    with pytest.raises(TreeError, match="comma is missing"):
        read_trees(path)
    with pytest.raises(TreeError, match="no such file"):
        read_trees(tmp_path / "nothing")


def test_deep_and_wide_trees():
    caterpillar = "(" * 3000 + "t0" + "".join(f",t{k})" for k in range(1, 3001)) + ";"
    tree = newick.read(caterpillar)
    assert tree.n_taxa == 3001
    assert newick.read(newick.write(tree), tree.taxa).topology == tree.topology
    star = newick.read("(" + ",".join(f"t{k}" for k in range(5000)) + ");")
    assert star.topology == frozenset()


def test_many_trees_read_quickly():
    rng = np.random.default_rng(2)
    tree = random_binary_tree(60, rng)
    text = nexus.write_trees([tree] * 1000)
    start = time.perf_counter()
    again = parse_trees(text)
    seconds = time.perf_counter() - start
    assert len(again) == 1000
    assert all(entry.tree.topology == tree.topology for entry in again[::100])
    assert seconds < 3  # a tenth of that on an idle machine


def test_a_topology_does_not_depend_on_how_it_is_written():
    one = newick.read("((a:1,b:2):0.5,(c:1,d:3):1,e:1);")
    two = newick.read("(((d,c),e),(b,a));", one.taxa)
    assert one.topology == two.topology


def test_translate_keys_may_be_names_of_other_taxa():
    text = "#NEXUS\nbegin trees;\ntranslate 1 2, 2 3, 3 1;\ntree t = (1:1,2:2,3:3);\nend;\n"
    tree = nexus.read_trees(text, ("1", "2", "3"))[0].tree
    assert tree.length[:3].tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("text", "label", "comment"),
    [
        ("((a:1,b:1)[&x=1]clade:2,c:1,d:1);", "clade", "&x=1"),
        ("((a:1,b:1) [one] [two] 'my clade'[three]:2[four],c:1,d:1);", "my clade", "one][two][three][four"),
        ("((a:1,b:1)[only]:2,c:1,d:1);", "", "only"),
    ],
)
def test_a_comment_between_a_parenthesis_and_its_label(text, label, comment):
    tree = newick.read(text)
    vertex = tree.n_taxa  # the first parenthesis that closes
    assert (tree.name(vertex), tree.comments[vertex], tree.length[vertex]) == (label, comment, 2.0)
    again = newick.read(newick.write(tree), tree.taxa)
    assert (again.name(vertex), again.comments[vertex]) == (label, comment)


def test_a_comment_before_a_support_and_before_a_taxon():
    tree = newick.read("((([1]a:1,[2]b:1)[x]0.75:2,c:1),d:1);")
    assert tree.taxa == ("a", "b", "c", "d")
    assert tree.support[4] == 0.75
    assert tree.comments[:2] == ("1", "2")
