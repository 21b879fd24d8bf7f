"""Partition files: every way to write one means the same; everything that is wrong is said in one pass, with its line."""

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vaiphy.alignment import AlignmentError
from vaiphy.alphabets import AA
from vaiphy.formats import parse_alignment
from vaiphy.formats.partitions import PartitionError, Subset, own_partition, parse_partition, parse_subset, read_partition
from vaiphy.formats.sitesets import Range, SiteSetError, parse_sites, sites_of

ROWS = {"a": "ACGTACGTAC", "b": "ACGTACGTAA", "c": "ACGAACGTAC", "d": "TCGAACGTAC"}
ALIGNMENT = parse_alignment("".join(f">{name}\n{row}\n" for name, row in ROWS.items()), "ten.fasta")
MIXED = """#NEXUS
begin data;
  dimensions ntax=4 nchar=9;
  format datatype=mixed(Standard: 1-4, DNA:5-9) interleave=yes gap=- missing=?;
  matrix
  a 0{01}2-
  b 1101
  c 00?0
  d 1021

  a ACGTN
  b ACG(AT)C
  c A-GTC
  d RCGTC
  ;
end;
begin mrbayes;
  charset shape = 1-4;
  charset gene = 5-.;
  partition favored = 2: shape, gene;
end;
"""


def nexus(body):
    return f"#NEXUS\nbegin sets;\n{body}\nend;\n"


def problems(text, alignment=ALIGNMENT, own=""):
    with pytest.raises(PartitionError) as caught:
        parse_partition(text, alignment, "p.txt", own)
    return list(caught.value.problems)


@pytest.mark.parametrize(
    "text",
    [
        "DNA, one = 1-10\\2\nHKY+G4, two = 2-10/2\n",
        "# a comment\nDNA,one=1 - 10 \\ 2;\n\nHKY+G4 , two = 2,4,6-10\\2   # more\n",
        nexus("charset one = 1-.\\2;\ncharset two = 2-10\\2;\ncharpartition mine = DNA:one, HKY+G4:two;"),
        nexus(
            "charset one = 1-9\\2; charset two = 2 4 6 8 10;\ncharpartition other = x:1-10;\n"
            "charpartition * mine = HKY+G4: two,\n one : ONE;"
        ),
    ],
)
def test_every_way_to_write_the_same_parts(text):
    found = {subset.name: subset for subset in parse_partition(text, ALIGNMENT)}
    assert set(found) == {"one", "two"}
    assert sorted(found["one"].sites.tolist()) == [0, 2, 4, 6, 8]
    assert sorted(found["two"].sites.tolist()) == [1, 3, 5, 7, 9]
    assert (found["one"].model, found["two"].model) == ("", "HKY+G4")


def test_models_with_braces_and_the_names_of_raxml():
    two = parse_partition("GTR{1,2,1,1,2}+F{.1,.2,.3,.4}+G, a = 1-5\nDNA, b b = 6-10", ALIGNMENT)
    assert (two[0].model, two[1].name) == ("GTR{1,2,1,1,2}+F{.1,.2,.3,.4}+G", "b b")
    proteins = parse_alignment("".join(f">{name}\n{row}\n" for name, row in ROWS.items()), seqtype="AA")
    assert proteins.alphabet is AA
    assert [s.model for s in parse_partition("LGF, a = 1-5\nwagX, b = 6-10", proteins)] == ["LG+F", "WAG+FO"]


def test_without_a_charpartition_all_charsets_are_parts():
    found = parse_partition(nexus("charset a = DNA, 1-4;\ncharset 'b c' = 5-10;"), ALIGNMENT)
    assert [subset.name for subset in found] == ["a", "b c"]


