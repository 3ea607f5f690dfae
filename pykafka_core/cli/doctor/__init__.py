"""``doctor``: check a data directory, a port, the system's limits and a running broker."""

from pathlib import Path
from typing import Annotated

import typer

from pykafka_core.cli.options import Json, directory, not_empty


def doctor(
    data_dir: Annotated[
        Path | None,
        typer.Option(parser=directory, metavar="DIR", help="A data directory to look at."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="A port that a broker is to listen at."),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            parser=not_empty,
            metavar="HOST:PORT",
            help="A running broker.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is wrong with a directory, a port, the system's limits or a broker, and what to do.

    Without options: ./data and port 9092, which `serve` takes. Changes nothing; exit code 1 if there is a problem.
    For example `pykafka-core doctor --data-dir ./data --port 9092`
    """
    from .diagnosis import diagnose

    diagnose(data_dir, port, bootstrap, as_json=as_json)
