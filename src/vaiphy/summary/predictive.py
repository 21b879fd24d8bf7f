"""Does the model fit? Posterior predictive checks: data simulated from the posterior, compared with the data observed.

Each check compares one figure of the alignment with the same figure of alignments simulated along posterior trees under the
model. Simulated sites lose the characters that are missing or ambiguous in the observed ones, so that gaps do not
count as misfit. Any substitution model can be checked: a draw is a tree with a function that simulates sites along it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.models.simulate import random_alignment
from vaiphy.models.substitution import Model
from vaiphy.trees.tree import Tree

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]
Simulate = Callable[[Tree, int, np.random.Generator], Codes]
"""(tree, number of sites, random numbers) -> bit sets of the taxa, shape (n_taxa, n_sites)."""

BASES = "ACGT"
#: Draws to ask for: enough to see one chance in a hundred on either side.
N_DRAWS = 120
#: At most one chance in as many, and the model is said not to fit.
SURPRISE = 0.02
#: Simulated characters a draw, and taxa whose distances are compared: what can be done in a fraction of a second.
MAX_CHARACTERS, MAX_TAXA = 60_000, 40


@dataclass(frozen=True)
class Check:
    """One figure of the data beside what the model predicts; `p` is the posterior predictive p-value."""

    name: str
    p: float
    sentence: str

    @property
    def fits(self) -> bool:
        return self.p > SURPRISE


def check(patterns: SitePatterns, draws: Sequence[tuple[Tree, Simulate]], rng: np.random.Generator) -> tuple[Check, ...]:
    """The checks of composition, composition of single taxa, site rates and pairwise distances.

    Large alignments are checked on a random part of their sites, and distances on a random part of the taxa.
    """
    if not draws or not patterns.n_sites:
        return ()
    n_sites = min(patterns.n_sites, max(100, MAX_CHARACTERS // patterns.n_taxa))
    sites = rng.permutation(patterns.n_sites)[:n_sites]
    observed = patterns.codes[:, patterns.site_pattern[sites]]
    single = np.isin(observed, (1, 2, 4, 8))
    chosen = np.sort(rng.permutation(patterns.n_taxa)[:MAX_TAXA])
    own = _figures(observed * single, chosen)
    made = [_figures(simulate(tree, n_sites, rng) * single, chosen) for tree, simulate in draws]
    names = [patterns.taxa[taxon] for taxon in chosen]
    return (
        _composition(own.composition, np.array([m.composition for m in made])),
        _taxa(own.taxa, np.array([m.taxa for m in made]), patterns.taxa),
        _rates(own.constant, np.array([m.constant for m in made])),
        _distances(own.distances, np.array([m.distances for m in made]), names),
    )


def along(model: Model, z: Floats) -> Simulate:
    """Simulation under a model with its free parameters at z (d,)."""
    return lambda tree, n_sites, rng: random_alignment(tree, n_sites, rng, model=model, z=z).sites


@dataclass(frozen=True)
class _Figures:
    """What is compared: shares of the bases, of each taxon too, the share of constant sites, pairwise distances."""

    composition: Floats
    taxa: Floats
    constant: float
    distances: Floats


def _figures(codes: Codes, chosen: NDArray[np.int64]) -> _Figures:
    """The figures of bit sets of single bases, 0 where nothing is known."""
    planes = np.stack([codes == 1 << base for base in range(4)])  # (4, n_taxa, n_sites)
    per_taxon, per_site = planes.sum(axis=2, dtype=np.float64), planes.sum(axis=1, dtype=np.float64)
    total = per_taxon.sum(axis=1)
    informed = per_site.sum(axis=0) >= 2
    constant = (per_site[:, informed] > 0).sum(axis=0) == 1
    return _Figures(
        total / max(total.sum(), 1.0),
        (per_taxon / np.maximum(per_taxon.sum(axis=0), 1.0)).T,
        float(constant.mean()) if informed.any() else 0.0,
        _pairwise(codes[chosen]),
    )


def _pairwise(codes: Codes) -> Floats:
    """Share of different bases, for each pair of taxa, among the sites known in both."""
    shares = []
    for k in range(len(codes) - 1):
        both = np.count_nonzero((codes[k] > 0) & (codes[k + 1 :] > 0), axis=1)
        same = np.count_nonzero(codes[k] & codes[k + 1 :], axis=1)
        shares.append((both - same) / np.maximum(both, 1))
    return np.concatenate(shares) if shares else np.zeros(0)


def _composition(own: Floats, made: Floats) -> Check:
    p, worst = _distance_p(own, made)
    listed = ", ".join(f"{base} {100 * share:.1f} %" for base, share in zip(BASES, own))
    low, high = 100 * made[:, worst].min(), 100 * made[:, worst].max()
    verdict = _verdict(p, f"{BASES[worst]} is {_place(100 * own[worst], low, high)} the {low:.1f} to {high:.1f} % predicted")
    return Check("composition", p, f"Base composition ({listed}) {verdict}.")


def _taxa(own: Floats, made: Floats, taxa: Sequence[str]) -> Check:
    """Whether single taxa differ from the common composition more than they should."""
    spread, expected = _spread(own), np.array([_spread(m) for m in made])
    p = _upper_p(float(spread.sum()), expected.sum(axis=1))
    worst = int((spread - expected.mean(axis=0)).argmax())
    most = int(np.abs(own[worst] - own.mean(axis=0)).argmax())
    detail = f"{taxa[worst]} has {100 * own[worst, most]:.1f} % {BASES[most]}, all taxa {100 * own[:, most].mean():.1f} %"
    return Check("composition of taxa", p, f"The composition of single taxa {_verdict(p, detail)}.")


def _spread(shares: Floats) -> Floats:
    return np.square(shares - shares.mean(axis=0)).sum(axis=1)


def _rates(own: float, made: Floats) -> Check:
    """Constant sites: where rates differ between sites, more sites never change than one rate for all lets expect."""
    p = _two_sided_p(own, made)
    low, high = 100 * made.min(), 100 * made.max()
    place = _place(100 * own, low, high)
    hint = "; rates differ between sites" if place == "above" else ""
    detail = f"{100 * own:.1f} % of the sites are constant, {place} the {low:.1f} to {high:.1f} % predicted{hint}"
    return Check("site rates", p, f"The share of constant sites {_verdict(p, detail)}.")


def _distances(own: Floats, made: Floats, taxa: Sequence[str]) -> Check:
    if not own.size:
        return Check("pairwise distances", 1.0, "There are no pairwise distances to compare.")
    p, worst = _distance_p(own, made)
    first, second = (int(side[worst]) for side in np.triu_indices(len(taxa), 1))
    low, high = 100 * made[:, worst].min(), 100 * made[:, worst].max()
    detail = (
        f"{taxa[first]} and {taxa[second]} differ at {100 * own[worst]:.1f} % of their sites, "
        f"{_place(100 * own[worst], low, high)} the {low:.1f} to {high:.1f} % predicted"
    )
    return Check("pairwise distances", p, f"The matrix of pairwise distances {_verdict(p, detail)}.")


def _verdict(p: float, detail: str) -> str:
    return f"is not what the model predicts: {detail}" if p <= SURPRISE else "is as the model predicts"


def _place(value: float, low: float, high: float) -> str:
    return "below" if value < low else "above" if value > high else "at the edge of"


def _distance_p(own: Floats, made: Floats) -> tuple[float, int]:
    """How often simulated figures are as far from their mean as the observed ones, and which of those is farthest."""
    mean, spread = made.mean(axis=0), made.std(axis=0) + 1e-9
    distance = np.square((made - mean) / spread).sum(axis=1)
    apart = np.square((own - mean) / spread)
    return _upper_p(float(apart.sum()), distance), int(apart.argmax())


def _upper_p(own: float, made: Floats) -> float:
    return float((1 + np.count_nonzero(made >= own)) / (1 + len(made)))


def _two_sided_p(own: float, made: Floats) -> float:
    return min(1.0, 2 * min(_upper_p(own, made), _upper_p(-own, -made)))
