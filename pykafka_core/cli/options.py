"""Options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

Bootstrap = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT",
        envvar="PYKAFKA_BOOTSTRAP_SERVERS",
        help="A broker of the cluster; default: 127.0.0.1:9092.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="For scripts: JSON on stdout.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def not_empty(text: str) -> str:
    """Refuse an empty text; otherwise ``--data=$UNSET`` means the current folder."""
    if not text:
        raise typer.BadParameter("it is empty; name it, or leave the option out")
    return text


def directory(text: str) -> Path:
    """Return the path of a directory, which may not exist."""
    return Path(not_empty(text))
