"""The settings of a run: everything that its result depends on, apart from the alignment."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from vaiphy.errors import InputError

#: Settings that change the files but not the sample they are made from.
OUTPUT_ONLY = frozenset({"outgroup", "n_trees"})


@dataclass(frozen=True)
class Settings:
    """What a run is asked to do. The number of threads is not among it: results do not depend on it.

    `accuracy` is the standard error of the log-evidence asked for; `iterations` and `particles` of None mean the method's
    own default; `n_trees` is the number of equal-weight trees written for other programs.
    """

    seed: int
    method: str = "posterior"
    replicates: int = 4
    accuracy: float = 0.05
    prior_rate: float = 10.0
    tree_law: str | None = None
    iterations: int | None = None
    particles: int | None = None
    outgroup: tuple[str, ...] = ()
    n_trees: int = 1000

    def __post_init__(self) -> None:
        object.__setattr__(self, "outgroup", tuple(self.outgroup))
        problems = [
            message
            for wrong, message in (
                (not 0 <= self.seed < 2**63, f"the seed must be a number from 0 to 2^63 - 1, not {self.seed}"),
                (self.replicates < 2, f"at least 2 replicates are needed to judge a result, not {self.replicates}"),
                (not self.accuracy > 0, f"the accuracy is a standard error and must be positive, not {self.accuracy}"),
                (not self.prior_rate > 0, f"the rate of the branch-length prior must be positive, not {self.prior_rate}"),
                (self.iterations is not None and self.iterations < 1, "at least 1 iteration is needed"),
                (self.particles is not None and self.particles < 2, "at least 2 particles are needed"),
                (self.n_trees < 1, "at least 1 tree must be written"),
            )
            if wrong
        ]
        if problems:
            raise InputError(*problems)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"outgroup": list(self.outgroup)}

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
    return ",".join(value) if isinstance(value, tuple) else str(value)
