"""PREFIX.html: one page that opens from disk, with everything in it.

Names of taxa and files are untrusted text: the template escapes them, the data block is JSON without `<`, and the page's
own policy allows only the scripts whose hashes it lists, and no network.
"""

import json
import re
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from pathlib import PurePath
from typing import Any

import numpy as np
from jinja2 import DictLoader, Environment
from markupsafe import Markup

from vaiphy.formats.names import visible
from vaiphy.formats.results import member_list
from vaiphy.output import svg, words
from vaiphy.output.analysis import Analysis
from vaiphy.output.densities import drawings
from vaiphy.summary.consensus import summary_tree
from vaiphy.summary.description import describe
from vaiphy.summary.posterior import Posterior, SplitTable
from vaiphy.trees.tree import Tree

#: Rows of the table of splits, topologies drawn side by side, and taxa up to which these carry names.
MAX_SPLITS, MAX_TOPOLOGIES, MAX_LABELLED = 250, 6, 80
EVIDENCE = "log marginal likelihood"
#: Parameters drawn at once; the densities of more unfold on request.
MAX_DENSITIES = 24

_ASSETS = files("vaiphy.output") / "assets"
_LIBRARIES = ("lodash", "underscore", "phylotree")


def page(analysis: Analysis) -> str:
    """The page of a finished run."""
    scripts = _scripts()
    policy = " ".join(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in scripts)
    environment = Environment(
        loader=DictLoader({"page": _asset("page.html.j2")}),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    environment.filters["figure"] = _figure
    return environment.get_template("page").render(
        analysis=analysis,
        words=words,
        posterior=analysis.posterior,
        title=PurePath(analysis.provenance.file).name or analysis.provenance.file,
        n_common=0 if analysis.posterior is None else _n_common(analysis.posterior.splits),
        model_sentences=words.model_sentences(analysis),
        statement=words.prior_sentences(analysis),
        headline=words.headline(analysis),
        verdict=words.verdict(analysis),
        sentence=words.trees_sentence(analysis),
        methods=words.methods_paragraph(analysis),
        policy=policy,
        scripts=[Markup(text) for text in scripts],
        style=Markup(_asset("page.css")),
        data=Markup(_json(_data(analysis))),
        tree_svg=Markup(svg.phylogram(analysis.consensus)) if analysis.consensus is not None else None,
        splits=[] if analysis.posterior is None else _split_rows(analysis.posterior.splits),
        n_splits=0 if analysis.posterior is None else len(analysis.posterior.splits) - analysis.posterior.splits.n_trivial,
        topologies=[] if analysis.posterior is None else _topologies(analysis, analysis.posterior),
        densities=_densities(analysis),
        charts=[(title, Markup(chart)) for title, chart in _charts(analysis) if chart],
        facts=_alignment_facts(analysis),
        licences=[(name, _asset(f"vendor/{name}.LICENSE.txt")) for name in (*_LIBRARIES, "d3")],
    )


def _scripts() -> list[str]:
    lodash, underscore, phylotree = (_asset(f"vendor/{name}.min.js") for name in _LIBRARIES)
    # phylotree.js looks for lodash under the name _$1 and for underscore under _.
    return [
        lodash,
        "window._$1 = _.noConflict();",
        underscore,
        phylotree,
        *(_asset(name) for name in ("graph.js", "save.js", "page.js")),
    ]


def _data(analysis: Analysis) -> dict[str, Any]:
    """The consensus tree as a graph: branch k joins vertex k to another one."""
    tree, posterior = analysis.consensus, analysis.posterior
    if tree is None or posterior is None:
        return {"taxa": [], "branches": [], "splits": []}
    row = posterior.splits.row
    branches = []
    for vertex, above in tree.edges():
        k = row[tree.splits[vertex]]
        branches.append(
            {
                "id": vertex,
                "to": above,
                "length": _known(posterior.splits.mean[k]),
                "low": _known(posterior.splits.lower[k]) if words.interval(posterior.splits, k) else None,
                "high": _known(posterior.splits.upper[k]) if words.interval(posterior.splits, k) else None,
                "support": None if vertex < tree.n_taxa else float(posterior.splits.support[k]),
                "sd": _known(posterior.splits.deviation[k]),
                "split": k,
            }
        )
    return {
        "file": re.sub(r"[^A-Za-z0-9_.-]", "_", PurePath(analysis.provenance.file).name) or "tree",
        "taxa": [visible(name) for name in tree.taxa],
        "root": tree.root,
        "names": [tree.name(v) for v in range(tree.n_vertices)],
        "branches": branches,
        "splits": {str(k): _smaller_side(posterior.splits, k)[1] for k in _listed(posterior.splits)},
    }


def _split_rows(table: SplitTable) -> list[dict[str, Any]]:
    rows = []
    for k in _listed(table):
        names, _ = _smaller_side(table, k)
        rows.append(
            {
                "index": k,
                "support": float(table.support[k]),
                "sd": float(table.deviation[k]),
                "mean": float(table.mean[k]),
                "interval": words.interval(table, k).replace("-", " to "),
                "rare": bool(table.support[k] < words.MIN_SUPPORT),
                "size": len(names),
                "taxa": ", ".join(names[:12]) + (f", … ({len(names)} taxa)" if len(names) > 12 else ""),
                "all": member_list(names),
            }
        )
    return rows


def _n_common(table: SplitTable) -> int:
    return int(np.count_nonzero(table.support[table.n_trivial :] >= words.MIN_SUPPORT))


def _listed(table: SplitTable) -> range:
    return range(table.n_trivial, min(len(table), table.n_trivial + MAX_SPLITS))


def _smaller_side(table: SplitTable, row: int) -> tuple[list[str], list[int]]:
    inside = [i for i in range(len(table.taxa)) if table.splits[row] >> i & 1]
    if 2 * len(inside) > len(table.taxa):
        chosen = set(inside)
        inside = [i for i in range(len(table.taxa)) if i not in chosen]
    return [table.taxa[i] for i in inside], inside


def _topologies(analysis: Analysis, posterior: Posterior) -> list[dict[str, Any]]:
    known = posterior.majority.topology
    labels = len(posterior.taxa) <= MAX_LABELLED
    out = []
    common = max(1, int(np.count_nonzero(posterior.topologies.probability >= words.MIN_SUPPORT)))
    for rank in range(min(MAX_TOPOLOGIES, common)):
        splits = posterior.topologies.topologies[rank]
        tree: Tree = summary_tree(posterior.taxa, sorted(splits), dict.fromkeys(splits, 1.0), {})
        out.append(
            {
                "rank": rank + 1,
                "probability": float(posterior.topologies.probability[rank]),
                "different": len(splits - known),
                "svg": Markup(svg.cladogram(analysis.prepared(tree), known, labels=labels)),
            }
        )
    return out


def _densities(analysis: Analysis) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The densities of parameters that are shown, and those that unfold."""
    found = [
        {"name": row.name, "meaning": row.meaning, "figures": row.figures, "svg": Markup(row.svg)} for row in drawings(analysis)
    ]
    return found[:MAX_DENSITIES], found[MAX_DENSITIES:]


def _charts(analysis: Analysis) -> list[tuple[str, str]]:
    """Title and drawing of each chart; drawings may be empty."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for point in analysis.outcome.trace:
        curves.setdefault(point.stage, []).append((point.round, point.value))
    charts = [("Bound or estimate of the log marginal likelihood, round by round", svg.line_chart(curves, "round", EVIDENCE))]
    if analysis.settings.method == "posterior":
        title = "Log of likelihood times prior of each replicate's trees (median), sweep by sweep, until they have settled"
        charts = [(title, svg.line_chart(curves, "sweep", "log posterior"))]
    runs = analysis.estimate.runs
    if runs:
        errors = analysis.estimate.run_errors
        title = "Log marginal likelihood of the single runs"
        title += ", with bars of two standard errors to either side" if errors else ""
        charts.append((title, svg.estimates(runs, errors, "run", EVIDENCE)))
    sample = analysis.outcome.sample if analysis.outcome.sample is not None else analysis.outcome.labelled
    if sample is not None:
        relative = np.log10(np.maximum(sample.weights * sample.n_samples, 1e-12))
        charts.append(
            (
                "Weights of the trees, relative to their average (a long right tail is bad)",
                svg.histogram(relative, "log10 of weight / average", "trees", around=(-0.5, 0.5)),
            )
        )
        share = np.cumsum(np.sort(sample.weights)[::-1])
        steps = np.unique(np.linspace(0, len(share) - 1, 200).astype(int))
        curve = [(100.0 * (i + 1) / len(share), float(share[i])) for i in steps]
        charts.append(("Share of the weight in the heaviest trees", svg.line_chart({"": curve}, "% of trees", "share")))
    if analysis.posterior is not None and analysis.posterior.n_replicates > 1:
        table = analysis.posterior.splits
        inner = table.replicate_support[:, table.n_trivial :]
        shown = inner[:, (inner > 0.01).any(axis=0)][:, :1500]
        others = [(float(a), float(b)) for row in shown[1:] for a, b in zip(shown[0], row)]
        charts.append(("Split supports of run 1 and of the others", svg.scatter(others, "run 1", "others", diagonal=True)))
    return charts


def _alignment_facts(analysis: Analysis) -> dict[str, Any]:
    patterns = analysis.patterns
    found = describe(patterns)
    missing = sorted(zip(found.missing.tolist(), patterns.taxa), key=lambda pair: (-pair[0], pair[1]))
    return {
        "found": found,
        "composition": list(zip(patterns.alphabet.states, found.composition.tolist())),
        "missing": [(_percent(share), name) for share, name in missing[:5] if share >= 0.005],
    }


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def _known(value: float) -> float | None:
    return float(value) if isfinite(value) else None


def _figure(value: float, digits: int = 4) -> str:
    return f"{value:.{digits}f}" if isfinite(value) else "–"


def _json(value: Any) -> str:
    """JSON that cannot end the script element that holds it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
