"""The command ``pykafka-core``.

``serve`` starts without typer and rich, which take longer to import than the broker takes to start; everything else is
a typer application. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C; ``serve`` and
``consume --follow``, which only Ctrl-C ends, exit with 0, and ``serve`` with 1 if its broker stopped by itself. A
closed output pipe is not a failure.
"""

import gc
import os
import signal
import sys
from collections.abc import Sequence

from pykafka_core.errors import KafkaError, LocalError

from .errors import FAILED, INTERRUPTED, USAGE, CliError

__all__ = ["CliError", "main"]

# Modules that a plain install does not bring, and what to install for them.
_EXTRAS = {"confluent_kafka": ("confluent-kafka", "'pykafka-core[cli]'")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit the process with its code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    code = _outcome(asked)
    try:
        sys.stdout.flush()
    except OSError as error:  # else the interpreter complains when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not code and not isinstance(error, BrokenPipeError):
            code = _failed(error)
    sys.exit(code)


def _outcome(asked: list[str]) -> str | int | None:
    """The exit code of one command, or the text that `sys.exit` prints."""
    try:
        _run(asked)
    except CliError as error:
        print(f"pykafka-core: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        name, requirement = _EXTRAS[package]
        print(
            f"pykafka-core: this command needs {name}: pip install {requirement}", file=sys.stderr
        )
        return USAGE
    except BrokenPipeError:  # whoever read our output has seen enough
        return 0
    except (LocalError, KafkaError, OSError) as error:
        return _failed(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except RuntimeError as error:
        # Ctrl-C within a wait for a lock: its `with` then lets go of what it does not hold.
        if isinstance(error.__context__, KeyboardInterrupt):
            return INTERRUPTED
        raise
    except SystemExit as error:  # typer's; it calls a broken pipe a failure
        return 0 if isinstance(error.__context__, BrokenPipeError) else error.code
    return 0


def _failed(error: Exception) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    print(f"pykafka-core: {text}", file=sys.stderr)
    return FAILED


def _run(asked: list[str]) -> None:
    if asked[:1] == ["serve"]:
        # Until `serve` catches it. A KeyboardInterrupt may be lost: importlib's callbacks swallow it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.disable()  # a start makes no garbage; `serve` begins to collect when it is ready
        from .serve import ServeOptions, serve

        options = ServeOptions.from_arguments(asked[1:])
        if options is not None:
            serve(options)
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
    from .app import app

    app(args=asked, prog_name="pykafka-core")
