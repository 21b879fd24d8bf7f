"""What every method offers."""

from typing import Any, Protocol

from numpy.typing import NDArray

from vaiphy.alignment import SitePatterns
from vaiphy.methods.outcome import Outcome, Progress
from vaiphy.methods.settings import Settings


class NotYet(RuntimeError):
    """There is no result to hand over yet: more steps are needed."""


class Method(Protocol):
    """One way to go from an alignment to an outcome.

    States are values: whatever makes a new one leaves the one it was given as it was, so that a run can keep an old one.
    """

    def initialise(self, patterns: SitePatterns, settings: Settings) -> Any: ...

    def step(self, state: Any, threads: Any) -> tuple[Any, Progress]:
        """One step on a number of threads, or, where a method can (`posterior`), by a pool (`workers.spread.Workers`)."""
        ...

    def hurried(self, state: Any) -> Any:
        """The state with the quickest way to an answer ahead of it, for a run whose time is up (the same, if there is none)."""
        ...

    def is_done(self, state: Any) -> bool: ...

    def to_arrays(self, state: Any) -> dict[str, NDArray]: ...

    def from_arrays(self, arrays: dict[str, NDArray], patterns: SitePatterns, settings: Settings) -> Any: ...

    def outcome(self, state: Any) -> Outcome:
        """The best answer so far; raises `NotYet` if there is none."""
        ...
