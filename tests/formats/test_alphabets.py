"""Alignments of other alphabets than DNA: read, guessed, told, written and described."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from vaiphy.alignment import AlignmentError, compress, fold_states
from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA
from vaiphy.cli import main
from vaiphy.formats import parse_alignment, write_alignment

PROTEIN = ">a\nMKVLEFPQ\n>b\nMKVLEFP-\n>c\nMKVLEBXQ\n"
PHYLIP_PROTEIN = "3 24\n" + "".join(f"{name} MKVLEFPQ WILDLIFE\n WILDLIFE\n" for name in ("Homo", "Pan", "Gorilla"))
MORPHOLOGY = """#NEXUS
begin data;
  dimensions ntax=3 nchar=4;
  format datatype=standard symbols="0123" missing=? gap=-;
  matrix
  a 01(23)0
  b 0?{1 2}1
  c 1-30
  ;
end;
"""


def test_guesses_are_told():
    assert parse_alignment(">a\nACGT\n>b\nACGN\n>c\nACGR\n").warnings == ()
    protein = parse_alignment(PROTEIN, "x")
    assert protein.alphabet is AA
    told = "the characters look like amino acids and are read as such (AA); if they are something else, say so with --seqtype"
    assert told in protein.warnings[0]
    binary = parse_alignment(">a\n0101\n>b\n01?1\n>c\n1101\n", "x")
    assert (binary.alphabet, "binary characters" in binary.warnings[0]) == (BIN, True)
    morphology = parse_alignment(">a\n0103\n>b\n01?1\n>c\n1101\n", "x")
    assert morphology.alphabet == MORPH(4)
    assert "morphological characters with 4 states" in morphology.warnings[0]


def test_doubtful_dna_is_told():
    odd = parse_alignment(">a\nMKVHDNSW\n>b\nMKVHDNSW\n>c\nMKVHDNSA\n")
    assert odd.alphabet is DNA
    assert "only 5% of the letters are A, C, G, T or U; read as nucleotides (DNA)" in odd.warnings[0]


def test_told_types_win():
    protein = parse_alignment(">a\nACGT\n>b\nACGN\n>c\nACGR\n", seqtype="aa")
    assert (protein.alphabet, protein.warnings) == (AA, ())
    assert AA.decode(protein.sites[1]) == "ACGN"
    rna = parse_alignment(">a\nACGT\n>b\nACGU\n>c\nACGR\n", seqtype="RNA")
    assert (rna.alphabet, RNA.decode(rna.sites[0])) == (RNA, "ACGU")
    with pytest.raises(AlignmentError, match="'L' is not a nucleotide code; also 'E' in column 5"):
        parse_alignment(PROTEIN, seqtype="DNA")
    with pytest.raises(AlignmentError, match="'2' is not a binary state"):
        parse_alignment(">a\n0121\n>b\n0101\n>c\n0101\n", seqtype="BIN")


def test_phylip_of_amino_acids_in_blocks():
    """Words that could be names are sequence where the numbers in the header say so."""
    found = parse_alignment(PHYLIP_PROTEIN)
    assert found.taxa == ("Homo", "Pan", "Gorilla")
    assert AA.decode(found.sites[0]) == "MKVLEFPQWILDLIFEWILDLIFE"


def test_polymorphic_morphology():
    found = parse_alignment(MORPHOLOGY)
    assert found.alphabet == MORPH(4)
    assert found.sites.tolist() == [[1, 2, 0b1100, 1], [1, 15, 0b0110, 2], [2, 15, 8, 1]]
    with pytest.raises(AlignmentError, match=r"taxon 'a' has sets of states such as \{01\}; only NEXUS can hold them"):
        write_alignment(found)


def test_sets_mean_what_the_alphabet_says():
    """{AG} is R in DNA, and no arginine in proteins."""
    text = MORPHOLOGY.replace("standard", "protein")
    text = text.replace("01(23)0", "AC(AG)W").replace("0?{1 2}1", "A?{KR}W").replace("1-30", "A-RW")
    assert parse_alignment(text).sites[0, 2] == AA.encode("A")[0] | AA.encode("G")[0]


@pytest.mark.parametrize("format", ["fasta", "phylip", "nexus"])
@pytest.mark.parametrize("alphabet", [DNA, RNA, AA, BIN, MORPH(12)], ids=lambda a: a.name)
def test_written_and_read_again(alphabet, format):
    rng = np.random.default_rng(1)
    rows = ["".join(rng.choice(list(alphabet.states + "?-"), size=60)) for _ in range(4)]
    rows[0] = (alphabet.states * 60)[:60]
    text = "".join(f">taxon{k}\n{row}\n" for k, row in enumerate(rows))
    original = parse_alignment(text, seqtype=alphabet.name)
    again = parse_alignment(write_alignment(original, format), seqtype=alphabet.name)
    assert again.alphabet == alphabet
    assert (again.sites == original.sites).all()
    assert again.sites.dtype == alphabet.dtype


def test_nexus_round_trip_of_sets():
    found = parse_alignment(MORPHOLOGY)
    assert (parse_alignment(write_alignment(found, "nexus")).sites == found.sites).all()


def test_patterns_of_wide_codes():
    found = compress(parse_alignment(">a\nMKMKLE\n>b\nMKMKFE\n>c\nMKMKPQ\n"))
    assert found.counts.tolist() == [2, 2, 1, 1]
    assert found.alphabet is AA
    assert found.tips.shape == (3, 20, 4)
    assert found.tips.sum() == 12


def test_exchangeable_states_fold():
    """Columns that differ in the names of states only become one; sets of states follow their members."""
    text = MORPHOLOGY.replace("nchar=4", "nchar=6")
    text = text.replace("01(23)0", "01(02)234").replace("0?{1 2}1", "0122?4").replace("1-30", "102134")
    patterns = compress(parse_alignment(text, seqtype="MORPH"))
    folded = fold_states(patterns)
    assert folded.counts.sum() == patterns.counts.sum() == 6
    assert folded.n_patterns < patterns.n_patterns
    # 001 and 221 are one pattern; {02}22 keeps state 2 of its set at the place of the 2 below it.
    assert folded.site_pattern[0] == folded.site_pattern[3]
    assert folded.codes[:, folded.site_pattern[2]].tolist() == [0b11, 1, 1]


def test_check_describes_amino_acids(tmp_path):
    path = tmp_path / "x.fasta"
    path.write_text(PROTEIN + ">d\nMKVLEFPE\n")
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 0
    assert "4 taxa, 8 sites of amino acids" in result.stdout
    assert "Composition" in result.stdout
    assert "GC" not in result.stdout
    record = json.loads(CliRunner().invoke(main, ["check", "--json", "--seqtype", "aa", str(path)]).stdout)
    assert (record["seqtype"], record["states"], record["ambiguity_codes"], record["warnings"]) == ("AA", 20, 1, [])
    assert record["composition"]["M"] == pytest.approx(4 / 29)


def test_methods_for_nucleotides_refuse_others(tmp_path):
    path = tmp_path / "x.fasta"
    path.write_text(PROTEIN + ">d\nMKVLEFPW\n")
    result = CliRunner().invoke(main, ["run", str(path), "--method", "csmc", "--seed", "1"])
    assert result.exit_code == 2
    assert "these are amino acids; the method csmc reads nucleotides (DNA or RNA) only" in result.stderr
    assert sorted(found.name for found in tmp_path.iterdir()) == ["x.fasta"]


def test_states_of_several_characters_are_told():
    text = '#NEXUS\nbegin data;\ndimensions ntax=3 nchar=2;\nformat datatype=standard symbols="00 01 02";\nmatrix\n'
    with pytest.raises(AlignmentError, match=r"line 4: FORMAT SYMBOLS: states of several characters such as '00' are not read"):
        parse_alignment(text + "a 00 01\nb 01 01\nc 02 00\n;\nend;\n")
    plain = text.replace("00 01 02", "0 1 2")
    assert parse_alignment(plain + "a 01\nb 11\nc 20\n;\nend;\n").n_sites == 2
