"""What a fit of VaiPhy is asked to do."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Settings:
    """What a fit does.

    `tree_law`: the exact "spanning" distribution or "slantis" with `n_trees` draws an iteration. `branch_law`: "optimal"; "jc"
    (the JC sampler with the prior Beta(*`jc_prior`) on p_same); "likely" trains with closed-form lengths and samples
    from the JC sampler, as the paper did. `step_size` damps the update of q(Z) in its natural parameters, or in
    probabilities with `mix_probabilities` (the paper's Alg. 1). Columns with less than `min_observed` of the taxa
    observed inform no proposal. `prior_share` mixes the prior into each sampled branch length. `accepted_only` is the
    paper's density of SLANTIS. Training ends after `iterations`, or when the ELBO gains less than `tolerance`
    (spanning distribution).
    """

    tree_law: Literal["spanning", "slantis"] = "spanning"
    branch_law: Literal["optimal", "jc", "likely"] = "optimal"
    iterations: int = 200
    n_trees: int = 128
    step_size: float = 1.0
    mix_probabilities: bool = False
    prior_rate: float = 10.0
    jc_prior: tuple[float, float] = (1.0, 1.0)
    min_observed: float = 0.25
    prior_share: float = 0.0
    accepted_only: bool = False
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        if self.tree_law not in ("spanning", "slantis"):
            raise ValueError(f"tree_law is {self.tree_law!r}, expected 'spanning' or 'slantis'")
        if self.branch_law not in ("optimal", "jc", "likely"):
            raise ValueError(f"branch_law is {self.branch_law!r}, expected 'optimal', 'jc' or 'likely'")
        if not 0.0 < self.step_size <= 1.0:
            raise ValueError(f"step_size is {self.step_size}, expected a number above 0 and at most 1")
        if self.prior_rate < 4.0 / 3.0:
            raise ValueError(
                f"the prior rate of branch lengths is {self.prior_rate:g}; "
                "the method vaiphy needs at least 4/3 (a mean of at most 0.75)"
            )
        if not 0.0 <= self.prior_share < 1.0:
            raise ValueError(f"prior_share is {self.prior_share}, expected a number of at least 0 and below 1")
        if self.iterations < 0 or self.n_trees < 1:
            raise ValueError("iterations must not be negative and n_trees must be positive")

    @property
    def sampled_score(self) -> bool:
        """Whether iterations are compared by a small IWELBO instead of the exact ELBO."""
        return self.tree_law == "slantis" or self.branch_law == "likely"
