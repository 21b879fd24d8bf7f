"""The options of `vaiphy run`, in the order in which its help shows them."""

from typing import Any

import click

from vaiphy.cli.arguments import CLUSTER_HELP, CONSTRAINTS, FORMAT_NAMES, SEQTYPE_HELP, SEQTYPES
from vaiphy.cli.grouped import Duration, GroupedOption, Threads
from vaiphy.cli.numbers import prior_number, setting
from vaiphy.methods.settings import Settings

EVERYDAY, METHOD, INPUT, OUTPUT = "Everyday options", "What is computed", "How the alignment is read", "Files and screen"
ARRAY = "Job arrays"


def _option(*names: str, group: str, **kwargs: Any) -> Any:
    return click.option(*names, cls=GroupedOption, group=group, **kwargs)


def _constraints(command: Any) -> Any:
    for names, keywords in reversed(CONSTRAINTS):
        command = _option(*names, group=METHOD, **keywords)(command)
    return command


_OPTIONS = [
    _option("--prefix", metavar="PREFIX", group=EVERYDAY, help="How the names of all files begin.  [default: the input's name]"),
    _option(
        "-T",
        "--threads",
        metavar="N|auto",
        type=Threads(),
        default="auto",
        show_default=True,
        group=EVERYDAY,
        help="Threads; the result does not depend on them.",
    ),
    _option("--cluster", metavar="ADDRESS", group=EVERYDAY, help=CLUSTER_HELP),
    _option(
        "--seed",
        type=setting("seed", whole=True),
        metavar="N",
        group=EVERYDAY,
        help="Seed of the random numbers.  [default: drawn, printed and recorded]",
    ),
    _option(
        "--outgroup",
        metavar="TAXA",
        group=EVERYDAY,
        help=("Taxon (or several, with commas) beside which trees are rooted when drawn."),
    ),
    _option(
        "--redo", is_flag=True, group=EVERYDAY, help="Start over: ignore the checkpoint and replace the files of an earlier run."
    ),
    _option(
        "--time-limit", type=Duration(), group=EVERYDAY, help=("Stop after this time (90s, 10m, 2h) with the best answer so far.")
    ),
    _option(
        "--method",
        type=click.Choice(["posterior", "vaiphy", "phi-csmc", "csmc", "vbpi"]),
        default="posterior",
        show_default=True,
        group=METHOD,
        help="posterior: marginal likelihood and posterior of unrooted binary trees. The others: the VaiPhy paper's methods, and "
        "VBPI, which it compares them with.",
    ),
    _option(
        "--replicates",
        type=setting("replicates", whole=True),
        default=4,
        show_default=True,
        metavar="N",
        group=METHOD,
        help="Independent searches for the trees that matter, and the fewest final runs, compared with each other: 2 to 1,000.",
    ),
    _option(
        "--accuracy",
        type=setting("accuracy"),
        default=Settings.accuracy,
        show_default=True,
        metavar="X",
        group=METHOD,
        help="Standard error of the log marginal likelihood to aim for: 0.0001 to 1,000.",
    ),
    _option(
        "--bridges",
        type=setting("bridges", whole=True),
        metavar="N",
        group=METHOD,
        help="Make exactly this many final bridges, whatever their accuracy.  [default: until the accuracy is reached]",
    ),
    _option(
        "--shard",
        metavar="I/N",
        group=ARRAY,
        help="Do the part of replicate I of N, in one of two phases; then `vaiphy merge PREFIX`. Needs --seed.",
    ),
    _option(
        "--phase",
        type=click.Choice(["learn", "draw"]),
        group=ARRAY,
        help="learn comes first; draw, which may start when all have learned, makes this shard's share of the --bridges.",
    ),
    _option(
        "-m",
        "--model",
        metavar="MODEL",
        group=EVERYDAY,
        help=(
            "Substitution model as IQ-TREE writes it: JC, HKY+G4, GTR+I+G4, LG+G4, MK+ASC; "
            "auto compares models and takes the best. "
            " [default: GTR+G4; LG+G4 for amino acids; MK for other characters; JC for the paper's methods]"
        ),
    ),
    _option(
        "-p",
        "--partition",
        metavar="FILE",
        group=EVERYDAY,
        help="Parts with a model each: a partition file (RAxML or NEXUS), or a charpartition in the alignment's own file.",
    ),
    _option(
        "--rates",
        type=click.Choice(["free", "linked"]),
        default="free",
        show_default=True,
        group=METHOD,
        help="With -p: a relative rate for each part, or the same branch lengths for all.",
    ),
    _constraints,
    _option(
        "--mrbayes-block",
        is_flag=True,
        group=METHOD,
        help=(
            "Take models, priors, partition, outgroup and constraints from the file's "
            "mrbayes block; other options here come first."
        ),
    ),
    _option(
        "--length-prior",
        metavar="PRIOR",
        group=METHOD,
        help="Prior of branch lengths: exp(RATE) or gammadir(aT,bT,a,c), MrBayes's default.  [default: exp(10)]",
    ),
    _option(
        "--prior-rate",
        type=prior_number(),
        metavar="X",
        group=METHOD,
        help="Rate of the exponential prior of branch lengths (mean 1/X), short for --length-prior 'exp(X)': 0.02 to 1,000,000.",
    ),
    _option(
        "--tree-law",
        type=click.Choice(["spanning", "slantis"]),
        group=METHOD,
        help="Distribution of trees of the method vaiphy.  [default: spanning]",
    ),
    _option(
        "--iterations",
        type=setting("iterations", whole=True),
        metavar="N",
        group=METHOD,
        help="Iterations of the methods vaiphy and vbpi, at least 1.",
    ),
    _option(
        "--particles",
        type=setting("particles", whole=True),
        metavar="N",
        group=METHOD,
        help="Particles of each run (all methods but vaiphy; of vbpi, samples of its bound), at least 2.  [default: as needed]",
    ),
    _option(
        "--proposal",
        type=click.Choice(["guided", "pairwise", "paper", "authors"]),
        group=METHOD,
        help="How the method phi-csmc proposes trees; authors: as the authors of the paper ran it.  [default: guided]",
    ),
    _option(
        "--flow",
        type=click.Choice(["none", "planar", "realnvp"]),
        group=METHOD,
        help="Flow over branch lengths of the method vbpi.  [default: realnvp]",
    ),
    _option(
        "--base",
        type=click.Choice(["lognormal", "jc"]),
        group=METHOD,
        help="Branch lengths that the flow of vbpi starts from: log-normal, or the JC sampler's.  [default: lognormal]",
    ),
    _option(
        "--prior-only", is_flag=True, group=METHOD, help=("Leave the data out and sample the prior (log marginal likelihood 0).")
    ),
    _option(
        "--format",
        "format_",
        type=click.Choice(FORMAT_NAMES),
        metavar="NAME",
        group=INPUT,
        help="Format, if the content does not tell: " + ", ".join(FORMAT_NAMES) + ".",
    ),
    _option("--matchchar", metavar="CHAR", group=INPUT, help="Symbol that means 'as in the first sequence'."),
    _option("--missing", metavar="CHAR", group=INPUT, help="Symbol that means missing data, besides ? and -."),
    _option("--seqtype", type=click.Choice(SEQTYPES, case_sensitive=False), metavar="NAME", group=INPUT, help=SEQTYPE_HELP),
    _option(
        "--trees",
        type=setting("n_trees", whole=True),
        default=1000,
        show_default=True,
        metavar="N",
        group=OUTPUT,
        help="Posterior trees to write for other programs, resampled to equal weights: 1 to 1,000,000.",
    ),
    _option(
        "--safe-names",
        is_flag=True,
        group=OUTPUT,
        help="Give the taxa names that every program reads, with a table in PREFIX.names.tsv.",
    ),
    _option("-q", "--quiet", is_flag=True, group=OUTPUT, help="Print nothing but errors."),
]


def run_options(command: Any) -> Any:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
