"""The command line of the demo: ``python -m examples.demo``, from the root of the repository."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pykafka_core.cli import exit_with

from . import run
from .flights import FLIGHTS_COUNT

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def demo(
    data: Annotated[
        Path | None,
        typer.Option(help="Data directory, which is kept; default: a temporary directory."),
    ] = None,
    flights: Annotated[
        int, typer.Option(min=1, max=FLIGHTS_COUNT, help="Number of flights, from the first on.")
    ] = FLIGHTS_COUNT,
    spark: Annotated[
        bool, typer.Option(help="Also count them with Spark; needs Java and pykafka_core\\[spark].")
    ] = True,
    plots: Annotated[Path, typer.Option(help="Directory for the plots of the Spark part.")] = Path(
        "pykafka-core-demo"
    ),
) -> None:
    """Send 336,776 flights through a broker and read them back; then count them with Spark."""
    run(data, flights, spark, plots)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo, and exit the process with the codes of `pykafka_core.cli`."""
    exit_with(lambda: app(args=arguments, prog_name="python -m examples.demo"), "demo")


if __name__ == "__main__":
    main()
