"""Results on stdout: tables for people, JSON for scripts."""

import base64
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pykafka_core.cli.errors import CliError

if TYPE_CHECKING:
    from rich.table import Table

_WIDTH_MAX = 100_000


class Moment(int):
    """A Unix time in milliseconds; a table shows it as a date, and below 0 it is unknown."""


def print_json(value: object) -> None:
    """Print one JSON document on one line."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def json_bytes(value: str | bytes | None) -> object:
    """Return text if it is UTF-8, otherwise ``{"base64": …}``, so that nothing is lost."""
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def print_table(rows: Sequence[Mapping[str, object]], *, title: str = "", empty: str) -> None:
    """Print rows with the same keys as a table, or ``empty`` if there are none.

    Values are never wrapped. On a narrow terminal headers are; then lines may exceed the terminal.
    """
    from rich.console import Console

    if not rows:
        print(empty)
        return
    width = Console().width
    table, needed = _table(rows, title, header_lines=False)
    if needed > width:
        table, needed = _table(rows, title, header_lines=True)
    Console(width=max(width, needed)).print(table)


def table(rows: Sequence[Mapping[str, object]]) -> "Table":
    """Return a table for a part of the screen that is redrawn; it has one or more rows.

    Its lines must fit the terminal: on a narrow one, headers and then texts continue on the next
    line. Nothing is cut off.
    """
    from rich.console import Console

    table, needed = _table(rows, "", header_lines=False)
    if needed > Console().width:
        table, _ = _table(rows, "", header_lines=True)
    return table


def _table(
    rows: Sequence[Mapping[str, object]], title: str, *, header_lines: bool
) -> "tuple[Table, int]":
    """Return the table and the width that it needs.

    With ``header_lines`` each word of a header has its own line.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title or None, title_justify="left")
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        header = name.replace("_", "\n" if header_lines else " ")
        table.add_column(
            Text(header),
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number or not header_lines,
        )
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    return table, Console(width=_WIDTH_MAX).measure(table).maximum


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Moment):
        return "" if value < 0 else _date(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _date(moment: Moment) -> str:
    date = datetime.fromtimestamp(moment / 1000, UTC)
    return date.isoformat(timespec="milliseconds")


def is_terminal() -> bool:
    """Return whether a person can answer on stdin."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation on stderr at a terminal; scripts get no question.

    Args:
        question: It names the action and its objects.
        yes: Whether an option has already confirmed it.

    Raises:
        CliError: The answer is not yes.
    """
    if yes or not is_terminal():
        return
    if not _is_agreed(question):
        raise CliError("nothing was done")


def agree(question: str, *, refused: str, option: str) -> None:
    """Ask for confirmation on stderr at a terminal; without a terminal the answer is no.

    Args:
        question: It names the action.
        refused: The error if the answer is not yes.
        option: The option with which scripts confirm.

    Raises:
        CliError: The answer is not yes.
    """
    if not is_terminal():
        raise CliError(refused, option)
    try:
        is_agreed = _is_agreed(question)
    except KeyboardInterrupt:
        print()
        is_agreed = False
    if not is_agreed:
        raise CliError(refused)


def _is_agreed(question: str) -> bool:
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    try:
        answer = input()
    except EOFError:
        print(file=sys.stderr)
        return False
    return answer.strip().lower() in ("y", "yes")
