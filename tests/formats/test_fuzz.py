"""Mutated and random bytes at every reader: our error or a sound result, never another exception, never a hang."""

import gzip
import time
from contextlib import suppress

import numpy as np
import pytest

from vaiphy.alignment import AlignmentError
from vaiphy.alphabets import AA, BIN, DNA, MORPH
from vaiphy.errors import InputError
from vaiphy.formats import FORMATS, constraints, mrbayes_block, parse_alignment, parse_trees
from vaiphy.formats.files import decode
from vaiphy.formats.partitions import PartitionError, parse_partition
from vaiphy.models.grammar import parse as parse_model
from vaiphy.models.priors import length_prior
from vaiphy.trees.tree import TreeError

ALIGNMENTS = [
    b">a\nACGT\nRYN-\n>b c\nacgu\n????\n;x\n>c\nACGA\nCC.C\n",
    b"3 8\na ACGT\nb ACGT\nc ACGA\n\nRYN-\n????\nCCCC\n",
    b"3 8\nHomo sapieACGTRYN-\nPan trogloACGT????\nGorilla goACGACCCC\n",
    b"3 8\na\nACGTRYN-\nb\nACGT????\nc\nACGACCCC\n",
    b"#NEXUS\n[c [n]]\nbegin taxa; dimensions ntax=3; taxlabels a 'b b' c; end;\nbegin data;\ndimensions ntax=3 nchar=8;\n"
    b"format datatype=dna missing=? gap=- matchchar=. interleave=yes;\nmatrix\na ACGT\n'b b' A..T\nc A{CG}(AT)A\n\n"
    b"a ACGT\n'b b' ....\nc ACGA\n;\nend;\nbegin mrbayes; set x=1; end;\n",
    b">a\nMKVLEFPQ\n>b\nMKVLEFP*\n>c\nMKVLEBXQ\n",
    b"3 24\nHomo MKVLEFPQ WILDLIFE\n WILDLIFE\nPan MKVLEFPQ WILDLIFE\n WILDLIFE\nGorilla MKVLEFPQ WILDLIFE\n WILDLIFE\n",
    b'#NEXUS\nbegin data;\ndimensions ntax=3 nchar=4;\nformat datatype=standard symbols="0123" missing=? gap=-;\nmatrix\n'
    b"a 01(23)0\nb 0?{1 2}1\nc 1-30\n;\nend;\n",
]
TREES = [
    b"((a:1,b:2)0.9:0.5[&x=1],'c c':1e-3,d)root;\n(a,b,('c c',d));\n",
    b"#NEXUS\n[ID]\nbegin taxa; dimensions ntax=4; taxlabels a b c 'd d'; end;\nbegin trees;\ntranslate 1 a, 2 b, 3 c, 4 'd d';\n"
    b"tree one [p=0.1] = [&W 1/3] [&U] ((1:0.1,2:0.2)1.0:1,3[&r={1,2}]:0.1[x],4);\nutree * two = (1,2,3,4);\nend;\n",
]
#: What the texts below are about: eight taxa of ten sites.
TARGET = parse_alignment("".join(f">{name}\n{'ACGTACGTAC'[k:] + 'ACGTACGTAC'[:k]}\n" for k, name in enumerate("abcdefgh")))
PARTITIONS = [
    b"DNA, gene1 = 1-6\\3, 2, 3\nHKY{2}+F{.1,.2,.3,.4}+G4, gene 2 = 5-., 4\n# end\n",
    b"#NEXUS\nbegin sets;\ncharset one = 1-4 late;\ncharset 'late s' = DNA, 5 - .\\2;\ncharset late = 6-10\\2;\n"
    b"charpartition * mine = HKY+G4: one, GTR+I{0.1}: 'late s';\nend;\nbegin mrbayes; partition p = 2: one, late; end;\n",
]
BLOCKS = [
    b"#NEXUS\nbegin mrbayes;\nset autoclose=yes partition=p; lset applyto=(1,2) nst=6 rates=invgamma ngammacat=8;\n"
    b"prset applyto=(all) statefreqpr=fixed(equal) brlenspr=unconstrained:exp(10.0) ratepr=variable;\n"
    b"unlink statefreq=(all) revmat=(1,2); outgroup b; taxset x = 2-4 8; constraint c1 hard = a b x;\n"
    b"constraint c2 partial = e f : 7 8; prset topologypr=constraints(c1,c2);\nmcmc ngen=1000;\nend;\n",
]
CONSTRAINTS = [
    b"((a,b),(c,'d'),e);\n",
    b"#NEXUS\nbegin trees;\ntranslate 1 a, 2 b, 3 c, 4 d;\ntree t = [&U] ((1,2),3,4,e);\nend;\n",
]
MODELS = [b"HKY{2.5}+F{0.3,0.2,0.2,0.3}+G4{0.5}", b"GTR{1/2/3/4/5/1}+FO+I{0.1}+G", b"LG+F+I+G8", b"MK+ASC", b"012345+FQ",
          b"exp(10)", b"Unconstrained: GammaDir(1.0,0.1,1.0,1.0)"]  # fmt: skip
