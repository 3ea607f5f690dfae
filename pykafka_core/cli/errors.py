"""What a command says when it fails."""

from typing import Final

FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130


class CliError(Exception):
    """A command that cannot do what was asked.

    Args:
        text: What is wrong.
        advice: What to do.
        exit_code: 1 it failed, 2 it was asked wrongly, 130 it was interrupted.
    """

    def __init__(self, text: str, advice: str = "", *, exit_code: int = FAILED) -> None:
        whole = f"{text}\n  {advice}" if advice else text
        # It may repeat an argument that is not UTF-8.
        super().__init__(whole.encode(errors="backslashreplace").decode())
        self.exit_code = exit_code
