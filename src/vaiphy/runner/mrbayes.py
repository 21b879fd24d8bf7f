"""`--mrbayes-block`: what a run takes from the mrbayes block of its NEXUS file."""

from dataclasses import dataclass

from vaiphy.alignment import Alignment
from vaiphy.errors import InputError
from vaiphy.formats.constraints import Wanted, wanted
from vaiphy.formats.mrbayes_block import Block, has_block, model_of_part, read_block, shared_in_mrbayes
from vaiphy.formats.newick import Names
from vaiphy.formats.partitions import Subset, alphabet_at, own_partition, read_partition

IGNORED = "the mrbayes block of this file is ignored; --mrbayes-block takes models, priors and constraints from it"


@dataclass(frozen=True)
class FromBlock:
    """Arguments of a run that the block gives, and what to say about them."""

    model: str | None
    parts: tuple[str, ...]
    part_rates: str
    length_prior: str
    outgroup: tuple[str, ...]
    constraint: Wanted | None
    warnings: tuple[str, ...]
    sentence: str


def from_block(data: Alignment) -> FromBlock:
    """What the mrbayes block of an alignment's file asks for. Raises `InputError` if there is none."""
    text = data.nexus
    if not text or not has_block(text):
        raise InputError(f"{data.source}: --mrbayes-block was given, but there is no mrbayes block in this file")
    block = read_block(text, data.taxa)
    subsets = own_partition(data)
    if block.partition and block.partition != "default":
        subsets = read_partition(block.partition, data, text)
    kinds = [alphabet_at(data, subset.sites) for subset in subsets]
    models = [model_of_part(block, k + 1, kind.name if kind else "DNA") for k, kind in enumerate(kinds)]
    parts = tuple(str(Subset(subset.name, model, subset.ranges)) for subset, model in zip(subsets, models))
    warnings = [*block.warnings]
    if shared := shared_in_mrbayes(block, models):
        names = ", ".join(shared)
        warnings.append(
            f"mrbayes block: MrBayes would give all parts the same {names}, since no unlink line says otherwise; "
            "here each part has its own"
        )
    constraint = _constraint(block, data, warnings)
    several = len(parts) > 1
    return FromBlock(
        None if several else models[0], parts if several else (), "free" if block.rates_free else "linked", block.length_prior,
        (block.outgroup,) if block.outgroup else (), constraint, tuple(warnings),
        "Model and priors are those of the mrbayes block, with MrBayes's defaults where it says nothing "
        "(nst=1 with free frequencies, equal rates, brlenspr=unconstrained:gammadir(1,0.1,1,1)).",
    )  # fmt: skip


def note(data: Alignment) -> str:
    """What to say if a file has a mrbayes block and nobody asked for it; "" if it has none."""
    return IGNORED if data.nexus and has_block(data.nexus) else ""


def _constraint(block: Block, data: Alignment, warnings: list[str]) -> Wanted | None:
    """The constraints that topologypr names."""
    hard: list[list[str]] = []
    negative: list[list[str]] = []
    partial = []
    for name in block.used:
        if name not in block.constraints:
            warnings.append(f"mrbayes block: topologypr names the constraint '{name}', which is not defined")
            continue
        found = block.constraints[name]
        if found.kind == "partial":
            partial.append(found)
        elif found.kind == "hard" and len(found.clade) >= data.n_taxa - 1:
            warnings.append(f"mrbayes block: the constraint '{name}' holds for every tree")
        else:
            (negative if found.kind == "negative" else hard).append(found.clade)
    if not partial:
        return wanted(data.taxa, None, hard, negative)
    if hard or negative or len({frozenset([*p.clade, *p.others]) for p in partial}) > 1:
        raise InputError(
            f"{data.source}: partial constraints can be used together only if they are about the same taxa, and not with others; "
            "leave some out of topologypr"
        )
    index = Names(data.taxa).index
    bound = frozenset(index[name] for name in [*partial[0].clade, *partial[0].others])
    required = tuple(frozenset(index[name] for name in p.clade) for p in partial)
    if any(not 2 <= len(clade) <= len(bound) - 2 for clade in required):
        raise InputError(f"{data.source}: a partial constraint needs two taxa or more on each side of its colon")
    return Wanted(required, (), bound)
