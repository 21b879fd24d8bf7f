"""`vaiphy check`: read an alignment, complain about all that is wrong with it, else describe it."""

import json
from typing import TYPE_CHECKING, Any

import click

from vaiphy.cli.arguments import alignment_options, warn

if TYPE_CHECKING:
    from vaiphy.alignment import Alignment
    from vaiphy.description import Description

BAR_WIDTH = 20


@click.command()
@alignment_options
@click.option("--json", "as_json", is_flag=True, help="Print the description as JSON.")
def check(alignment: str, format_: str | None, matchchar: str | None, missing: str | None, as_json: bool) -> None:
    """Check an alignment and describe it.

    ALIGNMENT is a FASTA, PHYLIP or NEXUS file of nucleotides (also gzipped; - for standard input) or DS1 to DS8. All
    problems are listed with file, line, taxon and column, and the exit status is then 2.
    """
    from vaiphy.description import describe
    from vaiphy.formats import read_alignment

    data = read_alignment(alignment, format_, matchchar, missing)
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
        "taxa": found.n_taxa,
        "sites": found.n_sites,
        "patterns": found.n_patterns,
        "constant_sites": found.n_constant,
        "parsimony_informative_sites": found.n_informative,
        "singleton_sites": found.n_singleton,
        "sites_without_data": found.n_empty,
        "ambiguity_codes": found.n_ambiguous,
        "missing_fraction": found.missing_fraction,
        "base_composition": dict(zip("ACGT", found.composition.tolist())),
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
    console.print(f"[bold]{escape(data.source)}[/bold]: {found.n_taxa} taxa, {found.n_sites} sites", soft_wrap=True)
    if data.source in DATASETS:
        record = DATASETS[data.source]
        ids = record.legacy_id + (f", now {record.current_id}" if record.current_id else "")
        console.print(f"{record.content}; TreeBASE matrix {ids}\n{record.citation}", style="dim")

    overview = Table.grid(padding=(0, 2))
    overview.add_column()
    overview.add_column(justify="right")
    overview.add_column(justify="right")
    overview.add_column(style="dim")
    for label, count, note in (
        ("Distinct site patterns", found.n_patterns, "running time grows with these"),
        ("Constant sites", found.n_constant, f"{found.n_empty} of them without any data" if found.n_empty else ""),
        ("Parsimony-informative sites", found.n_informative, "2+ bases, each in 2+ taxa"),
        ("Singleton sites", found.n_singleton, "variable, not informative"),
    ):
        overview.add_row(label, f"{count}", f"{count / found.n_sites:.1%}", note)
    cells = found.n_taxa * found.n_sites
    lost = round(found.missing_fraction * cells)
    overview.add_row("Gaps and missing data", f"{lost}", f"{found.missing_fraction:.1%}", "of all characters")
    overview.add_row("Ambiguity codes", f"{found.n_ambiguous}", f"{found.n_ambiguous / cells:.1%}", "of all characters")
    console.print()
    console.print(overview)
    bases = "  ".join(f"{base} {share:.1%}" for base, share in zip("ACGT", found.composition))
    console.print(f"\nBase composition     {bases}")
    _print_identical(console, found)

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Taxon", no_wrap=True, overflow="ellipsis")
    table.add_column("Missing", justify="right")
    table.add_column("", no_wrap=True)
    table.add_column("GC", justify="right")
    block = "█" if console.encoding.startswith("utf") else "#"
    for taxon, missing, gc in zip(data.taxa, found.missing.tolist(), found.gc.tolist()):
        bar = block * round(missing * BAR_WIDTH)
        style = "red" if missing > 0.5 else ""
        table.add_row(escape(taxon), f"{missing:.1%}", f"{bar:<{BAR_WIDTH}}", f"{gc:.1%}" if gc == gc else "-", style=style)
    console.print()
    console.print(table)


def _print_identical(console: Any, found: "Description") -> None:
    from rich.markup import escape

    if not found.identical:
        console.print("Identical sequences  none")
        return
    n_copies = sum(len(group) - 1 for group in found.identical)
    console.print(f"Identical sequences  {n_copies} taxa repeat another one:", style="yellow")
    for group in found.identical:
        console.print(f"  {escape(', '.join(group))}", soft_wrap=True)
