"""Constraint trees and clades by name: what is understood, and one clear line for what cannot be."""

import re

import pytest

from vaiphy.errors import InputError
from vaiphy.formats.constraints import Wanted, constraint_of, lines_of, wanted
from vaiphy.trees.constraints import constrained

TAXA = ("Tarsius", "Lemur", "Homo", "Pan", "Gorilla", "Pongo", "it's, odd")


def clades(*names):
    return tuple(frozenset(TAXA.index(name) for name in group.split("+")) for group in names)


def test_a_constraint_tree_of_all_taxa():
    found = wanted(TAXA, "(Tarsius,Lemur,('it''s, odd',Pongo,((Homo,Pan),Gorilla)));")
    assert set(found.required) == set(clades("Homo+Pan", "Homo+Pan+Gorilla", "it's, odd+Pongo+Homo+Pan+Gorilla"))
    assert found.bound == frozenset(range(7))
    # Rooted on a split: both sides are the same split, named once.
    assert len(wanted(TAXA[:4], "((Tarsius,Lemur),(Homo,Pan));").required) == 1


def test_a_constraint_tree_of_some_taxa(tmp_path):
    file = tmp_path / "tree.nwk"
    file.write_text("((Homo,Pan),Gorilla,Pongo);\n")
    found = wanted(TAXA, file)
    assert found == Wanted(clades("Homo+Pan"), (), *clades("Homo+Pan+Gorilla+Pongo"))


def test_lines_come_back():
    want = wanted(TAXA, None, [["Homo", "Pan"]], [["Gorilla", "it's, odd"]])
    lines = lines_of(want, TAXA)
    assert lines == ("has: Homo, Pan", "lacks: Gorilla, 'it''s, odd'")
    assert constraint_of(lines, TAXA) == constrained(7, [{2, 3}], [{4, 6}])
    assert constraint_of((), TAXA) is None
    partial = Wanted(clades("Homo+Pan"), (), *clades("Tarsius+Homo+Pan+Gorilla"))
    assert constraint_of(lines_of(partial, TAXA), TAXA).n_trees == 5 * 7 * 9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, [["Homo", "Yeti"]]), "--monophyletic Homo,Yeti: 'Yeti' is not among the 7 taxa of the alignment"),
        ((None, [["Homo"]]), "--monophyletic Homo: one taxon, so every tree has this split"),
        ((None, [TAXA]), "all taxa, so every tree has this split"),
        ((None, [TAXA[1:]]), "all taxa but one, so every tree has this split"),
        ((None, [], [["Homo"]]), "--not-monophyletic Homo: one taxon"),
        ((None, [["Homo", "Homo"]]), "a taxon is named twice"),
        ((None, [["Homo", "Pan"], ["Pan", "Gorilla"]]), "no tree has both the clade {Homo, Pan} and the clade {Pan, Gorilla}"),
        ((None, [["Homo", "Pan"]], [["Homo", "Pan"]]), "the clade {Homo, Pan} is required and forbidden at once"),
        (("(Tarsius,Lemur,Homo,Pan);",), "the constraint tree groups no taxa"),
        (("((Homo,Yeti),Pan,Pongo);",), "'Yeti' not among the 7 taxa"),
        (("((Homo,Pan),Gorilla,Pongo",), "constraint tree: "),
        (("((Homo,Pan),Gorilla,Pongo);", [["Homo", "Pan"]]), "the constraint tree has 4 of the 7 taxa; such a tree cannot be"),
        (("no_such_file.nwk",), "no_such_file.nwk"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(arguments, message):
    with pytest.raises(InputError) as error:
        wanted(TAXA, *arguments)
    assert len(error.value.problems) == 1
    assert message in error.value.problems[0]
    assert "\n" not in error.value.problems[0]


def test_nothing_left():
    with pytest.raises(InputError, match="no tree obeys"):
        constrained(4, [], [{1, 2}, {1, 3}, {2, 3}])


def test_words():
    text = constrained(6, [{1, 2}], [{3, 4}]).words([f"t{i}" for i in range(6)])
    assert text == (
        "Topologies: equally likely are those 12 of the 105 unrooted binary trees that have the clade {t1, t2} and do not have "
        "the clade {t3, t4}."
    )
    many = constrained(60, [{1, 2}]).words([f"t{i}" for i in range(60)])
    assert re.search(r"those 4\.\d\de92 of the 5\.\d\de94 unrooted", many), many


def test_a_long_tree_is_no_name_of_a_file():
    names = tuple(f"a_name_of_some_length_{k}" for k in range(40))
    found = wanted(names, f"(({','.join(names[:20])}),{','.join(names[20:])});")
    assert found.required == (frozenset(range(20)),)
