"""The result in sentences, the same on screen, in the report and on the page."""

from collections.abc import Sequence
from math import isfinite

from vaiphy.methods.outcome import Estimate
from vaiphy.methods.target import model_words, target_for
from vaiphy.output.analysis import Analysis
from vaiphy.output.citations import CITATIONS, model_citations
from vaiphy.summary.posterior import SplitTable

METHOD_NAMES = {
    "posterior": "sequential Monte Carlo from learned proposals to the posterior of unrooted binary trees",
    "vaiphy": "variational inference over labelled trees (VaiPhy)",
    "phi-csmc": "combinatorial sequential Monte Carlo with variational proposals (phi-CSMC)",
    "csmc": "combinatorial sequential Monte Carlo (CSMC)",
    "vbpi": "variational Bayesian phylogenetic inference over a subsplit network (VBPI)",
}

ESTIMATE_NAMES = {
    "posterior": "sequential Monte Carlo, all runs",
    "vaiphy_iwelbo": "VaiPhy, IWELBO",
    "vaiphy_miselbo": "VaiPhy, MISELBO",
    "phi_csmc": "phi-CSMC",
    "csmc": "CSMC",
    "vbpi": "VBPI, importance weights",
}


#: Splits and topologies with less probability are not shown unless asked for.
MIN_SUPPORT = 0.01
#: An interval needs as many effective draws.
MIN_DRAWS = 10.0


def interval(table: SplitTable, row: int) -> str:
    """The central 95 % interval of a split's length; nothing if too few trees have the split."""
    if not (isfinite(table.lower[row]) and table.effective[row] >= MIN_DRAWS):
        return ""
    return f"{table.lower[row]:.5f}-{table.upper[row]:.5f}"


def probability(value: float) -> str:
    """A probability in words; small ones are not written as 0.000."""
    return f"{value:.3f}" if value >= 0.001 else "less than 0.001"


def number(estimate: Estimate) -> str:
    """An estimate with its standard error, with as many digits as the error supports."""
    if not isfinite(estimate.log_evidence):
        return "none"
    if not isfinite(estimate.std_error):
        return f"{estimate.log_evidence:.2f} (standard error unknown)"
    digits = 3 if estimate.std_error < 0.02 else 2
    return f"{estimate.log_evidence:.{digits}f} ± {estimate.std_error:.{digits}f}"


def model(analysis: Analysis) -> str:
    return f"{analysis.settings.model_name}, branch lengths {analysis.settings.length_prior}"


def parts(analysis: Analysis) -> str:
    """The parts with their models, a line each; nothing where one model is for all sites."""
    settings = analysis.settings
    if not settings.partition:
        return ""
    rates = "each has a rate of its own" if settings.part_rates == "free" else "all have the same branch lengths"
    head = f"\nParts (model, name = sites{'; ' + rates if len(settings.partition) > 1 else ''}):"
    return "\n    ".join([head, *settings.partition]) + "\nAncestral states are not computed for parts."


def headline(analysis: Analysis) -> str:
    """What was estimated, in one sentence."""
    estimate = analysis.estimate
    name = "Lower bound of the log marginal likelihood (IWELBO)" if is_bound(analysis) else "Log marginal likelihood"
    return f"{name} {number(estimate)} ({estimate.target}; {model(analysis)})"


def is_bound(analysis: Analysis) -> bool:
    """Whether the main figure is a bound and not an estimate."""
    return analysis.settings.method == "vaiphy"


def verdict(analysis: Analysis) -> str:
    """Whether the computation did what it was to do; it says nothing about the model."""
    if analysis.trust_ok:
        return "The computation converged."
    if is_bound(analysis) and analysis.complete:
        return "This is a bound, not an estimate, and the trees are those of an approximation."
    if not analysis.complete:
        return "The time limit ended the run before the computation converged: this is the best answer so far, do not rely on it."
    return "The computation did not converge: do not rely on the result."


def doubt(analysis: Analysis) -> str:
    """What every file says of a computation that did not converge; nothing of one that did."""
    if analysis.trust_ok:
        return ""
    mark = "A BOUND, NOT AN ESTIMATE" if is_bound(analysis) else "NOT CONVERGED"
    return f"{mark}: {'; '.join(analysis.reasons)}"


def grounds(analysis: Analysis) -> list[str]:
    """The figures on which the verdict rests."""
    estimate, posterior = analysis.estimate, analysis.posterior
    out = []
    if analysis.settings.method == "vbpi":
        low, high = min(estimate.runs), max(estimate.runs)
        out.append(f"{len(estimate.runs)} estimates from fresh samples, between {low:.2f} and {high:.2f}")
    elif len(estimate.runs) > 1:
        listed = ", ".join(f"{value:.2f}" for value in estimate.runs)
        what = (
            "repeated bounds" if is_bound(analysis) else f"log marginal likelihood of the {len(estimate.runs)} independent runs"
        )
        out.append(f"{what}: {listed}")
    weights = f"; Pareto k of the weights {estimate.pareto_k:.2f} (reliable below 0.7)" if isfinite(estimate.pareto_k) else ""
    out.append(f"effective sample size {estimate.ess:.0f} of {estimate.n_samples}{weights}")
    bounds = analysis.outcome.bounds
    if analysis.settings.method == "vbpi":
        out.append(f"lower bounds of one sample (LB-1) {bounds['LB-1']:.2f}, of ten (LB-10) {bounds['LB-10']:.2f}")
    if "bias" in bounds:
        out.append(
            f"the program of the paper's authors would print {bounds['as printed']:.2f}: it adds log K + log(n - 2) = "
            f"{bounds['bias']:.2f}, a bias"
        )
    if posterior is not None and isfinite(posterior.asdsf):
        out.append(f"average standard deviation of split frequencies between {compared(analysis)} {posterior.asdsf:.4f}")
    return out


