"""The command ``pykafka-core``.

``serve`` starts without typer and rich, which cost more time to import than the broker to start; everything else is a
typer application. Exit codes: 0 done, 1 it failed, 2 it was asked wrongly.
"""

import gc
import sys
from collections.abc import Sequence

from .errors import CliError

__all__ = ["CliError", "main"]

_MISSING = "typer", "rich", "confluent_kafka"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit the process with its code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _run(asked)
    except CliError as error:
        print(f"pykafka-core: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if error.name not in _MISSING:
            raise
        print(
            f"pykafka-core: this command needs {error.name}: pip install 'pykafka-core[cli]'",
            file=sys.stderr,
        )
        sys.exit(2)
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain at exit.
        sys.stderr.close()
        sys.exit(0)


def _run(asked: list[str]) -> None:
    if asked[:1] == ["serve"]:
        gc.disable()  # a start makes no garbage; `serve` begins to collect when it is ready
        from .serve import ServeOptions, serve

        options = ServeOptions.from_arguments(asked[1:])
        if options is not None:
            serve(options)
            return
    from .app import app

    app(args=asked, prog_name="pykafka-core")
