"""Options in groups, the everyday ones first, and values people write in several ways."""

import re
from typing import Any

import click

from vaiphy.errors import InputError
from vaiphy.parallel import available_threads

#: The longest time limit, 1000 days, and the largest number of trees that a burn-in may leave out.
MAX_SECONDS, MAX_BURNIN = 1000 * 86400.0, 1e9


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings, in the order in which they were declared."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                groups.setdefault(getattr(parameter, "group", "Other options"), []).append(record)
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


class GroupedOption(click.Option):
    """An option with a heading."""

    def __init__(self, *args: Any, group: str = "Other options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group


class Threads(click.ParamType):
    """A number of threads, or "auto" for all cores."""

    name = "N|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if str(value).lower() == "auto":
            return available_threads()
        if not re.fullmatch(r"[1-9][0-9]{0,3}", str(value)):
            raise InputError(f"--threads: {value!r} is neither a number of threads (1 to 9,999) nor 'auto'")
        return int(value)


class Duration(click.ParamType):
    """A time: seconds, or with a unit as in 90s, 10m, 2h."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        found = re.fullmatch(r"([0-9]+\.?[0-9]*|\.[0-9]+)\s*([smhd]?)", str(value).strip().lower())
        seconds = float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]] if found else 0.0
        if not 0 < seconds <= MAX_SECONDS:
            raise InputError(f"--time-limit: {value!r} is not a time; write seconds, or 90s, 10m, 2h, at most 1000d")
        return seconds


class BurnIn(click.ParamType):
    """A burn-in, or two with a comma between: one for each side."""

    name = "X[,Y]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[float, float]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 2 or not all(0 <= number <= MAX_BURNIN for number in numbers):
            raise InputError(f"--burnin: {value!r} is not a burn-in; write 0.25, 100, or two with a comma between")
        return numbers[0], numbers[-1]
