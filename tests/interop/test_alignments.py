"""Alignments from objects of other libraries are what the same sequences in a file are."""

import numpy as np
import pytest
from reference.standin import use_standin

import vaiphy

ROWS = {"a b": "ACGT-NRA", "c": "ACGTAC?T", "it's": "ACTTACGT", "d": "CCTTACGA"}


def biopython():
    align = pytest.importorskip("Bio.Align", reason="Biopython is not installed")
    return align.MultipleSeqAlignment(biopython_records())


def biopython_records():
    pytest.importorskip("Bio", reason="Biopython is not installed")
    from Bio.Seq import Seq
    from Bio.SeqRecord import SeqRecord

    return [SeqRecord(Seq(row), id=name) for name, row in ROWS.items()]


def biopython_pairwise_kind():
    return biopython().alignment


def skbio_labels():
    skbio = pytest.importorskip("skbio", reason="scikit-bio is not installed")
    rows = [skbio.DNA(row.replace("?", ".")) for row in ROWS.values()]
    return skbio.TabularMSA(rows, index=list(ROWS))


def skbio_ids():
    skbio = pytest.importorskip("skbio", reason="scikit-bio is not installed")
    return skbio.TabularMSA([skbio.DNA(row.replace("?", "."), metadata={"id": name}) for name, row in ROWS.items()])


def cogent3():
    library = pytest.importorskip("cogent3", reason="cogent3 is not installed")
    return library.make_aligned_seqs(ROWS, moltype="dna")


OBJECTS = [biopython, biopython_records, biopython_pairwise_kind, skbio_labels, skbio_ids, cogent3]
quiet = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@quiet
@pytest.mark.parametrize("make", OBJECTS)
def test_same_alignment_as_from_text(make):
    expected = vaiphy.parse_alignment(nexus())
    found = vaiphy.read_alignment(make())
    assert found.taxa == expected.taxa == tuple(ROWS)
    assert np.array_equal(found.sites, expected.sites)


def nexus():
    rows = "".join("'" + name.replace("'", "''") + f"' {row}\n" for name, row in ROWS.items())
    start = "#NEXUS\nbegin data;\ndimensions ntax=4 nchar=8;\nformat datatype=dna gap=- missing=?;\nmatrix\n"
    return f"{start}{rows};\nend;\n"


@quiet
@pytest.mark.parametrize("make", [biopython, skbio_labels, cogent3])
def test_a_run_takes_it(make, monkeypatch):
    use_standin(monkeypatch)
    thing = make()
    analysis = vaiphy.run(thing, seed=1)
    assert analysis.patterns.taxa == tuple(ROWS)
    assert analysis.provenance.file in ("Biopython alignment", "scikit-bio alignment", "cogent3 alignment")
    assert analysis.provenance.sha256 == vaiphy.run(vaiphy.read_alignment(thing), seed=1).provenance.sha256


@quiet
def test_problems_are_those_of_a_file():
    align = pytest.importorskip("Bio.Align", reason="Biopython is not installed")
    from Bio.Seq import Seq
    from Bio.SeqRecord import SeqRecord

    twice = align.MultipleSeqAlignment([SeqRecord(Seq("ACGJ"), id="x"), SeqRecord(Seq("ACGT"), id="x"), SeqRecord(Seq("ACGT"))])
    with pytest.raises(vaiphy.AlignmentError) as caught:
        vaiphy.read_alignment(twice)
    text = str(caught.value)
    assert "Biopython alignment: taxon 'x' occurs twice; names must differ" in text
    assert "column 4: 'J' is not a nucleotide code" in text
    assert "a sequence without a name" in text


def test_unequal_lengths_are_told():
    library = pytest.importorskip("cogent3", reason="cogent3 is not installed")
    loose = library.make_unaligned_seqs({"a": "ACGT", "b": "ACG", "c": "ACGT"}, moltype="dna")
    with pytest.raises(vaiphy.AlignmentError, match="taxon 'b' has 3 sites, expected 4"):
        vaiphy.read_alignment(loose)


@pytest.mark.parametrize("thing", [3, None, [], ["ACGT"], {"a": "ACGT"}])
def test_other_things_are_refused(thing):
    with pytest.raises(vaiphy.AlignmentError, match="is not an alignment; give a file"):
        vaiphy.read_alignment(thing)
