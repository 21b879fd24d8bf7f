"""Markdown tables from cells; a cell that is not there says so, and one whose program is absent says why."""

from collections.abc import Iterable, Sequence
from math import isfinite, sqrt
from statistics import mean, stdev
from typing import Any

from benchmarks.cells import DONE

Record = dict[str, Any]
NOT_RUN = "not run"


class Cells:
    """The records on disk, found by experiment, data and method."""

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)

    def find(self, experiment: str, data: str | None = None, method: str | None = None) -> list[Record]:
        """All records of that kind that were tried."""
        return [
            r
            for r in self.records
            if r["experiment"] == experiment and data in (None, r["data"]) and method in (None, r["method"])
        ]

    def done(self, experiment: str, data: str | None = None, method: str | None = None) -> list[Record]:
        """Only those that were measured."""
        return [r for r in self.find(experiment, data, method) if r["status"] == DONE]

    def why_not(self, experiment: str, data: str | None = None, method: str | None = None) -> str:
        """Why there is no figure: the reason of the first that was tried, or that none was."""
        tried = [r for r in self.find(experiment, data, method) if r["status"] != DONE]
        return str(tried[0].get("reason", tried[0]["status"])) if tried else NOT_RUN


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], left: int = 1) -> str:
    """A Markdown table; the first `left` columns are aligned to the left."""
    lines = ["| " + " | ".join(head) + " |", "| " + " | ".join(["---"] * left + ["---:"] * (len(head) - left)) + " |"]
    lines += ["| " + " | ".join(str(value).replace("|", "\\|") for value in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def number(value: float | None, digits: int = 2) -> str:
    """A number with a proper minus sign; a dash if there is none."""
    if value is None or not isfinite(value):
        return "–"
    return f"{value:,.{digits}f}".replace("-", "−")


def short(value: float | None) -> str:
    """Three significant digits, for times and sizes."""
    if value is None or not isfinite(value):
        return "–"
    if value and abs(value) < 0.001:
        return f"{1e6 * value:.3g} µ"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean ± standard deviation (number of repeats)."""
    if not values:
        return NOT_RUN
    deviation = f" ± {number(stdev(values), digits)}" if len(values) > 1 else ""
    return f"{number(mean(values), digits)}{deviation} ({len(values)})"


def values_of(records: Sequence[Record]) -> list[float]:
    """Log evidences of cells, whether a cell holds one or all repeats."""
    found: list[float] = []
    for record in records:
        result = record["result"]
        found += result["values"] if "values" in result else [result["log_evidence"]] if "log_evidence" in result else []
    return found


def split_errors(found: dict[str, float], reference: dict[str, float], minimum: float = 0.05) -> tuple[float, float]:
    """Largest and root mean square difference of split frequencies, over splits at or above `minimum` in either."""
    names = {name for side in (found, reference) for name, value in side.items() if value >= minimum}
    gaps = [abs(found.get(name, 0.0) - reference.get(name, 0.0)) for name in names]
    return (max(gaps), sqrt(mean(gap * gap for gap in gaps))) if gaps else (0.0, 0.0)


def asdsf(found: dict[str, float], reference: dict[str, float], minimum: float = 0.1) -> float:
    """Average standard deviation of split frequencies between two samples, as MrBayes computes it."""
    names = {name for side in (found, reference) for name, value in side.items() if value >= minimum}
    return mean(abs(found.get(n, 0.0) - reference.get(n, 0.0)) / sqrt(2.0) for n in names) if names else 0.0


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """Slope of log y against log x by least squares."""
    from math import log

    if len(x) < 2:
        return float("nan")
    a, b = [log(v) for v in x], [log(v) for v in y]
    centre_a, centre_b = mean(a), mean(b)
    return sum((p - centre_a) * (q - centre_b) for p, q in zip(a, b)) / sum((p - centre_a) ** 2 for p in a)


def cpu_to_error(costs: Sequence[float], values: Sequence[float], error: float = 0.1) -> tuple[float, float, float]:
    """CPU seconds until the mean of independent runs has the standard error asked for: (least, best guess, most).

    A run costs c and its log evidence has standard deviation s; (s / error)^2 of them are needed, but no fewer than one. The
    range is that of s at 95 % from so few runs, by the chi-square distribution.
    """
    from scipy.stats import chi2

    n = len(values)
    if n < 2:
        return float("nan"), float("nan"), float("nan")
    cost, deviation = mean(costs), stdev(values)
    quantile = chi2.ppf([0.975, 0.025], n - 1)
    scales = [1.0] + [sqrt((n - 1) / q) for q in quantile]
    guess, least, most = (cost * max(1.0, float(scale * deviation / error) ** 2) for scale in scales)
    return least, guess, most
