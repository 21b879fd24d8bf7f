"""The settings of a run: everything that its result depends on, apart from the alignment."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from vaiphy.errors import InputError
from vaiphy.models.priors import length_prior
from vaiphy.ranges import RANGES, outside

#: Settings that change the files but not the sample they are made from.
OUTPUT_ONLY = frozenset({"outgroup", "n_trees"})

#: Settings that belong to one method, and what they may be.
CHOICES = {
    "proposal": ("phi-csmc", ("guided", "pairwise", "paper", "authors")),
    "flow": ("vbpi", ("none", "planar", "realnvp")),
    "base": ("vbpi", ("lognormal", "jc")),
}

#: With smaller Dirichlet parameters of branch lengths, lengths below the least one sampled (1e-11) would count.
LEAST_ALPHA = 0.5


@dataclass(frozen=True)
class Settings:
    """What a run is asked to do. The number of threads is not among it: results do not depend on it.

    `model` is a model string as IQ-TREE writes them (None: the usual one of the alphabet for the method posterior, JC for the
    paper's methods); `length_prior` exp(RATE) or gammadir(aT,bT,a,c). `accuracy` is the standard error of the log-evidence
    asked for; `iterations` and `particles` of None mean the method's own default; `bridges` is a fixed number of final bridges,
    whatever their accuracy (None: until it is reached); `prior_only` leaves the data out;
    `partition` are the parts with a model each, as lines of a RAxML-NG partition file (empty: one model for all sites),
    `part_rates` "free" gives each part a relative rate, "linked" none; `constraints` are the splits that trees must or must not
    have, in the lines of `formats.constraints`; `n_trees` is the number of equal-weight trees written
    for other programs. `proposal` of phi-csmc, `flow` and `base` of vbpi: None means the method's own.
    """

    seed: int
    method: str = "posterior"
    replicates: int = 4
    accuracy: float = 0.1
    model: str | None = None
    length_prior: str = "exp(10)"
    tree_law: str | None = None
    iterations: int | None = None
    particles: int | None = None
    bridges: int | None = None
    prior_only: bool = False
    outgroup: tuple[str, ...] = ()
    n_trees: int = 1000
    partition: tuple[str, ...] = ()
    part_rates: str = "free"
    proposal: str | None = None
    flow: str | None = None
    base: str | None = None
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "outgroup", tuple(self.outgroup))
        object.__setattr__(self, "partition", tuple(self.partition))
        object.__setattr__(self, "constraints", tuple(self.constraints))
        prior = length_prior(self.length_prior)
        object.__setattr__(self, "length_prior", str(prior))
        problems = outside((key, getattr(self, key)) for key in RANGES)
        if self.method != "posterior" and (self.model or "JC").upper() not in ("JC", "JC69"):
            other = "--method posterior takes any model"
            problems.append(f"the method {self.method} supports only the model JC, not {self.model}; {other}")
        if self.method != "posterior" and prior.kind != "exp":
            problems.append(f"the method {self.method} supports only exponential branch lengths, not {prior}")
        if prior.kind == "gammadir" and min(prior.numbers[2], prior.numbers[2] * prior.numbers[3]) < LEAST_ALPHA:
            problems.append(
                f"the prior of branch lengths {prior} has a Dirichlet parameter below {LEAST_ALPHA:g}: much of it lies on "
                "branches too short to be sampled; a and a times c must be larger"
            )
        if self.method != "posterior" and self.prior_only:
            problems.append(f"the method {self.method} cannot leave the data out; --prior-only is for --method posterior")
        if self.method != "posterior" and self.bridges is not None:
            problems.append(f"the method {self.method} has no bridges; --bridges is for --method posterior")
        if self.bridges is not None and self.bridges < self.replicates:
            problems.append(f"{self.replicates} replicates need at least as many bridges, not {self.bridges}")
        if self.method != "posterior" and self.partition:
            problems.append(f"the method {self.method} does not support partitions; --method posterior does")
        if self.method != "posterior" and self.constraints:
            problems.append(f"the method {self.method} does not support constraints; --method posterior does")
        if self.part_rates not in ("free", "linked"):
            problems.append(f"rates of parts are free or linked, not {self.part_rates}")
        for name, (owner, known) in CHOICES.items():
            value = getattr(self, name)
            if value is not None and self.method != owner:
                problems.append(f"--{name} is for --method {owner}, not for {self.method}")
            elif value is not None and value not in known:
                problems.append(f"the {name} is one of {', '.join(known)}, not {value}")
        if problems:
            raise InputError(*problems)

    @property
    def prior_rate(self) -> float:
        """Rate of the exponential prior of branch lengths (NaN if they have another one)."""
        prior = length_prior(self.length_prior)
        return prior.numbers[0] if prior.kind == "exp" else float("nan")

    @property
    def model_name(self) -> str:
        """The model string; if none was given that of nucleotides (`methods.target` knows the other alphabets); of parts, all."""
        if self.partition:
            names = dict.fromkeys(line.partition(", ")[0] for line in self.partition)
            own = " and ".join(names) if len(names) < 3 else f"{len(names)} models"
            return f"{len(self.partition)} parts ({own}), rates {self.part_rates}" if len(self.partition) > 1 else own
        return self.model or ("GTR+G4" if self.method == "posterior" else "JC")

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {name: list(getattr(self, name)) for name in ("outgroup", "partition", "constraints")}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Settings":
        return cls(**values)


def differences(before: Settings, now: Settings) -> list[tuple[str, str]]:
    """What two settings differ in: the name of the field, and the difference in words."""
    return [
        (field.name, f"{field.name.replace('_', ' ')} {_say(getattr(before, field.name))}, now {_say(getattr(now, field.name))}")
        for field in fields(Settings)
        if getattr(before, field.name) != getattr(now, field.name)
    ]


def _say(value: Any) -> str:
    if value is None or value == ():
        return "not given"
    return ("; " if any("," in item for item in value) else ",").join(value) if isinstance(value, tuple) else str(value)
