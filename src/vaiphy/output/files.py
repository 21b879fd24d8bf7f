"""All files of a run: their names, what is in them, and their content."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import numpy as np

from vaiphy.formats import beast, results
from vaiphy.formats.newick import quoted
from vaiphy.interop.tables import split_columns
from vaiphy.output import words
from vaiphy.output.analysis import Analysis
from vaiphy.output.partitions import partition_files
from vaiphy.output.text import text_report
from vaiphy.quantities import LOG_LIKELIHOOD, LOG_PRIOR, TREE_LENGTH
from vaiphy.summary.consensus import summary_tree
from vaiphy.summary.posterior import Posterior, SplitTable
from vaiphy.trees.sample import equal_weights
from vaiphy.trees.tree import Split, Tree

#: Version of the layout of PREFIX.json.
JSON_VERSION = 1
#: Topologies beyond this many are left out of .trprobs.
MAX_TOPOLOGIES = 5000

SUFFIXES = {
    ".vaiphy": "this report, to read",
    ".html": "the report as a page with an interactive tree",
    ".json": "all figures, for programs",
    ".contree": "majority-rule consensus, Newick with support",
    ".con.tre": "majority-rule consensus, NEXUS with annotations as MrBayes writes them, vertices named",
    ".mcc.tre": "maximum clade credibility tree, likewise",
    ".trees.nwk": "posterior trees, resampled to equal weights, Newick",
    ".run1.t": "trees of each independent run, resampled to equal weights, as MrBayes writes them (.run1.t, .run2.t, ...)",
    ".run1.p": "log-likelihood, log-prior, tree length and parameters of the trees of each run (.run1.p, .run2.p, ...)",
    ".trprobs": "topologies in order of decreasing probability, as MrBayes writes them",
    ".parts": "splits, numbered as in the next two, as MrBayes writes them",
    ".tstat": "their posterior probabilities, as MrBayes writes them",
    ".vstat": "their branch lengths, as MrBayes writes them",
    ".beast.trees": "posterior trees, resampled to equal weights, rooted beside the outgroup, as BEAST writes them",
    ".beast.log": "posterior density, likelihood, prior and parameters of those trees, as BEAST logs them",
    ".splits.tsv": "every split: support and branch length",
    ".names.tsv": "safe names of the taxa and the names in the input",
    ".state.gz": "ancestral states at the vertices of the tree in .con.tre",
    ".log": "what was printed while running",
    ".ckpt": "checkpoint; also what `vaiphy report` reads",
}


def contents(analysis: Analysis, name: str) -> Iterator[tuple[str, str | bytes]]:
    """Suffix and content of each file but the page, the log and the checkpoint; `name` is the prefix without folder."""
    note = _note(analysis)
    yield ".json", results.json_text(json_value(analysis))
    if analysis.input_names:
        yield ".names.tsv", results.table({"name": analysis.patterns.taxa, "name_in_input": analysis.input_names})
    if analysis.posterior is not None and analysis.consensus is not None and analysis.credible_tree is not None:
        yield from summary_files(analysis.posterior, analysis.consensus, analysis.credible_tree, note, words.doubt(analysis))
        n_trees = analysis.settings.n_trees * analysis.posterior.n_replicates
        yield from partition_files(analysis.posterior.splits, n_trees)
    if analysis.trees is not None and analysis.outcome.sample is not None:
        names = [quoted(taxon) for taxon in analysis.patterns.taxa]
        lines = results.newick_lines(analysis.trees, names)
        yield ".trees.nwk", results.newick_comment(words.doubt(analysis)) + "\n".join(lines) + "\n"
        yield from beast_files(analysis, note)
        for r in range(int(analysis.outcome.sample.replicate.max()) + 1):
            sample = equal_weights(analysis.outcome.sample.of_replicate(r), analysis.settings.n_trees)
            yield f".run{r + 1}.t", results.tree_file(sample, note)
            yield f".run{r + 1}.p", results.parameter_file(analysis.quantities(sample), f"{analysis.settings.seed}")
    elif analysis.labelled_trees:
        names = [quoted(taxon) for taxon in analysis.patterns.taxa]
        lines = [results.annotated(tree, names, labels=True) for tree in analysis.labelled_trees]
        yield ".trees.nwk", results.newick_comment(words.doubt(analysis)) + "\n".join(lines) + "\n"
    if analysis.states is not None:
        states = analysis.states
        tree_file = ".trees.nwk" if analysis.outcome.labelled is not None else ".con.tre"
        how = (
            "Mean-field probabilities"
            if analysis.outcome.labelled
            else "Averages over posterior trees that have the vertex's clade"
        )
        comments = [
            f"Ancestral states at the vertices named in {name}{tree_file}; {note}",
            f"{how}. State: the most probable one, - if none has probability 0.5.",
        ]
        yield ".state.gz", results.states_file(states.names, states.probability, states.site_pattern, comments, states.states)
    yield ".vaiphy", text_report(analysis, written_files(analysis, name))


def written_files(analysis: Analysis, name: str) -> dict[str, str]:
    """Names of the files of this run, with what is in them."""
    absent: set[str] = set()
    if not analysis.input_names:
        absent.add(".names.tsv")
    if analysis.outcome.sample is None:
        absent |= {".run1.t", ".run1.p", ".beast.trees", ".beast.log"}
    if analysis.settings.prior_only or analysis.settings.partition:
        absent.add(".state.gz")
    if analysis.posterior is None:
        absent |= {".contree", ".con.tre", ".mcc.tre", ".trees.nwk", ".trprobs", ".splits.tsv", ".state.gz"}
        absent |= {".parts", ".tstat", ".vstat"}
    what = dict(SUFFIXES)
    if analysis.outcome.labelled is not None:
        what[".trees.nwk"] = "labelled multifurcating trees, resampled to equal weights, Newick with vertex names"
        what[".state.gz"] = "ancestral states at the vertices named in .trees.nwk"
    return {name + suffix: text for suffix, text in what.items() if suffix not in absent}


def json_value(analysis: Analysis) -> dict[str, Any]:
    """What PREFIX.json holds (docs/formats-out.md)."""
    posterior, patterns = analysis.posterior, analysis.patterns
    return {
        "format": JSON_VERSION,
        "version": analysis.provenance.version,
        "command": analysis.provenance.command,
        "seed": analysis.settings.seed,
        "threads": analysis.provenance.threads,
        "settings": analysis.settings.to_json(),
        "input": {
            "file": analysis.provenance.file,
            "sha256": analysis.provenance.sha256,
            "n_taxa": patterns.n_taxa,
            "n_sites": patterns.n_sites,
            "n_patterns": patterns.n_patterns,
        },
        "model": words.prior_sentences(analysis),
        "complete": analysis.complete,
        "estimates": {name: asdict(value) for name, value in analysis.outcome.estimates.items()},
        "elbo": analysis.outcome.elbo,
        "tuning": dict(analysis.outcome.tuning),
        "trust": {"ok": analysis.trust_ok, "reasons": list(analysis.reasons)},
        "model_checks": [asdict(found) | {"fits": found.fits} for found in analysis.predictive],
        "asdsf": None if posterior is None else posterior.asdsf,
        "topologies": None
        if posterior is None
        else {
            "sampled": len(posterior.topologies),
            "best": float(posterior.topologies.probability[0]),
            "credible_50": posterior.topologies.credible_set(0.5),
            "credible_95": posterior.topologies.credible_set(0.95),
        },
        "tree_length": None if posterior is None else dict(zip(("mean", "lower", "upper"), posterior.tree_length)),
        "parameters": {row.name: row.to_json() for row in (*analysis.parameters, *analysis.tree_parameters)},
        "taxa": list(patterns.taxa),
        "input_names": list(analysis.input_names),
        "splits": [] if posterior is None else _split_records(posterior.splits),
        "timings": {stage: round(seconds, 3) for stage, seconds in analysis.timings.items()},
        "warnings": list(analysis.warnings),
    }


def summary_files(posterior: Posterior, consensus: Tree, credible: Tree, note: str, doubt: str = "") -> Iterator[tuple[str, str]]:
    """The files that hold summary trees, topologies and splits; the trees come rooted and named.

    `note` goes into the comments of NEXUS files; `doubt`, if there is one, also to the top of the plain ones.
    """
    taxa = posterior.taxa
    known = mrbayes_annotations(posterior.splits)
    text = results.annotated(consensus, [quoted(taxon) for taxon in taxa], support=True)
    yield ".contree", results.newick_comment(doubt) + text + "\n"
    yield ".con.tre", results.summary_file("con_50_majrule", consensus, known, note)
    yield ".mcc.tre", results.summary_file("maximum_clade_credibility", credible, known, note)
    table = posterior.topologies
    shown = min(len(table), MAX_TOPOLOGIES)
    trees = (_topology_tree(taxa, table.topologies[i]) for i in range(shown))
    yield ".trprobs", results.topology_file(taxa, trees, table.probability[:shown], note)
    yield ".splits.tsv", (f"# {doubt}\n" if doubt else "") + results.table(split_columns(posterior.splits))


def beast_files(analysis: Analysis, note: str) -> Iterator[tuple[str, str]]:
    """The equal-weight sample for BEAST's programs: trees, and all columns that are known of them."""
    assert analysis.trees is not None
    known = analysis.quantities(analysis.trees)
    likelihood, prior, length = known.pop(LOG_LIKELIHOOD), known.pop(LOG_PRIOR), known.pop(TREE_LENGTH)
    outgroup = analysis.patterns.taxa.index(analysis.settings.outgroup[0]) if analysis.settings.outgroup else 0
    columns = {"posterior": likelihood + prior, "likelihood": likelihood, "prior": prior, "treeLength": length, **known}
    yield ".beast.trees", beast.tree_file(analysis.trees, outgroup, likelihood + prior, note)
    yield ".beast.log", beast.log_file(columns, [note])