TOKENS = [b"(", b")", b",", b";", b":", b"'", b"''", b'"', b"[", b"]", b"{", b"}", b"=", b"\n", b"\r", b" " * 50, b">",
          b"#NEXUS", b"matrix", b"begin", b"end;", b"\x00", b"\xff", b"\xc3\xa9", b"999999999999", b"-1", b"0", b"1e999", b"nan",
          b"[&W 1/0]", b"1_0", "\u0661\u2003\u2028".encode(),
           b"A" * 100, b"(" * 200, b"." * 30, b"translate", b"interleave", b"nchar=0", b"ntax=0"]  # fmt: skip
LIMIT = 5.0  # seconds; a reader takes milliseconds for these


def mutated(seed, rng):
    text = bytearray(seed)
    for _ in range(rng.integers(1, 6)):
        at, size = int(rng.integers(len(text) + 1)), int(rng.integers(1, 12))
        kind = rng.integers(6)
        if kind == 0:
            del text[at : at + size]
        elif kind == 1:
            text[at:at] = TOKENS[rng.integers(len(TOKENS))]
        elif kind == 2:
            text[at:at] = text[at : at + size * 4]
        elif kind == 3:
            text[at : at + size] = rng.bytes(size)
        elif kind == 4:
            del text[at:]
        else:
            other = int(rng.integers(len(text) + 1))
            text[at : at + size], text[other : other + size] = text[other : other + size], text[at : at + size]
    return bytes(text)


def inputs(rng):
    """Endless mutated and random inputs, each with the reader, its error and the check of its result."""
    formats = [None, *FORMATS]
    printable = np.frombuffer(b"ACGT-?N acgt'[]();:,=\n\r\t{}.019>#", dtype=np.uint8)
    starts = [b"", b">", b"3 4\n", b"#NEXUS\n", b"(", b"\x1f\x8b", b"\xff\xfe"]
    about_the_taxa = [(PARTITIONS, as_partition), (BLOCKS, as_block), (CONSTRAINTS, as_constraint), (MODELS, as_model)]
    packed = [gzip.compress(seed) for seed in ALIGNMENTS + TREES]
    while True:
        format = formats[rng.integers(len(formats))] if rng.random() < 0.3 else None
        taxa = ["a", "b", "c c", "d"] if rng.random() < 0.25 else None
        as_alignment = (lambda text, format=format: parse_alignment(text, format=format), AlignmentError, sound_alignment)
        as_trees = (lambda text, taxa=taxa: parse_trees(text, taxa), TreeError, sound_trees)
        kind = rng.random()
        if kind < 0.2:
            seeds, reader = about_the_taxa[rng.integers(len(about_the_taxa))]
            yield mutated(seeds[rng.integers(len(seeds))], rng), *reader
        elif kind < 0.6:
            yield mutated(ALIGNMENTS[rng.integers(len(ALIGNMENTS))], rng), *as_alignment
        elif kind < 0.85:
            yield mutated(TREES[rng.integers(len(TREES))], rng), *as_trees
        elif kind < 0.95:
            size = int(rng.integers(0, 200))
            content = rng.bytes(size) if rng.random() < 0.5 else rng.choice(printable, size).tobytes()
            yield starts[rng.integers(len(starts))] + content, *(as_alignment if rng.random() < 0.5 else as_trees)
        else:
            yield mutated(packed[rng.integers(len(packed))], rng), *(as_alignment if rng.random() < 0.5 else as_trees)


def sound_alignment(found):
    assert found.sites.shape == (len(set(found.taxa)), found.n_sites)
    assert found.n_taxa >= 3
    assert ((found.sites > 0) & (found.sites <= found.alphabet.everything)).all()
    assert found.sites.dtype == found.alphabet.dtype


def sound_trees(found):
    for entry in found:
        assert all(entry.tree.taxa)
        assert len(entry.tree.postorder) == entry.tree.n_vertices
        assert not np.isinf(entry.tree.length).any()


def sound_parts(found):
    sites = np.concatenate([subset.sites for subset in found])
    assert sorted(sites.tolist()) == list(range(TARGET.n_sites))


def sound_block(block):
    for kind in ("DNA", "AA", "MORPH", "BIN"):
        assert mrbayes_block.model_of_part(block, 1, kind)


