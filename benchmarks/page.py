"""docs/benchmarks.md from the raw results: every figure in it comes from a record under benchmarks/results."""

from collections.abc import Callable
from pathlib import Path

from benchmarks import claims, evidence_sections, growth_sections, method_sections, plots, ratios, sections, systems_sections
from benchmarks.cells import RESULTS, ROOT, load_all
from benchmarks.records import tidy
from benchmarks.tables import Cells, number, table

PAGE = ROOT / "docs" / "benchmarks.md"


def write(results: Path = RESULTS, page: Path = PAGE) -> None:
    """Write the page and its plots, and renew the figures in README.md and the other pages; results are tidied first."""
    for folder in (results, results / "quick"):
        tidy(folder)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(render(results, page.parent / "figures"))
    if page == PAGE:
        claims.renew(Cells(load_all(results)))


def render(results: Path, figures: Path) -> str:
    """The page's text; plots go to `figures`."""
    figures.mkdir(parents=True, exist_ok=True)
    quick = results / "quick"
    everything = Cells(load_all(results))
    parts: list[str] = [
        sections.introduction(everything),
        sections.promises(everything),
        sections.kernels(everything),
        evidence_sections.table_one(everything),
        evidence_sections.accuracy(
            everything, plot(figures / "bench-accuracy.svg", lambda path: _accuracy_plot(everything, path))
        ),
        method_sections.methods(everything),
        systems_sections.systems(everything),
        sections.figures(
            everything, _jc_plot(figures), plot(figures / "bench-cores.svg", lambda path: _cores_plot(everything, path))
        ),
        sections.memory(everything),
        growth_sections.growth(
            everything,
            plot(figures / "bench-growth.svg", lambda path: plots.growth(growth_sections.growth_series(everything), path)),
        ),
        growth_sections.truth(everything),
        regressions(Cells(load_all(quick)) if quick.is_dir() else Cells([])),
        sections.settings(everything),
    ]
    return "\n".join(parts)


def plot(path: Path, make: Callable[[Path], bool]) -> str:
    """The plot's name for the page, or "" if there is nothing to plot."""
    return path.name if make(path) else ""


def regressions(quick: Cells) -> str:
    """The ratios of the last quick run beside the baseline."""
    text = (
        "## Regressions\n\n`make bench-quick` measures these ratios anew (each against something timed in the same "
        "process, the better of up to\n"
        "three tries) and fails when one is more than 30 % worse than `benchmarks/baseline.json`.\n\n"
    )
    baseline = ratios.read_baseline()
    if not baseline:
        return text + "There is no baseline yet (`python -m benchmarks --quick --new-baseline`).\n"
    found = quick.done("ratios")
    now = found[0]["result"]["ratios"] if found else {}
    rows = []
    for name, before in baseline.items():
        value = now.get(name)
        better = "more" if name in ratios.MORE_IS_BETTER else "less"
        worse = "–" if value is None else f"{100 * ratios.change(name, value, before):+.0f} %".replace("-", "−")
        rows.append([name, better, number(before, 3), number(value, 3), worse])
    return text + table(["ratio", "better is", "baseline", "last quick run", "worse by"], rows, left=2)


def _accuracy_plot(cells: Cells, path: Path) -> bool:
    from benchmarks.plan import ACCURACY_DATA

    return plots.accuracy(
        cells, ACCURACY_DATA, path, {name: evidence_sections.reference(cells, name)[0] for name in ACCURACY_DATA}
    )


def _cores_plot(cells: Cells, path: Path) -> bool:
    return plots.cores(cells, sections.CORE_METHODS, path)


def _jc_plot(figures: Path) -> str:
    """The JC sampler's figure; documented elsewhere too, so it is drawn only where it is missing."""
    path = figures / "jc-sampler.svg"
    if not path.is_file():
        plots.jc_sampler(path)
    return path.name
