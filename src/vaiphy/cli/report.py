"""`vaiphy report`: the page of a finished run, made again from its checkpoint."""

from pathlib import Path

import click


@click.command()
@click.argument("prefix", metavar="PREFIX")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the page.  [default: PREFIX.html]",
)
@click.option("--text", is_flag=True, help="Print the text report instead of writing a page.")
def report(prefix: str, output: Path | None, text: bool) -> None:
    """Write the report of a finished run as one HTML page.

    PREFIX is that of `vaiphy run`; only PREFIX.ckpt is read.

    \b
    vaiphy report primates.fasta
    """
    from vaiphy.output.files import written_files
    from vaiphy.output.page import page
    from vaiphy.output.text import text_report
    from vaiphy.runner.checkpoint import write_file
    from vaiphy.runner.saved import load_analysis, with_suffix

    base = Path(prefix.removesuffix(".ckpt"))
    analysis = load_analysis(base)
    if text:
        click.echo(text_report(analysis, written_files(analysis, base.name)))
        return
    target = output or with_suffix(base, ".html")
    write_file(target, page(analysis))
    click.echo(f"written: {target}", err=True)
