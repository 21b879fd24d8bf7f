"""PREFIX.vaiphy: the report to read."""

from math import isfinite

import numpy as np

from vaiphy.output import words
from vaiphy.output.analysis import Analysis
from vaiphy.output.drawing import draw
from vaiphy.summary.posterior import Posterior
from vaiphy.summary.predictive import N_DRAWS
from vaiphy.trees.tree import Tree

#: Rows of the tables; the files have all of them.
MAX_SPLITS, MAX_TOPOLOGIES = 60, 10


def text_report(analysis: Analysis, files: dict[str, str]) -> str:
    """The whole report; `files` maps the names of the other files to what is in them."""
    parts = [
        f"VaiPhy {analysis.provenance.version}: {words.METHOD_NAMES[analysis.settings.method]}",
        _section("RESULT", _result(analysis)),
        *([_section("MODEL", _model(analysis))] if analysis.predictive else []),
        _section("INPUT", _input(analysis)),
        _section("MODEL AND PRIORS", "\n".join(_wrapped(line, "  ") for line in words.prior_sentences(analysis))),
        _section("MARGINAL LIKELIHOOD", _evidence(analysis)),
    ]
    if analysis.parameters:
        parts.append(_section("PARAMETERS", _parameters(analysis)))
    posterior = analysis.posterior
    if posterior is not None and analysis.consensus is not None:
        parts += [
            _section("CONSENSUS TREE", _consensus(analysis)),
            _section("SPLITS", _splits(posterior)),
            _section("TOPOLOGIES", _topologies(posterior)),
        ]
    paragraph, citations = words.methods_paragraph(analysis)
    width = max(map(len, files), default=0)
    parts += [
        _section("METHODS PARAGRAPH", _wrapped(paragraph) + "\n\n" + "\n".join(_wrapped(c, "  ") for c in citations)),
        _section("FILES", "\n".join(f"{name:{width}}  {what}" for name, what in files.items())),
        _section("TO REPRODUCE", f"{analysis.provenance.command}\n(seed {analysis.settings.seed})"),
    ]
    return "\n".join(parts)


def posterior_report(posterior: Posterior, consensus: Tree, n_files: int) -> str:
    """The report on trees that come from files."""
    table = posterior.topologies
    length, low, high = posterior.tree_length
    head = [
        f"{words.count(posterior.n_samples, 'tree')} on {len(posterior.taxa)} taxa from {words.count(n_files, 'file')}"
        + (f" (effective {posterior.effective_size:.0f})" if posterior.effective_size < 0.999 * posterior.n_samples else ""),
        f"{words.count(len(table), 'topology', 'topologies')}; the most probable one has probability {table.probability[0]:.4f}",
    ]
    if isfinite(length):
        interval = f" (95 % interval {low:.4f} to {high:.4f})" if posterior.effective_size >= words.MIN_DRAWS else ""
        head.append(f"Tree length {length:.4f}{interval}")
    parts = [
        "\n".join(head),
        _section("CONSENSUS TREE", "Majority rule, support in per cent.\n\n" + draw(consensus)),
        _section("SPLITS", _splits(posterior)),
        _section("TOPOLOGIES", _topologies(posterior)),
    ]
    return "\n".join(parts)


def _section(title: str, body: str) -> str:
    return f"\n{title}\n{'-' * len(title)}\n\n{body}\n"


def _result(analysis: Analysis) -> str:
    lines = [words.headline(analysis) + ".", words.verdict(analysis)]
    lines += [f"  - {reason}" for reason in (*analysis.outcome.reasons, *words.grounds(analysis))]
    lines += [words.trees_sentence(analysis)]
    lines += [f"Warning: {warning}" for warning in analysis.warnings]
    return "\n".join(_wrapped(line, "    " if line.startswith("  -") else "") for line in lines)


def _model(analysis: Analysis) -> str:
    head, *details = words.model_sentences(analysis)
    lines = [head, *(f"  - {sentence}" for sentence in details)]
    lines.append(f"(Posterior predictive checks: the data beside {N_DRAWS} alignments simulated from the posterior.)")
    return "\n".join(_wrapped(line, "    " if line.startswith("  -") else "") for line in lines)


def _input(analysis: Analysis) -> str:
    patterns, source = analysis.patterns, analysis.provenance
    return (
        f"File:      {source.file}\nSHA-256:   {source.sha256}\n"
        f"Alignment: {patterns.n_taxa} taxa, {patterns.n_sites} sites, {patterns.n_patterns} distinct patterns, "
        f"{100 * analysis.missing_share:.1f} % gaps or missing data" + words.parts(analysis)
    )


