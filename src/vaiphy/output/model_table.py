"""A comparison of models as a table to read, as TSV and as JSON."""

from collections.abc import Iterator
from typing import Any

from vaiphy import __version__
from vaiphy.formats.results import json_text, table
from vaiphy.summary.model_comparison import ModelComparison


def columns(found: ModelComparison) -> dict[str, list[Any]]:
    """One entry for each model, by falling evidence."""
    rows = found.rows
    return {
        "model": [row.model for row in rows],
        "log_evidence": [row.log_evidence for row in rows],
        "std_error": [row.std_error for row in rows],
        "log_bayes_factor": (0.5 * found.twice_log_bayes_factors).tolist(),
        "twice_log_bayes_factor": found.twice_log_bayes_factors.tolist(),
        "twice_log_bayes_factor_error": found.errors.tolist(),
        "probability": found.probabilities.tolist(),
        "parameters": [row.n_parameters for row in rows],
        "converged": [str(row.converged).lower() for row in rows],
        "started_from": [row.started_from for row in rows],
        "seconds": [row.seconds for row in rows],
    }


def contents(found: ModelComparison, seed: int, source: str) -> Iterator[tuple[str, str]]:
    """Suffix and content of the result files."""
    yield ".tsv", table(columns(found))
    names = [name for name in columns(found) if name != "converged"]
    rows = zip(*(columns(found)[name] for name in names))
    records = [
        dict(zip(names, values)) | {"converged": row.converged, "reasons": list(row.reasons)}
        for values, row in zip(rows, found.rows)
    ]
    yield (
        ".json",
        json_text({"version": __version__, "input": source, "seed": seed, "verdict": found.verdict(), "models": records}),
    )


def text_table(found: ModelComparison) -> str:
    """The table for the terminal."""
    width = max(len("model"), *(len(row.model) for row in found.rows))
    lines = [f"{'model':<{width}}  parameters  log marginal likelihood      ln BF   2 ln BF        probability"]
    for row, factor, error, share in zip(found.rows, found.twice_log_bayes_factors, found.errors, found.probabilities):
        doubt = "" if row.converged else "  not converged"
        lines.append(
            f"{row.model:<{width}}  {row.n_parameters:10d}  {row.log_evidence:14.2f} ± {row.std_error:<6.2f} "
            f"{0.5 * factor:9.2f} {factor:9.2f} ± {error:<5.2f} {share:10.4f}{doubt}"
        )
    doubts = [f"{row.model}: {reason}" for row in found.rows for reason in row.reasons if not row.converged]
    foot = "Bayes factors (BF) compare the best model with each of the others; all models are equally likely a priori."
    return "\n".join([*lines, "", foot, found.verdict() + ".", *doubts])
