"""References, and which of them belong to a model."""

from vaiphy.alphabets import Alphabet
from vaiphy.models.grammar import ModelString, rate_code

CITATIONS = {
    "VaiPhy": "Koptagel H, Kviman O, Melin H, Safinianaini N, Lagergren J (2022). VaiPhy: a variational inference based "
    "algorithm for phylogeny. Advances in Neural Information Processing Systems 35.",
    "JC69": "Jukes TH, Cantor CR (1969). Evolution of protein molecules. In: Mammalian Protein Metabolism, 21-132. "
    "Academic Press, New York.",
    "SBN": "Zhang C, Matsen FA (2018). Generalizing tree probability estimation via Bayesian networks. Advances in Neural "
    "Information Processing Systems 31.",
    "VBPI": "Zhang C, Matsen FA (2019). Variational Bayesian phylogenetic inference. International Conference on Learning "
    "Representations 2019.",
    "VBPI-NF": "Zhang C (2020). Improved variational Bayesian phylogenetic inference with normalizing flows. Advances in Neural "
    "Information Processing Systems 33.",
    "MISELBO": "Kviman O, Melin H, Koptagel H, Elvira V, Lagergren J (2022). Multiple importance sampling ELBO and deep "
    "ensembles of variational approximations. AISTATS 2022.",
    "Pareto": "Vehtari A, Simpson D, Gelman A, Yao Y, Gabry J (2024). Pareto smoothed importance sampling. Journal of "
    "Machine Learning Research 25(72): 1-58.",
    "ASDSF": "Lakner C, van der Mark P, Huelsenbeck JP, Larget B, Ronquist F (2008). Efficiency of Markov chain Monte "
    "Carlo tree proposals in Bayesian phylogenetics. Systematic Biology 57: 86-103.",
    "SMC": "Del Moral P, Doucet A, Jasra A (2006). Sequential Monte Carlo samplers. Journal of the Royal Statistical Society "
    "Series B 68: 411-436.",
    "CSMC": "Wang L, Bouchard-Côté A, Doucet A (2015). Bayesian phylogenetic inference using a combinatorial sequential "
    "Monte Carlo method. Journal of the American Statistical Association 110: 1362-1374.",
    "Dirichlet": "Rannala B, Zhu T, Yang Z (2012). Tail paradox, partial identifiability, and influential priors in Bayesian "
    "branch length inference. Molecular Biology and Evolution 29: 325-335.",
    "F81": "Felsenstein J (1981). Evolutionary trees from DNA sequences: a maximum likelihood approach. Journal of Molecular "
    "Evolution 17: 368-376.",
    "K80": "Kimura M (1980). A simple method for estimating evolutionary rates of base substitutions through comparative "
    "studies of nucleotide sequences. Journal of Molecular Evolution 16: 111-120.",
    "HKY": "Hasegawa M, Kishino H, Yano T (1985). Dating of the human-ape splitting by a molecular clock of mitochondrial "
    "DNA. Journal of Molecular Evolution 22: 160-174.",
    "TN": "Tamura K, Nei M (1993). Estimation of the number of nucleotide substitutions in the control region of "
    "mitochondrial DNA in humans and chimpanzees. Molecular Biology and Evolution 10: 512-526.",
    "GTR": "Tavaré S (1986). Some probabilistic and statistical problems in the analysis of DNA sequences. Lectures on "
    "Mathematics in the Life Sciences 17: 57-86.",
    "Mk": "Lewis PO (2001). A likelihood approach to estimating phylogeny from discrete morphological character data. "
    "Systematic Biology 50: 913-925.",
    "LG": "Le SQ, Gascuel O (2008). An improved general amino acid replacement matrix. Molecular Biology and Evolution 25: "
    "1307-1320.",
    "WAG": "Whelan S, Goldman N (2001). A general empirical model of protein evolution derived from multiple protein families "
    "using a maximum-likelihood approach. Molecular Biology and Evolution 18: 691-699.",
    "JTT": "Jones DT, Taylor WR, Thornton JM (1992). The rapid generation of mutation data matrices from protein sequences. "
    "Computer Applications in the Biosciences 8: 275-282.",
    "gamma": "Yang Z (1994). Maximum likelihood phylogenetic estimation from DNA sequences with variable rates over sites: "
    "approximate methods. Journal of Molecular Evolution 39: 306-314.",
    "invariable": "Gu X, Fu YX, Li WH (1995). Maximum likelihood estimation of the heterogeneity of substitution rate among "
    "nucleotide sites. Molecular Biology and Evolution 12: 546-557.",
}

#: Code of the exchangeabilities -> key of the reference, with equal and with unequal frequencies.
_DNA = {"000000": ("JC69", "F81"), "010010": ("K80", "HKY"), "010020": ("TN", "TN")}
#: How the text cites a reference.
SHORT = {
    "JC69": "Jukes and Cantor 1969", "F81": "Felsenstein 1981", "K80": "Kimura 1980", "HKY": "Hasegawa et al. 1985",
    "TN": "Tamura and Nei 1993", "GTR": "Tavaré 1986", "Mk": "Lewis 2001", "LG": "Le and Gascuel 2008",
    "WAG": "Whelan and Goldman 2001", "JTT": "Jones et al. 1992", "gamma": "Yang 1994", "invariable": "Gu et al. 1995",
}  # fmt: skip


def model_citations(string: ModelString, alphabet: Alphabet) -> tuple[str, list[str]]:
    """The model with what it consists of and who described it, and the keys of the references."""
    if alphabet.is_nucleotides:
        key = _DNA.get(rate_code(string.name), ("GTR", "GTR"))[string.frequencies != "equal"]
    elif alphabet.name == "AA":
        key = string.name if string.name in SHORT else ""
    else:
        key = "Mk"
    name = "JC69" if string.name == "JC" else string.name
    text = f"{name} model ({SHORT[key]})" if key else f"{name} model"
    cited = [key] if key else []
    parts = []
    if string.gamma:
        parts.append(f"gamma-distributed rates across sites in {string.n_categories} categories ({SHORT['gamma']})")
        cited.append("gamma")
    if string.invariable:
        parts.append(f"a share of invariable sites ({SHORT['invariable']})")
        cited.append("invariable")
    if string.ascertained:
        parts.append("likelihoods given that all characters vary")
    return text + (f" with {' and '.join(parts)}" if parts else ""), cited
