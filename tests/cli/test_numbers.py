"""Numeric options: every one has a range, and a value outside it is one line and status 2."""

import click
import pytest
from click.testing import CliRunner

from vaiphy import cli
from vaiphy.cli.numbers import Number
from vaiphy.errors import InputError
from vaiphy.methods.settings import Settings
from vaiphy.runner import run as runner

WILD = ("inf", "-inf", "nan", "1e300", "-1", "1e-300", "abc", "")


def numeric_options():
    """Every option of every command that takes a number, as (words of the command, option, accepted values)."""
    context = click.Context(cli.main)
    found = []
    for name in cli.main.list_commands(context):
        command = cli.main.get_command(context, name)
        commands = command.commands.values() if isinstance(command, click.Group) else [command]
        for inner in commands:
            words = [name] if inner is command else [name, inner.name]
            for option in inner.params:
                if isinstance(option, click.Option) and not option.is_flag:
                    bare = type(option.type).__name__
                    found.append((words, option.opts[-1], option.type, bare))
    return found


def test_no_option_takes_an_unlimited_number():
    loose = [
        (words, option)
        for words, option, _, kind in numeric_options()
        if kind in ("IntParamType", "FloatParamType", "FloatRange", "IntRange")
    ]
    assert loose == []


def test_the_help_of_every_number_states_its_range():
    context = click.Context(cli.main)
    silent = []
    for name in cli.main.list_commands(context):
        command = cli.main.get_command(context, name)
        for inner in command.commands.values() if isinstance(command, click.Group) else [command]:
            numbers = [option for option in inner.params if isinstance(option.type, Number)]
            silent += [(name, option.opts[-1]) for option in numbers if option.type.range not in (option.help or "")]
    assert silent == []


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (tuple(words), option)
        for words, option, _, kind in numeric_options()
        if kind in ("Number", "Whole", "BurnIn", "Duration", "Threads")
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else value,
)
def test_wild_values_are_one_line(words, option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.fasta").write_text(">a\nACGT\n>b\nACGT\n>c\nACGT\n>d\nACGT\n")
    (tmp_path / "x.nwk").write_text("(a,b,(c,d));\n" * 4)
    given = {"run": ["x.fasta"], "summarise": ["x.nwk"], "compare": ["x.nwk", "x.nwk"], "figure": ["x.svg"]}.get(words[0], [])
    before = sorted(tmp_path.iterdir())
    for value in WILD:
        if option in ("--missing", "--burnin", "--changes") and value == "1e-300":
            continue  # a share or a count may be tiny
        result = CliRunner().invoke(cli.main, [*words, *given, option, value], catch_exceptions=False)
        assert result.exit_code == 2, (value, result.output)
        lines = [line for line in result.stderr.splitlines() if not line.startswith("VaiPhy ")]
        assert len(lines) == 1, (value, lines)
        assert lines[0].startswith(f"error: {option}: ")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("rate", [0.0, -1.0, 0.019, 1.1e6, 1e300, float("inf"), float("nan")])
def test_rates_of_the_prior_that_are_not_accepted(rate):
    with pytest.raises(InputError, match=r"prior of branch lengths .*must be from 0\.02 to 1,000,000, not"):
        Settings(seed=1, length_prior=f"exp({rate})")


def test_rates_of_the_prior_that_are_accepted():
    assert [Settings(seed=1, length_prior=f"exp({rate})").prior_rate for rate in (0.02, 10.0, 1e6)] == [0.02, 10.0, 1e6]


def test_a_time_limit_is_a_positive_number():
    for seconds in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="time limit"):
            runner.run("DS1", time_limit=seconds)
