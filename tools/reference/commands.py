"""docs/reference/cli.md: commands of the typer application, with arguments and options."""

from collections.abc import Iterator
from typing import Any

import typer

from pykafka_core.cli.app import app

from .tables import table

PROGRAM = "pykafka-core"
_INTRODUCTION = """# Commands

`pykafka-core COMMAND --help` shows the same in a terminal. The exit code is 0 for success, 1 for a failure, 2 for wrong
usage, and 130 for an interruption by Ctrl-C, which ends `serve` and `consume --follow` with 0. Written by
`python -m tools.reference`; do not edit.
"""


def render() -> str:
    """Return the page."""
    root: Any = typer.main.get_command(app)
    panels: dict[str, list[str]] = {}
    for name, command in root.commands.items():
        panels.setdefault(command.rich_help_panel, []).extend(
            _sections(f"{PROGRAM} {name}", command)
        )
    return "\n".join(
        [_INTRODUCTION, *(f"## {_plain(panel)}\n\n" + "\n".join(panels[panel]) for panel in panels)]
    )


def _sections(path: str, command: Any) -> Iterator[str]:
    """Yield the section of a command, or of a group of commands and of each command in it.

    The types of commands are not those of click in each version of typer.
    """
    context = typer.Context(command, info_name=path)
    lines = [f"### {path}\n", f"{_plain(command.help)}\n"]
    commands = getattr(command, "commands", {})
    if not commands:
        lines.append(f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n")
    records = [parameter.get_help_record(context) for parameter in command.params]
    if rows := [[f"`{record[0]}`", _plain(record[1])] for record in records if record]:
        lines.append(table(["Argument or option", "Meaning"], rows))
    yield "\n".join(lines)
    for name, one in commands.items():
        yield from _sections(f"{path} {name}", one)


def _plain(text: str) -> str:
    """Remove the escapes of rich's markup."""
    return text.replace("\\[", "[")
