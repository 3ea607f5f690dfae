"""The command ``pykafka-core``.

``serve`` starts without typer and rich, whose import takes longer than the start of the broker; all
other commands are a typer application. The exit codes are 0 for success, 1 for a failure, 2 for
wrong usage, and 130 for an interruption by Ctrl-C. ``serve`` and ``consume --follow`` only end with
Ctrl-C and exit with 0; ``serve`` exits with 1 if its broker stopped by itself. A closed output pipe
is not a failure.
"""

import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence

from pykafka_core.errors import KafkaError, LocalError

from .errors import FAILED, INTERRUPTED, USAGE, CliError

__all__ = ["CliError", "exit_with", "main"]

# Modules that a plain installation does not contain, and the packages to install for them.
_EXTRAS = {"confluent_kafka": ("confluent-kafka", "'pykafka-core[cli]'")}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit the process with its code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    exit_with(lambda: _run(asked), "pykafka-core")


def exit_with(run: Callable[[], object], program: str) -> None:
    """Run a command and exit the process with its code; errors are printed after ``program``."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the stream was closed
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    code = _outcome(run, program)
    try:
        sys.stdout.flush()
    except OSError as error:  # otherwise the interpreter complains when it flushes at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not code and not isinstance(error, BrokenPipeError):
            code = _failed(error, program)
    sys.exit(code)


def _outcome(run: Callable[[], object], program: str) -> str | int | None:
    """Return the exit code of one command, or the text that `sys.exit` prints."""
    try:
        run()
    except CliError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return error.exit_code
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _EXTRAS:
            raise
        name, requirement = _EXTRAS[package]
        print(f"{program}: this command needs {name}: pip install {requirement}", file=sys.stderr)
        return USAGE
    except BrokenPipeError:  # the reader of the output has stopped reading
        return 0
    except (LocalError, KafkaError, OSError) as error:
        return _failed(error, program)
    except KeyboardInterrupt:
        return INTERRUPTED
    except RuntimeError as error:
        # Ctrl-C in a wait for a lock: its `with` then releases a lock that it does not hold.
        if isinstance(error.__context__, KeyboardInterrupt):
            return INTERRUPTED
        raise
    except SystemExit as error:  # from typer, for which a broken pipe is a failure
        return 0 if isinstance(error.__context__, BrokenPipeError) else error.code
    return 0


def _failed(error: Exception, program: str) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    print(f"{program}: {text}", file=sys.stderr)
    return FAILED


def _run(asked: list[str]) -> None:
    if asked[:1] == ["serve"]:
        # The default applies until `serve` catches it. A KeyboardInterrupt may be lost in callbacks
        # of importlib.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.disable()  # a start creates no garbage; `serve` enables the collector when it is ready
        from .serve import ServeOptions, serve

        options = ServeOptions.from_arguments(asked[1:])
        if options is not None:
            serve(options)
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
    from .app import app

    app(args=asked, prog_name="pykafka-core")
