"""Options of several commands."""

from pathlib import Path
from typing import Annotated, Literal

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
Acks = Annotated[
    Literal["0", "1", "all"],
    typer.Option(help="Replicas that must confirm: none (0), the leader (1), or all in sync."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to stdout, for scripts.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]


def not_empty(text: str) -> str:
    """Refuse an empty text; otherwise ``--data=$UNSET`` means the current folder."""
    if not text:
        raise typer.BadParameter("it is empty; give a value, or leave the option out")
    return text


def directory(text: str) -> Path:
    """Return the path of a directory, which may not exist."""
    return Path(not_empty(text))
