"""The files and commands that a tutorial shows.

python -m tools.site.tutorial PAGE FOLDER    write the files into a folder
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_FENCE = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def files(page: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each program."""
    for language, name, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            yield name, text


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Yield each command with its output."""
    for language, _, text in _FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            yield from _COMMAND.findall(text)


def write(page: Path, folder: Path) -> None:
    """Write the programs of a page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files(page):
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
