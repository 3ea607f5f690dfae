"""Results on stdout: tables for people, JSON for scripts."""

import base64
import json
from collections.abc import Mapping, Sequence


def print_json(value: object) -> None:
    """Print one JSON document on one line."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def json_bytes(value: str | bytes | None) -> object:
    """Text where it is UTF-8, else ``{"base64": …}``: nothing is lost."""
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode("ascii")}


def print_table(rows: Sequence[Mapping[str, object]], *, title: str = "", empty: str) -> None:
    """Print rows of the same keys as a table; ``empty`` when there are none."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not rows:
        print(empty)
        return
    table = Table(title=title or None, title_justify="left")
    for name, value in rows[0].items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        table.add_column(
            name.replace("_", " "), justify="right" if number else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    Console().print(table)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
