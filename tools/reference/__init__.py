"""Pages of docs/reference that are written from the code.

python -m tools.reference
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from . import commands, error_codes, metrics

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "cli.md": commands.render,
    "error-codes.md": error_codes.render,
    "metrics.md": metrics.render,
}
"""File below docs/reference → the function that returns its text."""