def compared(analysis: Analysis) -> str:
    """What split frequencies are compared between."""
    return "two halves of the runs" if analysis.settings.method == "posterior" else "runs"


def count(number: int, noun: str, plural: str = "") -> str:
    """1 tree, 2 trees."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def in_a_row(names: Sequence[str]) -> str:
    """One, two and three.

    >>> in_a_row(["taxa", "sites", "trees"])
    'taxa, sites and trees'
    """
    return " and ".join([", ".join(names[:-1])] * (len(names) > 1) + list(names[-1:]))


def model_sentences(analysis: Analysis) -> list[str]:
    """What the data say about the model, apart from whether the computation converged; nothing if nothing was checked."""
    checks = analysis.predictive
    if not checks:
        return []
    wrong = [found for found in checks if not found.fits]
    right = in_a_row([found.name for found in checks if found.fits])
    if not wrong:
        return [f"The model ({model(analysis)}) predicts data like these in {right}."]
    head = f"The model ({model(analysis)}) does not describe the data in {len(wrong)} of {len(checks)} respects"
    return [head + (f" (it does in {right})." if right else "."), *(found.sentence for found in wrong)]


def trees_sentence(analysis: Analysis) -> str:
    """How the probability is spread over topologies."""
    posterior = analysis.posterior
    if posterior is None:
        return "The method gives no posterior of trees."
    table = posterior.topologies
    best = table.probability[0]
    half, most = table.credible_set(0.5), table.credible_set(0.95)
    inner = len(analysis.patterns.taxa) - 3
    resolved = len(posterior.majority.topology)
    return (
        f"{count(len(table), 'topology was', 'topologies were')} sampled; the most probable one has probability "
        f"{probability(best)}; the 50 % credible set holds {half} and the 95 % credible set {most}. The consensus resolves "
        f"{resolved} of {inner} internal branches."
    )


def prior_sentences(analysis: Analysis) -> list[str]:
    """The model and all priors, a sentence each."""
    return model_words(analysis.patterns, analysis.settings)


def _model_clause(analysis: Analysis) -> tuple[str, list[str]]:
    """The model and its priors as they follow "analysed under", and the references that belong to them."""
    settings = analysis.settings
    model = target_for(analysis.patterns, settings).parts[0].model
    named, cited = model_citations(model.string, model.alphabet)
    blocks = {
        "rates": "relative rates",
        "frequencies": "frequencies",
        "alpha": "the gamma shape",
        "p_inv": "the share of invariable sites",
    }
    priors = [f"{block.prior} for {blocks[block.name]}" for block in model.blocks]
    lengths = (
        f"independent exponential distributions of rate {settings.prior_rate:g} for branch lengths"
        if isfinite(settings.prior_rate)
        else f"the compound Dirichlet {settings.length_prior} for branch lengths (Rannala et al. 2012)"
    )
    cited += [] if isfinite(settings.prior_rate) else ["Dirichlet"]
    listed = "".join(f"{prior}, " for prior in priors)
    clause = f"the {named}. Priors were {listed}{lengths} and a uniform distribution of topologies"
    return clause + (" (the prior alone, without the data)" if settings.prior_only else ""), cited


def methods_paragraph(analysis: Analysis) -> tuple[str, list[str]]:
    """A paragraph ready to paste, and the references it cites."""
    settings, name = analysis.settings, analysis.settings.method
    data = f"The alignment of {analysis.patterns.n_taxa} taxa and {analysis.patterns.n_sites} sites"
    models, cited = _model_clause(analysis)
    base = f"{data} was analysed with VaiPhy {analysis.provenance.version} (Koptagel et al. 2022) under {models}. "
    cited = ["VaiPhy", *cited]
    if name == "posterior":
        base += (
            "Posterior and marginal likelihood were computed by sequential Monte Carlo samplers (Del Moral et al. 2006) that "
            "carry trees, branch lengths and parameters from a learned proposal to the posterior, with a subsplit Bayesian "
            f"network as the proposal of topologies (Zhang and Matsen 2018), learned in {settings.replicates} replicates; "
            f"log marginal likelihood {number(analysis.estimate)}. "
        )
        cited += ["SMC", "SBN"]
    elif name == "vbpi":
        base += (
            "Topologies and branch lengths were approximated by variational Bayesian phylogenetic inference (Zhang and Matsen "
            f"2019; Zhang 2020); the log marginal likelihood, from importance weights, was {number(analysis.estimate)}. "
        )
        cited += ["VBPI", "VBPI-NF"]
    elif name == "vaiphy":
        base += f"The variational lower bound of the log marginal likelihood was {number(analysis.estimate)}. "
    else:
        base += (
            f"The log marginal likelihood was estimated by combinatorial sequential Monte Carlo (Wang et al. 2015): "
            f"{number(analysis.estimate)}. "
        )
        cited += ["CSMC"]
    posterior = analysis.posterior
    if posterior is not None and posterior.n_replicates > 1:
        base += f"The average standard deviation of split frequencies between {compared(analysis)} "
        base += f"(Lakner et al. 2008) was {posterior.asdsf:.4f}"
        cited.append("ASDSF")
        if isfinite(analysis.estimate.pareto_k):
            base += f" and the Pareto k of the importance weights {analysis.estimate.pareto_k:.2f} (Vehtari et al. 2024)"
            cited.append("Pareto")
        base += ". "
    if not analysis.trust_ok:
        grounds_against = f" ({'; '.join(analysis.outcome.reasons)})" if analysis.outcome.reasons else ""
        base += f"NOTE: {verdict(analysis).removesuffix('.')}{grounds_against}."
    return base.strip(), [CITATIONS[key] for key in cited]
