"""Removes variables that change the colour, width or length of the output of programs."""

import os

CHANGING = (
    *("CI", "BUILD_NUMBER", "GITHUB_ACTIONS"),  # pytest prints whole messages, Typer colours
    "PYTEST_ADDOPTS",
    *("FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS"),
    *("TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "LINES"),
)
"""Variables that pytest, Rich, Typer and Click read."""


def install() -> None:
    """Remove the variables for this process and the programs that it starts."""
    for name in CHANGING:
        os.environ.pop(name, None)
