"""``doctor``: check a data directory, a port, the system's limits and a running broker."""

from pathlib import Path
from typing import Annotated

import typer

from pykafka_core.cli.options import Json, directory, not_empty


def doctor(
    data_dir: Annotated[
        Path | None,
        typer.Option(parser=directory, metavar="DIR", help="The data directory to check."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port that a broker will listen on."),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-server",
            "-b",
            parser=not_empty,
            metavar="HOST:PORT",
            help="The running broker to check.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check a directory, a port, the system's limits or a broker; show problems and what to do.

    Without options: ./data and port 9092, the defaults of `serve`. Changes nothing; exit code 1 if
    there is a problem. For example: `pykafka-core doctor --data-dir ./data --port 9092`
    """
    from .diagnosis import diagnose

    diagnose(data_dir, port, bootstrap, as_json=as_json)