def _evidence(analysis: Analysis) -> str:
    lines = [
        _wrapped(
            "The probability of the alignment under the model, with trees and branch lengths integrated out (also called the "
            "evidence). All figures are natural logarithms."
        ),
        "",
    ]
    for name, value in analysis.outcome.estimates.items():
        lines.append(f"{words.ESTIMATE_NAMES.get(name, name)}: {words.number(value)}")
        lines.append(f"    target:     {value.target}")
        lines.append(f"    samples:    {value.n_samples}, effective {value.ess:.0f}")
        if isfinite(value.pareto_k):
            lines.append(f"    Pareto k:   {value.pareto_k:.2f} (above 0.7 the estimate is unreliable)")
        if value.runs:
            lines.append("    runs:       " + "  ".join(f"{x:.3f}" for x in value.runs))
    if isfinite(analysis.outcome.elbo):
        lines.append(f"Lower bound (ELBO) of the final proposal: {analysis.outcome.elbo:.2f}")
    return "\n".join(lines)


def _parameters(analysis: Analysis) -> str:
    rows = (*analysis.parameters, *analysis.tree_parameters)
    width = max(len(row.name) for row in rows)
    head = f"{'':{width}}  {'mean':>11}  {'sd':>10}  {'median':>11}  {'95 % interval':>24}  {'95 % HPD':>24}  {'ESS':>6}"
    lines = [head]
    for k, row in enumerate(rows):
        if k == len(analysis.parameters):
            lines.append("")
        figures = f"{row.name:{width}}  {row.mean:11.6g}  {row.sd:10.4g}  {row.median:11.6g}"
        intervals = (f"{low:.5g} to {high:.5g}" for low, high in ((row.lower, row.upper), (row.hpd_lower, row.hpd_upper)))
        lines.append(figures + "".join(f"  {interval:>24}" for interval in intervals) + f"  {row.ess:6.0f}")
    note = "ESS: effective number of independent draws. LnL: log-likelihood, LnPr: log-prior, TL: tree length."
    return "\n".join([*lines, "", note])


def _consensus(analysis: Analysis) -> str:
    assert analysis.consensus is not None
    rooting = f"beside {', '.join(analysis.settings.outgroup)}" if analysis.settings.outgroup else "at the first taxon"
    return (
        "Majority-rule consensus, mean branch lengths, support in per cent. The tree is unrooted; it is drawn\n"
        f"with its root {rooting}.\n\n" + draw(analysis.consensus)
    )


def _splits(posterior: Posterior) -> str:
    table = posterior.splits
    common = int(np.count_nonzero(table.support[table.n_trivial :] >= words.MIN_SUPPORT))
    rows = range(table.n_trivial, table.n_trivial + min(common, MAX_SPLITS))
    lines = ["support   sd      length  (95 % interval)      taxa on the smaller side"]
    for row in rows:
        members = table.members(row)
        if 2 * len(members) > len(table.taxa):
            inside = set(members)
            members = tuple(name for name in table.taxa if name not in inside)
        listed = ", ".join(members[:8]) + (f", ... ({len(members)} taxa)" if len(members) > 8 else "")
        deviation = f"{table.deviation[row]:.4f}" if isfinite(table.deviation[row]) else "-"
        interval = words.interval(table, row) or "too few trees"
        lines.append(f"{table.support[row]:.4f}  {deviation:6}  {table.mean[row]:.5f} {f'({interval})':19}  {listed}")
    left = len(table) - table.n_trivial - len(rows)
    if left > 0:
        lines.append(f"... and {left} more, in the .splits.tsv file as far as they have a support of 0.001")
    if isfinite(posterior.asdsf):
        lines += ["", f"Average standard deviation of split frequencies: {posterior.asdsf:.4f}"]
    return "\n".join(lines)


def _topologies(posterior: Posterior) -> str:
    table = posterior.topologies
    total, lines = 0.0, ["  rank  probability  cumulative"]
    for rank in range(min(len(table), MAX_TOPOLOGIES)):
        total += table.probability[rank]
        lines.append(f"{rank + 1:6d}  {table.probability[rank]:11.4f}  {min(total, 1.0):10.4f}")
    if len(table) > MAX_TOPOLOGIES:
        lines.append(f"   ... and {len(table) - MAX_TOPOLOGIES} more")
    for level in (0.5, 0.95):
        lines.append(f"{100 * level:.0f} % credible set: {words.count(table.credible_set(level), 'topology', 'topologies')}")
    return "\n".join(lines)


def _wrapped(text: str, indent: str = "") -> str:
    import textwrap

    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