def test_charsets_of_the_alignment_are_found_by_name(tmp_path):
    own = nexus("charset first = 1-6;\ncharset second = 7-.;\ncharpartition halves = a: first, b: second;")
    found = parse_partition(nexus("charpartition mine = HKY: first, JC: second;"), ALIGNMENT, "p", own)
    assert [str(subset) for subset in found] == ["HKY, first = 1-6", "JC, second = 7-10"]
    assert [s.name for s in read_partition("halves", ALIGNMENT, own)] == ["a", "b"]
    assert [s.name for s in read_partition("second,first", ALIGNMENT, own)] == ["second", "first"]
    with pytest.raises(PartitionError, match="there is no such file"):
        read_partition(str(tmp_path / "nothing"), ALIGNMENT, own)
    with pytest.raises(PartitionError, match="no charset 'third'; there are first, second"):
        read_partition("first,third", ALIGNMENT, own)


def test_all_problems_in_one_pass_each_with_its_line():
    text = "JC, a = 1-5\nfoo\nJC, b = 4-7\nXYZ, c = 8\nJC, d = 9-12\nJC, A = 9-8\nWAG, e = 9\\2-10\nLG, f = 0-2\nJC, g = ,\n"
    assert problems(text) == [
        "p.txt, line 2: 'foo' is not a part; write MODEL, name = 1-300, 401-500\\3",
        "p.txt, line 3: part 'b': sites 4-5 already in part 'a' (line 1)",
        "p.txt, line 4: part 'c': 'XYZ' is neither a model nor DNA, AA, BIN or MULTI",
        "p.txt, line 4: part 'c': it has one site only; join it to another part",
        "p.txt, line 5: part 'd': '9-12' goes beyond the alignment's 10 sites",
        "p.txt, line 6: part 'A' is already in line 1; names must differ",
        "p.txt, line 6: part 'A': '9-8' runs backwards",
        "p.txt, line 7: part 'e': '9\\2-10' is not a range of sites; write 1-300, 5 or 1-300\\3",
        "p.txt, line 8: part 'f': '0-2': sites are numbered from 1",
        "p.txt, line 9: part 'g': it has no sites",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("JC, a = 1-4\nJC, b = 8-10", "p.txt: sites 5-7 in no part (3 in all)"),
        ("JC, a = 1-10, 3-4", "line 1: part 'a': sites 3-4 listed twice"),
        ("LG+G4, a = 1-10", "line 1: part 'a': model 'LG+G4': 'LG' is not a model of DNA"),
        ("AA, a = 1-10", "line 1: part 'a': the partition says AA, but the alignment has DNA there"),
        ("# nothing\n", "p.txt: no parts found"),
        (nexus("charset a = b; charset b = a;\ncharpartition x = JC: a;"), "charset 'b': charset 'a' contains itself"),
        (nexus("charset a = 1-10;\ncharpartition x = JC: a,\n  HKY: gone;"), "line 5: part 'gone': there is no charset 'gone'"),
        (nexus("charset a = other.phy: 1-10;"), "line 3: charset 'a' is about another file (other.phy)"),
        (nexus("charset a = CODON, 1-10;"), "line 3: charset 'a': codon models are not supported"),
        (nexus("charset a = 1-5;\ncharset A = 6-10;"), "line 4: charset 'A' is already in line 3"),
        (nexus("charset a;"), "line 3: charset needs a name"),
        (nexus("charpartition x = a:1-10; charpartition y = b:1-10;"), "several partitions (x, y); mark the one to use with *"),
        (nexus(""), "p.txt: no charset or charpartition found"),
    ],
)  # fmt: skip
def test_each_mistake_has_one_clear_line(text, message):
    assert any(message in problem for problem in problems(text)), problems(text)


def chain(depth, end):
    return "".join(f"charset s{k} = s{k + 1};\n" for k in range(depth)) + f"charset s{depth} = {end};\ncharpartition p = JC: s0;"


def doubling(depth, end):
    """Charsets that name each other twice: 2^depth sites if they were written out."""
    sets = "".join(f"charset s{k} = s{k + 1} s{k + 1};\n" for k in range(depth))
    return sets + f"charset s{depth} = {end};\ncharpartition p = JC: s0;"


