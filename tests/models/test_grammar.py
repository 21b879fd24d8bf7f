"""Model strings: IQ-TREE's and RAxML-NG's words, one canonical form, one line for what is unknown."""

import pytest

from vaiphy.alphabets import AA, BIN, DNA, MORPH, RNA
from vaiphy.errors import InputError
from vaiphy.models.grammar import AA_MODELS, DNA_MODELS, parse

CANONICAL = [
    ("jc", DNA, "JC"),
    ("JC69+FO", DNA, "F81"),
    ("K2P", DNA, "K80"),
    ("HKY85+FE", DNA, "K80"),
    ("K80+F", DNA, "HKY+F"),
    ("TN93+FC+IO+GA", DNA, "TN+F+I+G4"),
    ("412310", DNA, "TVM"),
    ("010010+FQ", DNA, "K80"),
    ("001122", DNA, "001122"),
    ("001122+FQ", DNA, "001122+FQ"),
    ("123450+FO", RNA, "GTR"),
    ("GTR{1/2/3/4/5/6}+FU{.1/.2/.3/.4}+IU{0.1}+G8m{0.5}", DNA, "GTR{1,2,3,4,5,6}+F{0.1,0.2,0.3,0.4}+I{0.1}+G8{0.5}"),
    ("GTR{1,2,3,4,5}", DNA, "GTR{1,2,3,4,5}"),
    ("HKY{2.5}+G{1e-2}", DNA, "HKY{2.5}+G4{0.01}"),
    ("TIM2{0.5,2,3}", DNA, "TIM2{0.5,2,3}"),
    ("lg+g4+f", AA, "LG+F+G4"),
    ("BLOSUM62+FO", AA, "Blosum62+FO"),
    ("dayhoff+FQ", AA, "Dayhoff+FQ"),
    ("poisson+I", AA, "Poisson+I"),
    ("Mk+ASC", MORPH(5), "MK+ASC"),
    ("ordered+G", MORPH(5), "ORDERED+G4"),
    ("MK+ASC_LEWIS", BIN, "JC2+ASC"),
    ("JC2+FO", BIN, "GTR2"),
    ("GTR2+F{0.25,0.75}", BIN, "GTR2+F{0.25,0.75}"),
]


@pytest.mark.parametrize(("text", "alphabet", "canonical"), CANONICAL)
def test_canonical_form(text, alphabet, canonical):
    string = parse(text, alphabet)
    assert str(string) == canonical
    assert parse(canonical, alphabet) == string


def test_rates_in_braces_leave_out_g_t_or_not():
    assert parse("TIM2{0.5,2,3}", DNA).rates == parse("TIM2{0.5/2/1/3}", DNA).rates == (0.5, 2.0, 1.0, 3.0)
    assert parse("HKY{3}", DNA).rates == (1.0, 3.0)
    assert parse("TVM{4,1,2,3}", DNA).rates == (4.0, 1.0, 2.0, 3.0, 1.0)


def test_every_known_name_is_parsed():
    for name in [name for pair in DNA_MODELS.values() for name in pair]:
        assert parse(name, DNA).name == name
    for name in AA_MODELS:
        assert parse(name.upper(), AA).name == name


WRONG = [
    ("GTX", DNA, "'GTX' is not a model of DNA; known are JC, F81, K80, HKY"),
    ("LG", DNA, "'LG' is not a model of DNA"),
    ("GTR", AA, "'GTR' is not a model of AA; known are LG, WAG"),
    ("HKY", MORPH(4), "known are MK, ORDERED"),
    ("", DNA, "'' is not a model"),
    ("GTR+R4", DNA, r"'\+R4' is unknown; known are \+F, \+FQ"),
    ("GTR+G1", DNA, r"1 rate categories; \+G takes 2 to 32"),
    ("GTR+G4+G8", DNA, "says the same thing twice"),
    ("GTR+G4{-1}", DNA, "a shape of -1 in braces"),
    ("GTR+I{1}", DNA, "at least 0 and less than 1"),
    ("GTR+I{nan}", DNA, "at least 0 and less than 1"),
    ("GTR{1,2}", DNA, r"GTR has 6 distinct rates; give 5 \(relative to G-T\) or 6, not 2"),
    ("GTR{1,2,x,4,5}", DNA, "'x' in braces is not a number"),
    ("GTR{0,0,0,0,0,0}", DNA, "all rates are zero"),
    ("GTR{1,2,3,4,5", DNA, "not a model"),
    ("JC{2}", DNA, "JC has no rates"),
    ("HKY+F{0.5,0.5}", DNA, "2 frequencies in braces, expected 4 in the order ACGT"),
    ("HKY+F{0.5,0.5,0.5,0.5}", DNA, "sum to 2, not to 1"),
    ("HKY+F{0.5,0.5,0,0}", DNA, "above 0 and at most 1"),
    ("HKY{inf}", DNA, "at least 0 and less than 1,000,000"),
    ("MK+F", MORPH(4), "MK has equal frequencies"),
    ("JC+I+ASC", DNA, "contradict each other"),
]


@pytest.mark.parametrize(("text", "alphabet", "message"), WRONG)
def test_what_is_wrong_is_said_in_one_line(text, alphabet, message):
    with pytest.raises(InputError, match=message) as caught:
        parse(text, alphabet)
    assert len(caught.value.problems) == 1
    assert "\n" not in str(caught.value)
    assert f"model '{text}'" in str(caught.value)


def test_all_problems_at_once():
    with pytest.raises(InputError) as caught:
        parse("GTX+R4+I{2}", DNA)
    assert len(caught.value.problems) == 3


def test_endless_texts_are_one_short_line():
    for text in ("GTR" + "+G" * 40_000, "+" * 40_000, "GTR+G" + "9" * 40_000):
        with pytest.raises(InputError, match="characters; models have at most 5,000") as caught:
            parse(text, DNA)
        assert len(str(caught.value)) < 200
    with pytest.raises(InputError, match="is unknown"):
        parse("GTR+G" + "9" * 4500, DNA)
