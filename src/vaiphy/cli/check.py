"""`vaiphy check`: read an alignment, complain about all that is wrong with it, else describe it."""

import json
from typing import TYPE_CHECKING, Any

import click

from vaiphy.cli.arguments import alignment_options, warn

if TYPE_CHECKING:
    from vaiphy.alignment import Alignment
    from vaiphy.summary.description import Description

BAR_WIDTH = 20


@click.command()
@alignment_options
@click.option("--json", "as_json", is_flag=True, help="Print the description as JSON.")
def check(
    alignment: str, format_: str | None, matchchar: str | None, missing: str | None, seqtype: str | None, as_json: bool
) -> None:
    """Check an alignment and describe it.

    ALIGNMENT is a FASTA, PHYLIP or NEXUS file of nucleotides, amino acids, binary or morphological characters (also
    gzipped; - for standard input) or DS1 to DS8. All problems are listed with file, line, taxon and column, and the exit
    status is then 2.

    \b
    vaiphy check primates.fasta
    """
    from vaiphy.alignment import too_few_taxa
    from vaiphy.errors import InputError
    from vaiphy.formats import read_alignment
    from vaiphy.summary.description import describe

    data = read_alignment(alignment, format_, matchchar, missing, seqtype)
    if message := too_few_taxa(data):
        raise InputError(message)
    found = describe(data)
    if as_json:
        click.echo(json.dumps(_record(data, found), indent=2))
    else:
        warn(tuple(text for text in data.warnings if "identical sequences" not in text))
        _print(data, found)


def _record(data: "Alignment", found: "Description") -> dict[str, Any]:
    """Everything `check` knows, for machines; fractions are between 0 and 1."""
    return {
        "source": data.source,
        "seqtype": data.alphabet.name,
        "states": data.alphabet.n_states,
        "taxa": found.n_taxa,
        "sites": found.n_sites,
        "patterns": found.n_patterns,
        "constant_sites": found.n_constant,
        "parsimony_informative_sites": found.n_informative,
        "singleton_sites": found.n_singleton,
        "sites_without_data": found.n_empty,
        "ambiguity_codes": found.n_ambiguous,
        "missing_fraction": found.missing_fraction,
        "base_composition" if data.alphabet.is_nucleotides else "composition": dict(
            zip(data.alphabet.states, found.composition.tolist())
        ),
        "identical_sequences": [list(group) for group in found.identical],
        "per_taxon": [
            {"taxon": taxon, "missing_fraction": missing, "gc_fraction": gc if gc == gc else None}
            for taxon, missing, gc in zip(data.taxa, found.missing.tolist(), found.gc.tolist())
        ],
        "warnings": list(data.warnings),
    }


def _print(data: "Alignment", found: "Description") -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from vaiphy.datasets import DATASETS

    console = Console(highlight=False)
    console.print(f"[bold]{escape(data.source)}[/bold]: {found.n_taxa} taxa, {found.n_sites} sites{_kind(data)}", soft_wrap=True)
    if data.source in DATASETS:
        record = DATASETS[data.source]
        ids = record.legacy_id + (f", now {record.current_id}" if record.current_id else "")
        console.print(f"{record.content}; TreeBASE matrix {ids}\n{record.citation}", style="dim")

    nucleotides = data.alphabet.is_nucleotides
    overview = Table.grid(padding=(0, 2))
    overview.add_column()
    overview.add_column(justify="right")
    overview.add_column(justify="right")
    overview.add_column(style="dim")
    for label, count, note in (
        ("Distinct site patterns", found.n_patterns, "running time grows with these"),
        ("Constant sites", found.n_constant, f"{found.n_empty} of them without any data" if found.n_empty else ""),
        ("Parsimony-informative sites", found.n_informative, f"2+ {'bases' if nucleotides else 'states'}, each in 2+ taxa"),
        ("Singleton sites", found.n_singleton, "variable, not informative"),
    ):
        overview.add_row(label, f"{count}", f"{count / found.n_sites:.1%}", note)
    cells = found.n_taxa * found.n_sites
    lost = round(found.missing_fraction * cells)
    overview.add_row("Gaps and missing data", f"{lost}", f"{found.missing_fraction:.1%}", "of all characters")
    overview.add_row("Ambiguity codes", f"{found.n_ambiguous}", f"{found.n_ambiguous / cells:.1%}", "of all characters")
    console.print()
    console.print(overview)
    shares = "  ".join(f"{state} {share:.1%}" for state, share in zip(data.alphabet.states, found.composition))
    if not data.blocks:
        console.print(f"\n{'Base composition' if nucleotides else 'Composition':<19}  {shares}", soft_wrap=True)
    _print_identical(console, found)

    # The figures keep their width however long the names are, and a long name goes on in the next line.
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Taxon", overflow="fold")
    table.add_column("Missing", justify="right", min_width=7)
    table.add_column("", no_wrap=True, min_width=BAR_WIDTH if console.width >= 70 else 0, max_width=BAR_WIDTH)
    table.add_column("GC" if nucleotides else "", justify="right", min_width=6 if nucleotides else 0)
    block = "█" if console.encoding.startswith("utf") else "#"
    for taxon, missing, gc in zip(data.taxa, found.missing.tolist(), found.gc.tolist()):
        bar = block * round(missing * BAR_WIDTH)
        style = "red" if missing > 0.5 else ""
        table.add_row(escape(taxon), f"{missing:.1%}", f"{bar:<{BAR_WIDTH}}", _gc(gc, nucleotides), style=style)
    console.print()
    console.print(table)


def _kind(data: "Alignment") -> str:
    """What the characters are, where they are not nucleotides."""
    states = f", {data.alphabet.n_states} states" if data.alphabet.name == "MORPH" else ""
    if data.blocks:
        return ": " + ", ".join(f"{alphabet.name} {start + 1}-{stop}" for start, stop, alphabet in data.blocks)
    return "" if data.alphabet.is_nucleotides else f" of {data.alphabet.kind}{states}"


def _gc(share: float, nucleotides: bool) -> str:
    return f"{share:.1%}" if share == share else "-" if nucleotides else ""


def _print_identical(console: Any, found: "Description") -> None:
    from rich.markup import escape

    if not found.identical:
        console.print("Identical sequences  none")
        return
    n_copies = sum(len(group) - 1 for group in found.identical)
    which = "1 taxon repeats another one" if n_copies == 1 else f"{n_copies} taxa repeat another one"
    console.print(f"Identical sequences  {which}:", style="yellow")
    for group in found.identical:
        console.print(f"  {escape(', '.join(group))}", soft_wrap=True)
