"""Alignment readers: what they accept, and that they name every problem with its place."""

import gzip

import numpy as np
import pytest

from vaiphy import datasets
from vaiphy.alignment import Alignment, AlignmentError, decode
from vaiphy.formats import parse_alignment, read_alignment, write_alignment

FASTA = ">a one\nACGT\nRYN-\n>b\nacgu\n????\n\n>c\nACGA\nCCCC\n"
ROWS = {"a": "ACGTRY--", "b": "ACGT----", "c": "ACGACCCC"}


def rows(alignment):
    return {taxon: decode(row) for taxon, row in zip(alignment.taxa, alignment.sites)}


def problems(text, **options):
    with pytest.raises(AlignmentError) as caught:
        parse_alignment(text, "x.txt", **options)
    return caught.value.problems


ACCEPTED = {
    "fasta": FASTA,
    "fasta with comments": ";note\n" + FASTA,
    "phylip relaxed sequential": "3 8\na ACGTRYN-\nb ACGT????\nc ACGACCCC\n",
    "phylip sequential over lines": "3 8\na ACGT\nRYN-\nb ACGT\n????\nc ACGA\nCCCC\n",
    "phylip names on own lines": "3 8\na\nACGTRYN-\nb\nACGT????\nc\nACGACCCC\n",
    "phylip interleaved": " 3  8 I\na ACGT\nb AC GT\nc ACGA\n\nRYN-\n????\nCCCC\n",
    "phylip strict": "3 8\na         ACGTRYN-\nb         ACGT????\nc         ACGACCCC\n",
    "nexus": "#NEXUS\nbegin data;\ndimensions ntax=3 nchar=8;\nformat datatype=dna missing=? gap=-;\nmatrix\n"
    "a ACGTRYN-\nb ACGT????\nc ACGACCCC\n;\nend;\n",
    "nexus one line": "#NEXUS begin data; dimensions ntax=3 nchar=8; format datatype=dna; matrix a ACGTRYN-\n"
    "b ACGT????\nc ACGACCCC; end;",
    "nexus polymorphism": "#nexus\nBEGIN DATA;\nDIMENSIONS NTAX=3 NCHAR=8;\nFORMAT DATATYPE=DNA;\nMATRIX\n"
    "a ACGT{AG}(CT)N-\nb [a [nested] comment; with ;] ACGT????\nc ACGA CC CC;\nEND;\n",
    "nexus interleave": "#NEXUS\nbegin characters;\ndimensions ntax=3 nchar=8;\nformat datatype=rna interleave;\nmatrix\n"
    "'a' ACGT\nb ACGU\nc ACGA\n\na RYN-\nb ????\nc CCCC\n;\nend;\n",
    "nexus interleave=yes": "#NEXUS\nbegin taxa; dimensions ntax=3; taxlabels a b c; end;\nbegin characters;\n"
    "dimensions nchar=8;\nformat datatype=nucleotide interleave = yes;\nmatrix\n"
    "a ACGT\nb ACGU\nc ACGA\n\na RYN-\nb ????\nc CCCC\n;\nend;\n",
    "nexus sequential over lines": "#NEXUS\nbegin data;\ndimensions ntax=3 nchar=8;\nformat datatype=dna;\nmatrix\n"
    "a\nACGT\nRYN-\nb\nACGT\n????\nc\nACGA\nCCCC\n;\nend;\n",
    "nexus symbols": "#NEXUS\nbegin data;\ndimensions ntax=3 nchar=8;\nformat datatype=dna missing=# gap=~ matchchar=.;\n"
    "matrix\na ACGTRY#~\nb ....####\nc ...ACCCC\n;\nend;\n",
}


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_formats(name, ends, tmp_path):
    path = tmp_path / "data"
    path.write_bytes(ACCEPTED[name].replace("\n", ends).encode())
    assert rows(read_alignment(path)) == ROWS
    packed = tmp_path / "data.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert rows(read_alignment(packed)) == ROWS


def test_strict_names_with_blanks_and_nothing_between():
    text = "3 4\nHomo sapieACGT\nPan troglo\nAACC\nGorilla goGGTT\n"
    assert rows(parse_alignment(text)) == {"Homo sapie": "ACGT", "Pan troglo": "AACC", "Gorilla go": "GGTT"}


def test_quoted_nexus_names():
    text = "#NEXUS\nbegin data; dimensions ntax=3 nchar=2; format datatype=dna; matrix\n"
    text += "'Homo s.' AC\n'it''s [b];' CC\nd'x GT\n; end;"
    found = parse_alignment(text)
    assert found.taxa == ("Homo s.", "it's [b];", "d'x")
    assert any("quotes" in warning for warning in found.warnings)


