"""Options that several commands share."""

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