def mrbayes_annotations(table: SplitTable) -> dict[Split, dict[str, Any]]:
    """What MrBayes writes at each split, by its own names."""
    out: dict[Split, dict[str, Any]] = {}
    low, high = table.replicate_support.min(axis=0), table.replicate_support.max(axis=0)
    deviation = np.nan_to_num(table.deviation)
    for i, split in enumerate(table.splits):
        p, sd = float(table.support[i]), float(deviation[i])
        values: dict[str, Any] = {
            "prob": p,
            "prob_stddev": sd,
            "prob_range": (float(low[i]), float(high[i])),
            "prob(percent)": f"{100 * p:.0f}",
            "prob+-sd": f"{100 * p:.0f}+-{100 * sd:.0f}",
        }
        if np.isfinite(table.mean[i]):
            values |= {
                "length_mean": float(table.mean[i]),
                "length_median": float(table.median[i]),
                "length_95%HPD": (float(table.hpd_lower[i]), float(table.hpd_upper[i])),
            }
        out[split] = values
    return out


def _split_records(table: SplitTable) -> list[dict[str, Any]]:
    columns = split_columns(table)
    del columns["taxa"]
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def _topology_tree(taxa: tuple[str, ...], topology: frozenset[Split]) -> Tree:
    support = dict.fromkeys(topology, 1.0)
    return summary_tree(taxa, sorted(topology), support, {})


def _note(analysis: Analysis) -> str:
    """What every NEXUS file says of itself."""
    doubt = words.doubt(analysis)
    source = f"VaiPhy {analysis.provenance.version}, {analysis.provenance.file}, seed {analysis.settings.seed}"
    return f"{source}; {doubt}" if doubt else source