@pytest.mark.parametrize("format", ["fasta", "phylip", "nexus"])
@pytest.mark.parametrize("name", datasets.DATASETS)
def test_round_trip(name, format):
    data = datasets.load(name)
    again = parse_alignment(write_alignment(data, format))
    assert again.taxa == data.taxa
    assert np.array_equal(again.sites, data.sites)


def test_encodings(tmp_path):
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "utf-16"):
        path = tmp_path / encoding
        path.write_bytes(">Größe\nACGT\n>b\nACGT\n>c\nAAAA\n".encode(encoding))
        assert read_alignment(path).taxa == ("Größe", "b", "c")


def test_dots():
    fasta = ">a\nACGT\n>b\nAC..\n>c\nAAAA\n"
    found = parse_alignment(fasta)
    assert rows(found)["b"] == "AC--"
    assert any("'.' is read as missing" in warning for warning in found.warnings)
    assert rows(parse_alignment(fasta, matchchar="."))["b"] == "ACGT"
    phylip = "3 4\na ACGT\nb AC..\nc AAAA\n"
    (message,) = problems(phylip)
    assert "line 3" in message
    assert "'b', column 3" in message
    assert "--matchchar . or --missing ." in message
    assert rows(parse_alignment(phylip, matchchar="."))["b"] == "ACGT"
    assert rows(parse_alignment(phylip, missing="."))["b"] == "AC--"
    nexus = "#NEXUS\nbegin data; dimensions ntax=3 nchar=4; format datatype=dna;\nmatrix\na ACGT\nb AC..\nc AAAA\n; end;"
    assert "MATCHCHAR" in problems(nexus)[0]
    assert rows(parse_alignment(nexus, matchchar="."))["b"] == "ACGT"


def test_matching_the_first_sequence_needs_one():
    assert "repeats nothing" in problems("3 4\na .CGT\nb AC..\nc AAAA\n", matchchar=".")[0]


def test_all_problems_at_once():
    text = ">a\nACGTJ\n>b\nACG\n>a\nACGTA\n>c\n>d\n-----\n>e\nAC\nGT*\n"
    found = problems(text)
    assert found == (
        "x.txt, line 2: taxon 'a', column 5: 'J' is not a nucleotide code",
        "x.txt, line 3: taxon 'b' has 3 sites, expected 5 (as most others); sequences must be aligned",
        "x.txt, line 5: taxon 'a' is already in line 1; names must differ",
        "x.txt, line 7: taxon 'c' has no sequence",
        "x.txt, line 8: taxon 'd' has no data: every site is a gap or missing",
        "x.txt, line 12: taxon 'e', column 5: '*' is not a nucleotide code",
    )


