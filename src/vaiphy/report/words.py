"""The result in sentences, the same on screen, in the report and on the page."""

from math import isfinite

from vaiphy.analysis import Analysis
from vaiphy.outcome import Estimate

METHOD_NAMES = {
    "posterior": "adaptive importance sampling over unrooted binary trees",
    "vaiphy": "variational inference over labelled trees (VaiPhy)",
    "phi-csmc": "combinatorial sequential Monte Carlo with variational proposals (phi-CSMC)",
    "csmc": "combinatorial sequential Monte Carlo (CSMC)",
}

ESTIMATE_NAMES = {
    "posterior": "importance sampling, all replicates",
    "vaiphy_iwelbo": "VaiPhy, IWELBO",
    "vaiphy_miselbo": "VaiPhy, MISELBO",
    "phi_csmc": "phi-CSMC",
    "csmc": "CSMC",
}

CITATIONS = {
    "VaiPhy": "Koptagel H, Kviman O, Melin H, Safinianaini N, Lagergren J (2022). VaiPhy: a variational inference based "
    "algorithm for phylogeny. Advances in Neural Information Processing Systems 35.",
    "JC69": "Jukes TH, Cantor CR (1969). Evolution of protein molecules. In: Mammalian Protein Metabolism, 21-132. "
    "Academic Press, New York.",
    "SBN": "Zhang C, Matsen FA (2018). Generalizing tree probability estimation via Bayesian networks. Advances in Neural "
    "Information Processing Systems 31.",
    "MISELBO": "Kviman O, Melin H, Koptagel H, Elvira V, Lagergren J (2022). Multiple importance sampling ELBO and deep "
    "ensembles of variational approximations. AISTATS 2022.",
    "Pareto": "Vehtari A, Simpson D, Gelman A, Yao Y, Gabry J (2024). Pareto smoothed importance sampling. Journal of "
    "Machine Learning Research 25(72): 1-58.",
    "ASDSF": "Lakner C, van der Mark P, Huelsenbeck JP, Larget B, Ronquist F (2008). Efficiency of Markov chain Monte "
    "Carlo tree proposals in Bayesian phylogenetics. Systematic Biology 57: 86-103.",
    "CSMC": "Wang L, Bouchard-Côté A, Doucet A (2015). Bayesian phylogenetic inference using a combinatorial sequential "
    "Monte Carlo method. Journal of the American Statistical Association 110: 1362-1374.",
}


def number(estimate: Estimate) -> str:
    """An estimate with its standard error, with as many digits as the error supports."""
    if not isfinite(estimate.log_evidence):
        return "none"
    if not isfinite(estimate.std_error):
        return f"{estimate.log_evidence:.2f} (standard error unknown)"
    digits = 3 if estimate.std_error < 0.02 else 2
    return f"{estimate.log_evidence:.{digits}f} ± {estimate.std_error:.{digits}f}"


def model(analysis: Analysis) -> str:
    return f"JC69, branch lengths Exp({analysis.settings.prior_rate:g})"


def headline(analysis: Analysis) -> str:
    """What was estimated, in one sentence."""
    estimate = analysis.estimate
    name = "Lower bound of the log evidence (IWELBO)" if is_bound(analysis) else "Log evidence"
    return f"{name} {number(estimate)} ({estimate.target}; {model(analysis)})"


def is_bound(analysis: Analysis) -> bool:
    """Whether the main figure is a bound and no estimate."""
    return analysis.settings.method == "vaiphy"


def verdict(analysis: Analysis) -> str:
    """Whether it can be trusted."""
    if analysis.trust_ok:
        return "The result can be trusted."
    if is_bound(analysis) and analysis.complete:
        return "This is a bound, not an estimate, and the trees are those of an approximation."
    if not analysis.complete:
        return "The run was ended by its time limit: this is the best answer so far, do not rely on it."
    return "The result cannot be trusted."


def doubt(analysis: Analysis) -> str:
    """What every file says of a result that cannot be trusted; nothing of one that can."""
    if analysis.trust_ok:
        return ""
    mark = "A BOUND, NOT AN ESTIMATE" if is_bound(analysis) else "NOT TO BE TRUSTED"
    return f"{mark}: {'; '.join(analysis.reasons)}"


def grounds(analysis: Analysis) -> list[str]:
    """The figures on which the verdict rests."""
    estimate, posterior = analysis.estimate, analysis.posterior
    out = []
    if len(estimate.replicates) > 1:
        listed = ", ".join(f"{value:.2f}" for value in estimate.replicates)
        what = "repeated bounds" if is_bound(analysis) else f"log evidence of the {len(estimate.replicates)} replicates"
        out.append(f"{what}: {listed}")
    out.append(
        f"effective sample size {estimate.ess:.0f} of {estimate.n_samples}; Pareto k of the weights {estimate.pareto_k:.2f} "
        "(trustworthy below 0.7)"
    )
    if posterior is not None and isfinite(posterior.asdsf):
        out.append(f"average standard deviation of split frequencies between replicates {posterior.asdsf:.4f}")
    return out


def count(number: int, noun: str, plural: str = "") -> str:
    """1 tree, 2 trees."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


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
        f"{count(len(table), 'topology was', 'topologies were')} sampled; the most probable one has probability {best:.3f}; "
        f"the 50 % credible set holds {half} and the 95 % credible set {most}. The consensus resolves {resolved} of "
        f"{inner} internal branches."
    )


def methods_paragraph(analysis: Analysis) -> tuple[str, list[str]]:
    """A paragraph ready to paste, and the references it cites."""
    settings, name = analysis.settings, analysis.settings.method
    data = f"The alignment of {analysis.patterns.n_taxa} taxa and {analysis.patterns.n_sites} sites"
    base = (
        f"{data} was analysed with VaiPhy {analysis.provenance.version} (Koptagel et al. 2022) under the JC69 model (Jukes and "
        f"Cantor 1969) with independent exponential branch-length priors of rate {settings.prior_rate:g} and a uniform "
        "prior over topologies. "
    )
    cited = ["VaiPhy", "JC69"]
    if name == "posterior":
        base += (
            "Posterior and evidence were computed by adaptive importance sampling over unrooted binary trees with a subsplit "
            f"Bayesian network as the proposal of topologies (Zhang and Matsen 2018), in {settings.replicates} independent "
            "replicates whose samples were pooled under the mixture of all proposals (Kviman et al. 2022); "
            f"log evidence {number(analysis.estimate)}. "
        )
        cited += ["SBN", "MISELBO"]
    elif name == "vaiphy":
        base += f"The variational bound on the log evidence was {number(analysis.estimate)}. "
    else:
        base += (
            f"The evidence was estimated by combinatorial sequential Monte Carlo (Wang et al. 2015): "
            f"{number(analysis.estimate)}. "
        )
        cited += ["CSMC"]
    posterior = analysis.posterior
    if posterior is not None and posterior.n_replicates > 1:
        base += (
            f"The average standard deviation of split frequencies between replicates (Lakner et al. 2008) was "
            f"{posterior.asdsf:.4f}"
        )
        cited.append("ASDSF")
        if isfinite(analysis.estimate.pareto_k):
            base += f" and the Pareto k of the importance weights {analysis.estimate.pareto_k:.2f} (Vehtari et al. 2024)"
            cited.append("Pareto")
        base += ". "
    if not analysis.trust_ok:
        base += f"NOTE: {verdict(analysis)} ({'; '.join(analysis.reasons)})"
    return base.strip(), [CITATIONS[key] for key in cited]
