"""`vaiphy figure`: figures of the method, to a file whose ending says the format (PNG, SVG or PDF)."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vaiphy.cli.arguments import need_matplotlib
from vaiphy.cli.numbers import Number, Whole, setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")


@click.group()
def figure() -> None:
    """Draw figures of the method.

    \b
    vaiphy figure jc-sampler jc.svg
    """


@figure.command("jc-sampler", short_help="The JC sampler of branch lengths.")
@click.argument("output", type=click.Path(dir_okay=False))
@click.option(
    "--sites", default=2000, show_default=True, type=Whole(1, 10**9), metavar="N",
    help="Number of sites, M: 1 to 1,000,000,000.",
)  # fmt: skip
@click.option(
    "-c", "--changes", multiple=True, type=Number(0, 10**9), metavar="X",
    help="Changed sites: 0 to 1,000,000,000 (repeat for several).",
)  # fmt: skip
@click.option(
    "--samples",
    default=5000,
    show_default=True,
    type=Whole(1, 10**7),
    metavar="N",
    help="Samples for each number of changed sites: 1 to 10,000,000.",
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    type=setting("seed", whole=True),
    metavar="N",
    help="Seed of the random numbers: 0 to 2^63 - 1.",
)
def jc_sampler(output: str, sites: int, changes: tuple[float, ...], samples: int, seed: int) -> None:
    """Branch lengths drawn directly from the Jukes-Cantor model (the paper's Figure 1).

    \b
    vaiphy figure jc-sampler jc.svg --sites 500
    """
    import numpy as np

    from vaiphy.errors import InputError
    from vaiphy.output.figures import jc_sampler_figure

    _check_format(output)
    chosen = changes or tuple(sites * share for share in (0.0125, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5))
    if max(chosen) > sites:
        raise InputError(f"--changes {max(chosen):g} is more than the {sites} sites there are")
    _save(jc_sampler_figure(sites, chosen, samples, rng=np.random.default_rng(seed)), output)


@figure.command("slantis", short_help="One tree drawn by SLANTIS.")
@click.argument("output", type=click.Path(dir_okay=False))
@click.option("--vertices", default=5, show_default=True, type=Whole(3, 8), metavar="N", help="Vertices of the graph: 3 to 8.")
@click.option(
    "--seed",
    default=404,
    show_default=True,
    type=setting("seed", whole=True),
    metavar="N",
    help="Seed of the random numbers, that is weights and decisions: 0 to 2^63 - 1.",
)
def slantis(output: str, vertices: int, seed: int) -> None:
    """One tree drawn by SLANTIS on a small random graph, decision by decision.

    \b
    vaiphy figure slantis slantis.png --vertices 4
    """
    import numpy as np

    from vaiphy.output.figures import example_weights, slantis_figure

    _check_format(output)
    rng = np.random.default_rng(seed)
    _save(slantis_figure(example_weights(rng, vertices), rng=rng), output)


def _check_format(output: str) -> None:
    from vaiphy.errors import InputError

    if Path(output).suffix.lower() not in FORMATS:
        raise InputError(f"{output}: the name must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")
    need_matplotlib()


def _save(drawn: "Figure", output: str) -> None:
    drawn.savefig(output, dpi=150)
    click.echo(f"Wrote {output}", err=True)
