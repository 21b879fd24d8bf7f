"""A finished run in one value: what was asked, what came out, and summaries of it."""

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vaiphy import interop
from vaiphy.alignment import SitePatterns
from vaiphy.alphabets import DNA
from vaiphy.errors import InputError
from vaiphy.interop.tables import split_columns, topology_columns
from vaiphy.methods.outcome import Estimate, Outcome
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import target_for
from vaiphy.models.substitution import model_of
from vaiphy.quantities import quantities
from vaiphy.summary.ancestral import AncestralStates, ancestral_states
from vaiphy.summary.consensus import ladderised, named, rooted_at
from vaiphy.summary.parameters import Parameter, model_parameters, tree_parameters
from vaiphy.summary.posterior import Posterior, summarise
from vaiphy.summary.predictive import N_DRAWS, Check, along, check
from vaiphy.trees.sample import TreeSample, equal_weights
from vaiphy.trees.splits import from_trees
from vaiphy.trees.tree import Tree, TreeError, simplified
from vaiphy.weights import systematic


@dataclass(frozen=True)
class Provenance:
    """Where a result comes from."""

    version: str
    command: str
    file: str
    sha256: str
    threads: int


@dataclass(frozen=True, eq=False)
class Analysis:
    """A finished run: what was asked, what came out, and summaries of it (computed when first asked for).

    `complete` is False if a time limit ended it early; the outcome is then the best that could be had. `timings` are wall
    seconds by stage. `input_names` are the taxa as the input calls them, if they were given safe names.
    """

    settings: Settings
    provenance: Provenance
    patterns: SitePatterns
    outcome: Outcome
    complete: bool
    timings: dict[str, float]
    warnings: tuple[str, ...] = ()
    input_names: tuple[str, ...] = ()

    @property
    def estimate(self) -> Estimate:
        """The estimate the run was for."""
        return self.outcome.estimates[self.outcome.main]

    @property
    def log_evidence(self) -> float:
        return self.estimate.log_evidence

    @property
    def std_error(self) -> float:
        return self.estimate.std_error

    @property
    def trust_ok(self) -> bool:
        return self.outcome.trust_ok and self.complete

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the computation is not taken to have converged."""
        early = () if self.complete else ("the time limit ended the run before it was finished",)
        return early + self.outcome.reasons

    @cached_property
    def posterior(self) -> Posterior | None:
        """Summaries of the sampled trees; None if the method gives no trees."""
        if self.outcome.sample is not None:
            return summarise(self.outcome.sample, self.settings.method == "posterior")
        if self.outcome.labelled is not None:
            trees = self.outcome.labelled
            return summarise(from_trees((simplified(trees.tree(i)) for i in range(trees.n_samples)), trees.weights.tolist()))
        return None

    @cached_property
    def consensus(self) -> Tree | None:
        """The majority-rule consensus, rooted for drawing, internal vertices named Node1, Node2, ..."""
        return None if self.posterior is None else self.prepared(self.posterior.majority)

    @cached_property
    def credible_tree(self) -> Tree | None:
        """The maximum clade credibility tree, rooted and named likewise."""
        return None if self.posterior is None else self.prepared(self.posterior.credible)

    @cached_property
    def trees(self) -> TreeSample | None:
        """Trees of the posterior, resampled systematically to equal weights."""
        sample = self.outcome.sample
        return None if sample is None else equal_weights(sample, self.settings.n_trees)

    @cached_property
    def labelled_trees(self) -> tuple[Tree, ...]:
        """Trees of the augmented space, resampled to equal weights, vertices named, dangling and degree-two ones removed."""
        labelled = self.outcome.labelled
        if labelled is None:
            return ()
        return tuple(simplified(labelled.tree(i)) for i in systematic(labelled.weights, self.settings.n_trees, 0.5).tolist())

    @cached_property
    def states(self) -> AncestralStates | None:
        """Ancestral states at the named vertices of the consensus (or of the labelled trees)."""
        if self.outcome.labelled is not None:
            names = tuple(name for name in self.outcome.labelled.labels if name)
            used = np.full(len(names), self.outcome.labelled.n_samples)
            states = self.outcome.labelled.states
            return AncestralStates(names, states, used, self.outcome.labelled.n_samples, self.patterns.site_pattern)
        if self.outcome.sample is None or self.consensus is None or self.settings.prior_only or self.settings.partition:
            return None
        target = None if self.outcome.sample.z is None else target_for(self.patterns, self.settings, fold=False)
        reference = self.patterns.taxa.index(self.settings.outgroup[0]) if self.settings.outgroup else 0
        return ancestral_states(
            self.outcome.sample, self.patterns, self.consensus, reference, threads=self.provenance.threads, target=target
        )

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Summaries of the model's parameters, by MrBayes's names; none if the model has none."""
        return () if self.outcome.sample is None else model_parameters(self.outcome.sample)

    @cached_property
    def tree_parameters(self) -> tuple[Parameter, ...]:
        """Likewise log-likelihood (LnL), log-prior (LnPr) and tree length (TL), where the method records them."""
        return () if self.outcome.sample is None else tree_parameters(self.outcome.sample)

    @cached_property
    def predictive(self) -> tuple[Check, ...]:
        """Posterior predictive checks of the model; none without posterior trees, for parts, or for other data
        than nucleotides."""
        unknown = self.settings.prior_only or self.settings.partition or not self.patterns.alphabet.is_nucleotides
        if self.outcome.sample is None or unknown:
            return ()
        model = model_of(self.settings.model_name, DNA, self.patterns.codes, self.patterns.counts)
        drawn = self.outcome.sample.select(systematic(self.outcome.sample.weights, N_DRAWS, 0.5))
        z = model.from_columns(drawn.parameters) if model.n_parameters else np.zeros((drawn.n_samples, 0))
        draws = [(drawn.tree(k), along(model, z[k])) for k in range(drawn.n_samples)]
        return check(self.patterns, draws, np.random.default_rng([self.settings.seed, 20]))

    @property
    def missing_share(self) -> float:
        """Share of the alignment that is gaps or missing data."""
        per_pattern = (self.patterns.codes == self.patterns.alphabet.everything).mean(axis=0)
        return float(per_pattern @ self.patterns.counts / max(1, self.patterns.n_sites))

    def rooted(self, tree: Tree) -> Tree:
        """A tree with its root beside the outgroup (default: the first taxon)."""
        try:
            return rooted_at(tree, self.settings.outgroup or self.patterns.taxa[:1])
        except TreeError:  # several taxa that are no group in this tree
            return rooted_at(tree, self.settings.outgroup[:1])

    def prepared(self, tree: Tree) -> Tree:
        """A summary tree as it is written and drawn: rooted beside the outgroup, named."""
        return named(ladderised(self.rooted(tree)))

    def quantities(self, sample: TreeSample) -> dict[str, NDArray[np.float64]]:
        """Log-likelihood, log-prior, tree length and parameters of trees of this analysis, as named columns."""
        return quantities(sample, self.patterns, self.settings.prior_rate, self.provenance.threads)

    def chosen(self, trees: str) -> Tree | list[Tree]:
        """Trees by name: "consensus", "credible" (maximum clade credibility), or the equal-weight "sample" as a list."""
        if trees not in ("consensus", "credible", "sample"):
            raise InputError(f"there are no trees {trees!r}; there are consensus, credible and sample")
        if self.consensus is None or self.credible_tree is None:
            raise InputError(f"the method {self.settings.method} gives no trees")
        if trees != "sample":
            return self.consensus if trees == "consensus" else self.credible_tree
        if self.trees is None:
            return list(self.labelled_trees)
        return [self.rooted(self.trees.tree(i)) for i in range(self.trees.n_samples)]

    def to_dendropy(self, trees: str = "consensus") -> Any:
        """A `dendropy.Tree` of the "consensus" or "credible" tree, or a `TreeList` of the equal-weight "sample"."""
        return interop.dendropy.convert(self.chosen(trees))

    def to_ete(self, trees: str = "consensus") -> Any:
        """An `ete4.Tree` of the "consensus" or "credible" tree, or a list of the equal-weight "sample"."""
        return interop.ete.convert(self.chosen(trees))

    def to_biopython(self, trees: str = "consensus") -> Any:
        """A `Bio.Phylo` tree of the "consensus" or "credible" tree, or a list of the equal-weight "sample"."""
        return interop.biopython.convert(self.chosen(trees))

    def to_toytree(self, trees: str = "consensus") -> Any:
        """A `ToyTree` of the "consensus" or "credible" tree, or a `MultiTree` of the equal-weight "sample"."""
        return interop.toytree.convert(self.chosen(trees))

    def to_cogent3(self, trees: str = "consensus") -> Any:
        """A cogent3 tree of the "consensus" or "credible" tree, or a list of the equal-weight "sample"."""
        return interop.cogent3.convert(self.chosen(trees))

    def to_arviz(self) -> Any:
        """Tree length and parameters as ArviZ's `InferenceData` (a `DataTree` from ArviZ 1.0 on), chain = run."""
        return interop.arviz.convert(self.weighted, self.settings.n_trees, self.quantities, self.about)

    def to_dataframe(self, table: str = "splits") -> Any:
        """A pandas `DataFrame` of "splits" or "topologies", or of what is known of each tree of the equal-weight "sample"."""
        return interop.pandas.convert(self.columns(table))

    def columns(self, table: str) -> dict[str, Any]:
        """Named columns of a table: "splits", "topologies" or "sample"."""
        if table not in ("splits", "topologies", "sample"):
            raise InputError(f"there is no table {table!r}; there are splits, topologies and sample")
        if table == "sample":
            drawn = equal_weights(self.weighted, self.settings.n_trees)
            return {"run": drawn.replicate + 1, **self.quantities(drawn)}
        if self.posterior is None:
            raise InputError(f"the method {self.settings.method} gives no trees")
        return split_columns(self.posterior.splits) if table == "splits" else topology_columns(self.posterior)

    @property
    def weighted(self) -> TreeSample:
        """The weighted sample of binary trees; an error says so if the method gives none."""
        if self.outcome.sample is None:
            raise InputError(f"the method {self.settings.method} gives no sample of binary trees")
        return self.outcome.sample

    @property
    def about(self) -> dict[str, Any]:
        """Where the result comes from and how sure it is, for files and objects that carry such notes."""
        return {
            "created_by": f"VaiPhy {self.provenance.version}",
            "input": self.provenance.file,
            "seed": self.settings.seed,
            "log_evidence": self.log_evidence,
            "std_error": self.std_error,
            "trusted": int(self.trust_ok),
        }

    def _repr_html_(self) -> str:
        """A summary for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{value.log_evidence:.2f} ± {value.std_error:.2g}</td>"
            f"<td>{escape(value.target)}</td></tr>"
            for name, value in self.outcome.estimates.items()
        )
        verdict = "converged" if self.trust_ok else "did not converge"
        reasons = "; ".join(escape(reason) for reason in self.reasons)
        return (
            f"<p><b>{escape(self.provenance.file)}</b>: {self.patterns.n_taxa} taxa, {self.patterns.n_sites} sites. "
            f"The computation {verdict}{': ' if reasons else ''}{reasons}.</p>"
            f"<table><tr><th>estimate</th><th>log marginal likelihood</th><th>target</th></tr>{rows}</table>"
        )
