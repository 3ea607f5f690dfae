"""The error of a command that fails."""

from typing import Final

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


class CliError(Exception):
    """An error of a command that cannot do its work.

    Args:
        text: The problem.
        advice: A way to solve it.
        exit_code: 1 after a failure, 2 after wrong usage, 130 after an interruption.
    """

    def __init__(self, text: str, advice: str = "", *, exit_code: int = FAILED) -> None:
        whole = f"{text}\n  {advice}" if advice else text
        # The text may repeat an argument that is not UTF-8.
        super().__init__(whole.encode(errors="backslashreplace").decode())
        self.exit_code = exit_code
