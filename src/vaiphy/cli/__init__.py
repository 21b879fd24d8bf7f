"""The command `vaiphy`: a table of sub-commands, each loaded only when it is called.

Mistakes in what the user gave end with status 2, failures with status 1, each as plain messages on standard error;
Ctrl-C ends with status 130.
"""

import os

try:
    import io
    import sys
    from importlib import import_module
    from importlib.util import find_spec
    from typing import Any

    import click

    from vaiphy.errors import FailedError, InputError
except KeyboardInterrupt:  # these take a tenth of a second to load, in which people press Ctrl-C too
    os.write(2, b"\nstopped\n")
    raise SystemExit(130) from None

#: Sub-command -> what `vaiphy --help` says about it. The command lives in the module of that name, under that name.
COMMANDS = {
    "run": "Infer the posterior of trees and the marginal likelihood of an alignment.",
    "models": "Which model? Compare substitution models by their marginal likelihoods.",
    "merge": "Put the shards of a job array together.",
    "check": "Check an alignment and describe it.",
    "score": "Log-likelihood of a given tree.",
    "simulate": "Simulate a tree and an alignment.",
    "summarise": "Summarise a sample of trees: split support, consensus, credible sets.",
    "compare": "Compare tree samples: split frequencies and their differences.",
    "report": "Write the report of a finished run as one HTML page.",
    "warm": "Compile everything beforehand: for containers and clusters.",
    "figure": "Draw figures of the method: the JC sampler, a trace of SLANTIS.",
}

MAX_MESSAGES = 100
"""Problems printed before the rest is only counted."""


class LazyGroup(click.Group):
    """A group whose commands are imported when called, and which turns our exceptions into messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if find_spec(f"vaiphy.cli.{name}") is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        # Before NumPy is loaded, which some commands do at once. Matrices here are small, and work is shared among our own
        # threads: those of the linear algebra would only get in the way, by seconds where a helper compiles on the other core.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        command: click.Command = getattr(import_module(f"vaiphy.cli.{cmd_name}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if rows := [(name, COMMANDS[name]) for name in self.list_commands(ctx)]:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **options)
        except KeyboardInterrupt:
            click.echo("\nstopped", err=True)
            sys.exit(130)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except InputError as error:
            _complain(error.problems)
            ctx.exit(2)
        except KeyboardInterrupt:
            click.echo("\nstopped", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # The reader of our output (`| head`) has seen enough; keep Python from complaining at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)
        except FailedError as error:
            _complain((str(error),))
            ctx.exit(1)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _complain((f"{place}{error.strerror or error}",))
            ctx.exit(1)
        except MemoryError:
            _complain(("not enough memory for this job",))
            ctx.exit(1)


def _complain(problems: tuple[str, ...]) -> None:
    for problem in problems[:MAX_MESSAGES]:
        click.echo(f"error: {problem}", err=True)
    if len(problems) > MAX_MESSAGES:
        click.echo(f"error: ... and {len(problems) - MAX_MESSAGES} more problems", err=True)


def _show_version(ctx: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from vaiphy.cli.version import describe

        click.echo(describe())
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show versions and exit."
)
def main() -> None:
    """Bayesian phylogenetics: from an alignment to the posterior of trees and the marginal likelihood.

    Wherever an alignment is asked for, a FASTA, PHYLIP or NEXUS file will do (also gzipped), or the name of an
    embedded data set, DS1 to DS8. Start with a check, then run:

    \b
    vaiphy check primates.fasta
    vaiphy run primates.fasta
    """
    for stream in (sys.stdout, sys.stderr):
        # A name beyond the terminal's character set is shown with escapes, not with a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