BAD = {
    "short in the middle": ("4 4\na ACGT\nb ACG\nc ACGT\nd ACGT\n", "line 3: taxon 'b' has 3 sites, expected 4"),
    "header wrong": ("3 5\na ACGT\nb ACGT\nc ACGT\n", "every sequence has 4 sites, the header announces 5"),
    "taxa missing": ("4 4\na ACGT\nb ACGT\nc ACGT\n", "3 taxa found, 4 announced"),
    "two taxa": (">a\nACGT\n>b\nACGT\n", "at least 3"),
    "no data": (">a\nACGT\n>b\nACGT\n>c\n?-NX\n", "line 5: taxon 'c' has no data"),
    "nexus mixed": ("#NEXUS\nbegin data; format datatype=mixed(a:1); matrix a MK\n;end;", "DATATYPE=mixed: 'a:1' is not read"),
    "nexus set": (
        "#NEXUS\nbegin data;\nformat datatype=dna;\nmatrix\na A{CZ}\nb AC\nc AC\n;end;",
        "line 5: taxon 'a', column 2: '{CZ}' is not a nucleotide code",
    ),
    "no format": ("hello world\n", "does not look like FASTA"),
    "clustal": ("CLUSTAL W\n\na ACGT\n", "looks like Clustal"),
    "tree": ("((a,b),c,d);", "Newick tree"),
    "truncated nexus": (
        "#NEXUS\nbegin data;\ndimensions ntax=3 nchar=4;\nformat datatype=dna;\nmatrix\na ACGT\nb ACGT\nc AC",
        "line 5: the MATRIX is not ended by ';'",
    ),
    "nexus without matrix": ("#NEXUS\nbegin trees; tree a=(b,c); end;", "no DATA or CHARACTERS"),
    "nexus dimensions": (
        "#NEXUS\nbegin data;\ndimensions ntax=x nchar=4;\nformat datatype=dna;\nmatrix a ACGT\n;end;",
        "line 3: DIMENSIONS NTAX='x' is not a number",
    ),
    "nexus duplicate": (
        "#NEXUS\nbegin data;\ndimensions ntax=3 nchar=4;\nformat datatype=dna interleave;\nmatrix\na AC\nb AC\nb AC\n\n"
        "a GT\nb GT\nc GT\n;end;",
        "already in line 7",
    ),
    "equate": ("#NEXUS\nbegin data; format datatype=dna equate=\"x=A\"; matrix a AC\n;end;", "EQUATE is not supported"),
    "non-ascii": (">a\nACGT\n>b\nACG→\n>c\nACGT\n", "'→' is not a nucleotide code"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_problems(name):
    text, expected = BAD[name]
    assert any(expected in message for message in problems(text)), problems(text)


def test_two_readings_of_phylip():
    # Interleaved: taxa AA, CC, GG; sequential: each name followed by a line. Both are sound and they differ.
    text = "3 2\nAA\nCC\nGG\nTT\nAC\nGT\n"
    assert "more than one way" in problems(text)[0]
    assert rows(parse_alignment(text, format="phylip-interleaved")) == {"AA": "TT", "CC": "AC", "GG": "GT"}
    assert rows(parse_alignment(text, format="phylip-sequential")) == {"AA": "CC", "GG": "TT", "AC": "GT"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "empty"),
        (b" \n\r\n", "empty"),
        (b"\x1f\x8b\x08\x00\x00", "truncated or damaged"),
        (gzip.compress(FASTA.encode())[:-12], "truncated or damaged"),
        (b"PK\x03\x04abc", "zip archive"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "binary"),
        (b">a\nAC\x00GT\n", "line 2"),
    ],
)
def test_files_that_are_no_text(content, expected, tmp_path):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(AlignmentError, match=expected):
        read_alignment(path)


def test_places(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AlignmentError, match="no such file"):
        read_alignment("nothing.fa")
    with pytest.raises(AlignmentError, match="folder"):
        read_alignment(tmp_path)
    with pytest.raises(AlignmentError, match="DS1, DS2"):
        read_alignment("DS9")
    assert read_alignment("ds5").n_sites == 378
    (tmp_path / "DS5").write_text(FASTA)
    assert rows(read_alignment("DS5")) == ROWS


def test_warnings():
    found = parse_alignment(">a b\nAC-T\n>b,c\nAC-T\n>d\nAC-A\n")
    assert found.warnings == (
        "text: identical sequences: a, b,c",
        "text: 1 column without data in any taxon: 3",
        "text: names that Newick needs in quotes: b,c",
    )


def test_whole_headers_where_first_words_repeat():
    found = parse_alignment(">Homo sapiens\nACGT\n>Homo erectus\nACGA\n>Pan\nACGC\n")
    assert found.taxa == ("Homo_sapiens", "Homo_erectus", "Pan")


def test_column_points_into_the_right_line():
    text = "3 8\na ACGT\nb ACGT\nc ACGT\n\nACGT\nACZT\nACGT\n"
    assert problems(text) == ("x.txt, line 7: taxon 'b', column 7: 'Z' is not a nucleotide code",)


@pytest.mark.parametrize("symbols", [{"missing": "A"}, {"matchchar": "ab"}, {"missing": ".", "matchchar": "."}, {"format": "x"}])
def test_bad_options(symbols):
    with pytest.raises(AlignmentError):
        parse_alignment(FASTA, **symbols)


@pytest.mark.parametrize("format", ["fasta", "phylip", "nexus"])
def test_names_with_blanks_come_back_whole(format):
    sites = parse_alignment(">a\nACGT\n>b\nACGA\n>c\nACGC\n").sites
    taxa = ("Homo sapiens", "Homo erectus", "Pan\ttroglodytes")
    again = parse_alignment(write_alignment(Alignment(taxa, sites), format))
    wanted = taxa if format == "nexus" else tuple("_".join(name.split()) for name in taxa)
    assert again.taxa == wanted
    assert format == "nexus" or again.warnings == ()


@pytest.mark.parametrize("format", ["fasta", "phylip"])
def test_names_that_would_become_one_are_refused(format):
    sites = parse_alignment(">a\nACGT\n>b\nACGA\n>c\nACGC\n").sites
    with pytest.raises(AlignmentError, match="'a b' and 'a_b' would both be written as 'a_b'"):
        write_alignment(Alignment(("a b", "a_b", "c"), sites), format)
