"""mrbayes blocks: what is understood becomes models, priors and constraints, and everything else is named."""

import pytest

from vaiphy.errors import InputError
from vaiphy.formats import read_alignment
from vaiphy.runner.mrbayes import from_block, note
from vaiphy.runner.partitioned import partition_lines

HEAD = """#NEXUS
begin data;
dimensions ntax=5 nchar=12;
format datatype=dna;
matrix
Anna ACGTACGTACGA
Berta ACGTACGTACGT
Carl ACGTACCTACGT
Dora ACGTTCCTACGT
Emil AAGTTCCTACGT
;
end;
begin mrbayes;
"""


def read(tmp_path, block):
    file = tmp_path / "data.nex"
    file.write_text(HEAD + block + "\nend;\n")
    return from_block(read_alignment(file))


def test_defaults_are_those_of_mrbayes(tmp_path):
    found = read(tmp_path, "lset nst=1;")
    assert (found.model, found.parts, found.length_prior, found.outgroup) == ("F81", (), "gammadir(1,0.1,1,1)", ())
    assert found.constraint is None
    assert not found.warnings


@pytest.mark.parametrize(
    ("block", "model"),
    [
        ("lset nst=6 rates=invgamma;", "GTR+I+G4"),
        ("lset nst=2 rates=gamma ngammacat=8; prset statefreqpr = fixed( equal );", "K80+G8"),
        ("lset nst=6; prset statefreqpr=dirichlet(1,1,1,1) revmatpr=dirichlet(1,1,1,1,1,1);", "GTR"),
        ("LSET NST=1 RATES=PROPINV; Prset StateFreqPr=Fixed(Equal);", "JC+I"),
        ("lset app=(all) nst=2;", "HKY"),
    ],
)
def test_models(tmp_path, block, model):
    found = read(tmp_path, block)
    assert found.model == model
    assert not found.warnings


def test_priors_outgroup_and_constraints(tmp_path):
    found = read(
        tmp_path,
        """outgroup 2;
        taxset old = Dora Emil;
        prset brlenspr=unconstrained:exponential(10.0);
        constraint pair -1 = Anna Berta;
        constraint other negative = old;
        constraint unused = 1-3;
        prset topologypr = constraints(pair, other);""",
    )
    assert (found.length_prior, found.outgroup) == ("exp(10.0)", ("Berta",))
    assert found.constraint.required == (frozenset([0, 1]),)
    assert found.constraint.forbidden == (frozenset([3, 4]),)
    partial = read(tmp_path, "constraint p partial = 1 2 : 3 4; prset topologypr=constraints(p);")
    assert partial.constraint.bound == frozenset([0, 1, 2, 3])
    two = "constraint p partial = 1 2 : 3 4; constraint q partial = 1 2 : 4 5; prset topologypr=constraints(p,q);"
    with pytest.raises(InputError, match="same taxa"):
        read(tmp_path, two)


def test_parts(tmp_path):
    found = read(
        tmp_path,
        r"""charset first = 1-12\3 2-12\3; charset third = 3-12\3;
        partition by_position = 2: first, third;
        set partition=by_position;
        lset applyto=(1) nst=2; lset applyto=(2) nst=6 rates=gamma;
        unlink statefreq=(all);
        prset ratepr=variable;""",
    )
    assert found.model is None
    assert found.parts == (r"HKY, first = 1-12\3, 2-12\3", r"GTR+G4, third = 3-12\3")
    assert found.part_rates == "free"
    assert not found.warnings
    shared = read(
        tmp_path, r"charset a=1-12\2; charset b=2-12\2; partition p = 2: a, b; set partition=p; lset nst=6 rates=gamma;"
    )
    assert shared.part_rates == "linked"
    assert shared.warnings == (
        "mrbayes block: MrBayes would give all parts the same statefreq, revmat, shape, since no unlink line says otherwise; "
        "here each part has its own",
    )


def test_what_is_not_understood_is_named(tmp_path):
    found = read(
        tmp_path,
        "set autoclose=yes;\nlset nst=mixed rates=lnorm;\nprset brlenspr=clock:uniform shapepr=uniform(0,10);\n"
        "mcmc ngen=1000;\nconstraint c = Anna Zoe;\nprset topologypr=constraints(nobody);",
    )
    assert [line.split(" is not understood")[0] for line in found.warnings] == [
        "mrbayes block, line 14: autoclose=yes in set",
        "mrbayes block, line 15: nst=mixed in lset",
        "mrbayes block, line 15: rates=lnorm in lset",
        "mrbayes block, line 16: brlenspr=clock:uniform in prset",
        "mrbayes block, line 16: shapepr=uniform(0,10) in prset",
        "mrbayes block, line 17: 'mcmc ngen=1000'",
        "mrbayes block, line 18: 'Zoe' (no taxon) in constraint",
        "mrbayes block: topologypr names the constraint 'nobody', which is not defined",
    ]


def test_a_block_that_nobody_asked_for_is_mentioned(tmp_path):
    file = tmp_path / "data.nex"
    file.write_text(HEAD + "lset nst=6;\nend;\n")
    assert "--mrbayes-block" in note(read_alignment(file))
    file.write_text(HEAD + "end;\n")
    assert note(read_alignment(file)) == ""
    with pytest.raises(InputError, match="there is no mrbayes block"):
        from_block(read_alignment(file))


def test_the_file_is_read_once(tmp_path):
    """What else a NEXUS file says is taken from the text that the alignment was read from."""
    file = tmp_path / "data.nex"
    file.write_text(
        HEAD
        + "lset nst=6;\nend;\nbegin sets;\ncharset one = 1-2;\ncharset two = 3-.;\ncharpartition both = x:one, y:two;\nend;\n"
    )
    data = read_alignment(file)
    file.unlink()
    assert from_block(data).model.startswith("GTR")
    assert [line.partition("=")[0].split()[-1] for line in partition_lines(data, "both", "JC")] == ["x", "y"]


@pytest.mark.parametrize(
    "line",
    ["lset applyto=(\u00b2) nst=6", "lset nst=6 rates=gamma ngammacat=\u00b2", "outgroup \u00b2", f"outgroup {'9' * 5000}",
     f"lset applyto=({'9' * 5000}) nst=6", f"constraint c = 1-{'9' * 5000}"],
)  # fmt: skip
def test_odd_digits_are_no_numbers(tmp_path, line):
    assert from_block_or_error(tmp_path, line + ";")


def from_block_or_error(tmp_path, block):
    try:
        return read(tmp_path, block)
    except InputError as error:
        return error