def test_charsets_inside_charsets():
    assert [str(part) for part in parse_partition(nexus(chain(49, "1-10")), ALIGNMENT)] == ["JC, s0 = 1-10"]
    assert "is inside more than 50 others" in problems(nexus(chain(5000, "1-10")))[0]
    for end in ("1-10", "gone", "", "s0"):
        found = problems(nexus(doubling(40, end)))
        assert 1 <= len(found) < 70
    assert "sites; there are 10" in problems(nexus(doubling(40, "1-10")))[0]


@pytest.mark.parametrize(
    "text",
    ["JC, a = 1" + " " * 60_000 + "x", "JC, a" + " " * 60_000 + "x", "JC, a = " + "1-10," * 60_000, "JC, a = " + "9" * 60_000,
     nexus("charset x " + " " * 60_000 + "x;"), nexus("charpartition x = " + "a," * 20_000 + ";")],
    ids=range(6),
)  # fmt: skip
def test_no_quadratic_traps(text):
    began = process_time()
    assert problems(text)
    assert process_time() - began < 2


def test_a_long_list_of_charsets_is_no_file():
    own = nexus("".join(f"charset a_long_name_of_gene_number_{k} = {k + 1};\n" for k in range(10)))
    names = [f"a_long_name_of_gene_number_{k}" for k in range(10)]
    with pytest.raises(PartitionError) as caught:
        read_partition(",".join(names), ALIGNMENT, own)
    assert all("it has one site only" in problem for problem in caught.value.problems)


def test_mixed_files_hold_codes_of_their_own_alphabets():
    alignment = parse_alignment(MIXED, "mixed.nex")
    assert [(start, stop, a.name, a.n_states) for start, stop, a in alignment.blocks] == [(0, 4, "MORPH", 3), (4, 9, "DNA", 4)]
    missing = alignment.alphabet.everything
    assert alignment.sites[0].tolist() == [1, 3, 4, missing, 1, 2, 4, 8, missing]
    assert alignment.sites[1].tolist() == [2, 2, 1, 2, 1, 2, 4, 9, 2]
    assert [str(subset) for subset in own_partition(alignment)] == [", MORPH = 1-4", ", DNA = 5-9"]
    assert [subset.name for subset in read_partition("favored", alignment, MIXED)] == ["shape", "gene"]
    assert "sites are of different kinds (MORPH 1-4, DNA 5-9)" in problems("JC, x = 1-5\nJC, y = 6-9", alignment)[0]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Standard:1-4,DNA:6-9", "line 4: DATATYPE=mixed: 'DNA:6-9' should begin at site 5"),
        ("Standard:1-4,DNA:5-8", "line 4: DATATYPE=mixed announces 8 sites, DIMENSIONS 9"),
        ("Standard:1-4,Codes:5-9", "line 4: DATATYPE=mixed: 'Codes:5-9' is not read"),
        ("DNA:1-4,Standard:5-9", "is not a code of its part"),
    ],
)
def test_mixed_files_that_are_wrong(kind, message):
    with pytest.raises(AlignmentError, match=r"mixed\.nex, line") as caught:
        parse_alignment(MIXED.replace("Standard: 1-4, DNA:5-9", kind), "mixed.nex")
    assert any(message in problem for problem in caught.value.problems), caught.value.problems


ranges = st.builds(
    lambda first, size, step: Range(first, first + size, step), st.integers(1, 99), st.integers(0, 99), st.integers(1, 5)
)


@given(st.lists(ranges.map(lambda r: r if r.first < r.last else Range(r.first, r.first)), min_size=1, max_size=5))
def test_a_part_survives_its_own_text(found):
    subset = Subset("gene 1", "GTR{1,2,3,4,5}+G4", tuple(found))
    again = parse_subset(str(subset))
    assert (again.name, again.model) == (subset.name, subset.model)
    assert np.array_equal(again.sites, subset.sites)


def test_sites_of_texts():
    assert sites_of(parse_sites("all", 4)).tolist() == [0, 1, 2, 3]
    assert sites_of(parse_sites("a-b 2", 9, {"a-b": "8-."})).tolist() == [7, 8, 1]
    with pytest.raises(SiteSetError, match="a step of 0"):
        parse_sites("1-9\\0", 9)