def sound_constraint(found):
    constraint = constraints.constraint_of(constraints.lines_of(found, TARGET.taxa), TARGET.taxa)
    assert constraint is None or constraint.n_trees > 0


def sound_models(found):
    assert all(str(model) for model in found)


def models_and_priors(text):
    """A text read as a model of every kind of data and as a prior; the last error, if it is none of them."""
    readings = [*(lambda a=a: parse_model(text, a) for a in (DNA, AA, BIN, MORPH(3))), lambda: length_prior(text)]
    found, last = [], None
    for read in readings:
        try:
            found.append(read())
        except InputError as error:
            last = error
    if not found:
        raise last
    return found


as_partition = (lambda text: parse_partition(text, TARGET), PartitionError, sound_parts)
as_block = (lambda text: mrbayes_block.read_block(text, TARGET.taxa), InputError, sound_block)
as_constraint = (lambda text: constraints.wanted(TARGET.taxa, _newick(text)), InputError, sound_constraint)
as_model = (models_and_priors, InputError, sound_models)


def _newick(text):
    """Text for what may also be the name of a file: a parenthesis makes it a tree."""
    return text if "(" in text and len(text) > 300 else f"({text}"


def throw(content, parse, error, check):
    start = time.perf_counter()
    with suppress(error):
        check(parse(decode(content, "fuzz", error)))
    assert time.perf_counter() - start < LIMIT


@pytest.mark.parametrize("seed", ALIGNMENTS)
def test_mutated_alignments(seed):
    rng = np.random.default_rng(len(seed))
    formats = [None, *FORMATS]
    for k in range(800):
        content = mutated(seed, rng)
        format = formats[k % len(formats)] if k % 3 == 0 else None
        seqtype = ("AA", "MORPH", "BIN", "DNA")[k % 4] if k % 5 == 0 else None
        options = {"format": format, "seqtype": seqtype}
        throw(content, lambda text, options=options: parse_alignment(text, **options), AlignmentError, sound_alignment)


@pytest.mark.parametrize("seed", TREES)
def test_mutated_trees(seed):
    rng = np.random.default_rng(len(seed))
    for k in range(1500):
        taxa = ["a", "b", "c c", "d"] if k % 4 == 0 else None
        throw(mutated(seed, rng), lambda text, taxa=taxa: parse_trees(text, taxa), TreeError, sound_trees)


@pytest.mark.parametrize(
    ("seeds", "reader"),
    [(PARTITIONS, as_partition), (BLOCKS, as_block), (CONSTRAINTS, as_constraint), (MODELS, as_model)],
    ids=["partition", "mrbayes", "constraint", "model"],
)
def test_mutated_texts_about_an_alignment(seeds, reader):
    rng = np.random.default_rng(7)
    for seed in seeds:
        throw(seed, *reader)
        for _ in range(1500):
            throw(mutated(seed, rng), *reader)


@pytest.mark.parametrize("start", [b"", b">", b"3 4\n", b"#NEXUS\n", b"(", b"\x1f\x8b", b"\xff\xfe"])
def test_random_bytes(start):
    rng = np.random.default_rng(5)
    printable = np.frombuffer(b"ACGT-?N acgt'[]();:,=\n\r\t{}.019>#", dtype=np.uint8)
    for k in range(300):
        size = int(rng.integers(0, 200))
        content = start + (rng.bytes(size) if k % 2 else rng.choice(printable, size).tobytes())
        throw(content, parse_alignment, AlignmentError, sound_alignment)
        throw(content, parse_trees, TreeError, sound_trees)


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, "[" * 100_000, "'" * 100_001, "(a" + "[" * 50_000 + ";", " " * 200_000 + "x", "(a" + " " * 200_000 + "b);",
     "(a:1" + "[x]" * 50_000 + "!", "#NEXUS\nbegin data;" + "\n" * 100_000 + "matrix " + "'a " * 50_000,
     "#NEXUS begin trees; translate " + "1 a, " * 30_000 + "; tree a = (1,2);", "#NEXUS\n" + "#x\n" * 50_000, "#" * 100_000],
    ids=range(11),
)  # fmt: skip
def test_no_quadratic_traps(text):
    for parse, error, check in ((parse_alignment, AlignmentError, sound_alignment), (parse_trees, TreeError, sound_trees)):
        throw(text.encode(), parse, error, check)


def test_damaged_gzip():
    rng = np.random.default_rng(6)
    packed = gzip.compress(ALIGNMENTS[0])
    for _ in range(200):
        throw(b"\x1f\x8b" + mutated(packed, rng)[2:], parse_alignment, AlignmentError, sound_alignment)
