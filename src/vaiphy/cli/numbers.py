"""Numbers on the command line: each with a stated range, and one line when the value is outside it."""

from math import isfinite
from typing import Any

import click

from vaiphy.errors import InputError
from vaiphy.ranges import PRIOR_NUMBERS, RANGES, say_range


class Number(click.ParamType):
    """A finite number from `low` to `high`; without a decimal point if `whole`."""

    name = "number"

    def __init__(self, low: float, high: float, whole: bool = False) -> None:
        self.low, self.high, self.whole = low, high, whole

    @property
    def range(self) -> str:
        """The range in words, for help and messages."""
        return say_range(self.low, self.high)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        what = "a whole number" if self.whole else "a number"
        option = param.opts[-1] if param is not None else "value"
        try:
            number = int(value) if self.whole else float(value)
        except (ValueError, OverflowError):
            raise InputError(f"{option}: {value!r} is not {what}; give one from {self.range}") from None
        if not (isfinite(number) and self.low <= number <= self.high):
            raise InputError(f"{option}: {value} is out of range; give {what} from {self.range}")
        return number


class Whole(Number):
    """A whole number from `low` to `high`."""

    def __init__(self, low: int, high: int) -> None:
        super().__init__(low, high, whole=True)


def setting(name: str, whole: bool = False) -> Number:
    """The range of a setting of `vaiphy run`."""
    _, low, high = RANGES[name]
    return Number(low, high, whole)


def prior_number() -> Number:
    """The range of the numbers of a prior of branch lengths."""
    return Number(*PRIOR_NUMBERS)
