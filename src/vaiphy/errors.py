"""The two ways in which a command can end badly: what it was given is wrong, or it could not be done."""


class InputError(ValueError):
    """What the user gave is wrong: every problem found, one message each. Commands print them and exit with 2."""

    def __init__(self, *problems: str) -> None:
        super().__init__(*problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(self.problems)


class FailedError(RuntimeError):
    """The input is fine, the work could not be done (disk full, peer program missing, ...). Exit status 1."""
