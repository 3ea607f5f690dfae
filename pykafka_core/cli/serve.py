"""``serve``: run one broker in the foreground, until SIGTERM or Ctrl-C."""

import errno
import gc
import logging
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple, get_args

from pykafka_core.config import SettingsFileError, read_settings
from pykafka_core.errors import (
    ClosedError,
    ConfigurationError,
    KafkaError,
    LocalError,
    StartGivenUpError,
)
from pykafka_core.types import Durability

from .errors import USAGE, CliError

if TYPE_CHECKING:
    from pykafka_core import Broker
    from pykafka_core.broker.metrics.server import MetricsServer

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_DATA = Path("data")
OBJECTS_BEFORE_COLLECTION = 5_000
COLLECTIONS_BEFORE_OLDER = 1
"""The number of collections of a generation before one of the next older generation; each has few
objects.
"""
_OLDEST = 2
OBJECTS_FREE = 100_000
"""The number of objects that may be frozen beyond twice the last full collection."""
PORT_MAX = 65535
DEFAULT_LOG_LEVEL = "warning"
DEFAULT_STOP_TIMEOUT_S = 25
"""Kubernetes kills a container 30 seconds after SIGTERM."""
LOG_LEVELS = frozenset({"debug", "info", "warning", "error"})
DURABILITIES: dict[str, Durability] = {name: name for name in get_args(Durability)}


class ServeOptions(NamedTuple):
    """The options of ``serve``; ``settings`` are NAME=VALUE."""

    data: Path | None = None
    listen: str | None = None
    durability: Durability | None = None
    config: Path | None = None
    settings: tuple[str, ...] = ()
    log_level: str = DEFAULT_LOG_LEVEL
    metrics: str | None = None
    stop_timeout_s: int = DEFAULT_STOP_TIMEOUT_S

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> "ServeOptions | None":
        """Parse well-formed arguments; ``None`` leaves others (``--help``, mistakes) to typer."""
        found: dict[str, list[str]] = {}
        rest = iter(arguments)
        for argument in rest:
            name, equals, value = argument.partition("=")
            taken = value if equals else next(rest, None)
            if name not in _OPTIONS or taken is None:
                return None
            found.setdefault(name, []).append(taken)
        if found.get("--durability", ["os"])[-1] not in DURABILITIES:
            return None
        if found.get("--log-level", [DEFAULT_LOG_LEVEL])[-1] not in LOG_LEVELS:
            return None
        stop_timeout = found.get("--stop-timeout", [str(DEFAULT_STOP_TIMEOUT_S)])[-1]
        if not (stop_timeout.isascii() and stop_timeout.isdecimal() and int(stop_timeout)):
            return None
        if not all(map(all, found.values())):  # --data= means the current folder otherwise
            return None
        last = {name: values[-1] for name, values in found.items()}
        return cls(
            data=Path(last["--data"]) if "--data" in last else None,
            listen=last.get("--listen"),
            durability=DURABILITIES[last["--durability"]] if "--durability" in last else None,
            config=Path(last["--config"]) if "--config" in last else None,
            settings=tuple(found.get("--set", ())),
            log_level=last.get("--log-level", DEFAULT_LOG_LEVEL),
            metrics=last.get("--metrics"),
            stop_timeout_s=int(stop_timeout),
        )


_ADVICE = {
    errno.EADDRINUSE: "another process uses that port: stop it, or choose another port with --listen (0 is a free one)",
    errno.EADDRNOTAVAIL: "this machine does not have that address: choose another, such as 127.0.0.1, with --listen",
    errno.EACCES: "ports below 1024 need privileges: choose a higher one with --listen",
}
_OPTIONS = frozenset(
    {
        "--data",
        "--listen",
        "--durability",
        "--config",
        "--set",
        "--log-level",
        "--metrics",
        "--stop-timeout",
    }
)


def serve(options: ServeOptions) -> None:
    """Serve until a signal comes.

    Print one line when clients may connect. A node that is only a controller prints it when it has
    joined its quorum.

    Raises:
        CliError: The broker could not start; the error has advice.
    """
    logging.basicConfig(
        stream=sys.stderr,
        level=options.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    _raise_descriptors()
    signalled, wake_up = _catch_signals()
    with _bounded(options.stop_timeout_s, signalled, wake_up), suppress(StartGivenUpError):
        _serve(options, signalled, wake_up)


def _serve(options: ServeOptions, signalled: int, wake_up: int) -> None:
    place = None if options.metrics is None else _metrics_place(options.metrics)
    started = _start(options, lambda _: os.write(wake_up, b"\0"), signalled)
    with (
        closing(started) as broker,
        nullcontext() if place is None else closing(_serve_metrics(broker, place)) as metrics,
    ):
        _undo_alterations(broker, options)
        try:
            _serve_until(signalled, broker, "" if metrics is None else metrics.address)
        except ClosedError as error:
            advice = "find the fault in its log, and start it again: the start applies the committed metadata"
            raise CliError(str(error), advice) from error


@contextmanager
def _bounded(seconds: int, signalled: int, wake_up: int) -> Iterator[None]:
    """End the process if the block takes too long after a signal; a sync may take minutes.

    Acknowledged records are as durable as after SIGKILL, and the next start recovers the logs.
    """
    stopped = threading.Event()

    def watch() -> None:
        _wait(signalled)
        if not stopped.wait(seconds):
            text = f"the stop took longer than {seconds} s and was cancelled: the next start recovers the logs"
            try:
                print(f"pykafka-core: {text}", file=sys.stderr, flush=True)
            finally:
                os._exit(1)

    threading.Thread(target=watch, name="pykafka-stop", daemon=True).start()
    try:
        yield
    finally:
        stopped.set()
        with suppress(BlockingIOError):  # the descriptor can be read already
            os.write(wake_up, b"\0")


def _wait(signalled: int) -> None:
    """Wait until a descriptor can be read; it is not read, because two threads wait for it."""
    poll = select.poll()
    poll.register(signalled, select.POLLIN)
    poll.poll()


def _undo_alterations(broker: "Broker", options: ServeOptions) -> None:
    """Undo the dynamic configs that ``--set`` names.

    A config that a client altered could refuse every client that would alter it back.
    """
    try:
        broker.undo_alterations(_name_and_value(text)[0] for text in options.settings)
    except KafkaError as error:
        advice = "also set the settings that it depends on with --set, or leave it out"
        raise CliError(f"cannot undo the altered settings: {error}", advice) from error


def _metrics_place(text: str) -> tuple[str, int]:
    """Return the host and port of ``--metrics``; an empty host means the loopback address."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        advice = "write it as --metrics 127.0.0.1:9404; port 0 is a free one"
        raise CliError(f"--metrics {text!r} is not HOST:PORT", advice, exit_code=USAGE)
    return host.removeprefix("[").removesuffix("]"), int(port)


def _serve_metrics(broker: "Broker", place: tuple[str, int]) -> "MetricsServer":
    from pykafka_core.broker.metrics.server import MetricsServer  # not earlier: few use it

    try:
        return MetricsServer(broker, *place)
    except OSError as error:
        text = f"metrics cannot be served at {place[0]}:{place[1]}: {error.strerror or error}"
        raise CliError(
            text, "choose another address with --metrics (port 0 is a free one)"
        ) from error


def _serve_until(signalled: int, broker: "Broker", metrics: str) -> None:
    """Wait for a signal; raise `ClosedError` if the broker has failed since its start."""
    data = broker.data_dir or "memory"
    _begin_collecting()
    is_broker = broker.settings.start.is_broker
    address = broker.bootstrap_servers if is_broker else broker.bootstrap_controllers
    more = f" metrics={metrics}" if metrics else ""
    print(
        f"ready {address} data={data} cluster={broker.cluster_id}{more}",
        flush=True,
    )
    _wait(signalled)
    if not broker.healthy:
        broker.topics()


def _raise_descriptors() -> None:
    """Raise the soft limit to the hard one; it is often 1024, for programs that use `select`."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Where even root may not have so many (macOS), the soft limit stays.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _begin_collecting() -> None:
    """Exclude the objects of the start, and those that survive a full collection, from later ones.

    Most of them live long. Without this, a full collection blocks the control thread for a time
    that grows with the metadata: 75 ms at 8,000 topics. An excluded object is still freed when
    nothing refers to it any more.

    A request for 1,000 topics creates some 10,000 objects, all in use until its response.
    """
    gc.freeze()
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION, COLLECTIONS_BEFORE_OLDER, COLLECTIONS_BEFORE_OLDER)
    gc.callbacks.append(_Survivors(gc.get_freeze_count()))
    gc.enable()


class _Survivors:
    """Freezes the objects that survive a full collection, and unfreezes all when they double.

    A garbage cycle among frozen objects stays until then. Requests should create no cycles, but
    that is not proven.
    """

    def __init__(self, looked_at: int) -> None:
        self._looked_at = looked_at
        self._looks_at_all = False

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """Handle a callback of the collector."""
        if phase != "stop" or info["generation"] != _OLDEST:
            return
        gc.freeze()
        left_out = gc.get_freeze_count()
        if self._looks_at_all:
            self._looked_at, self._looks_at_all = left_out, False
        elif left_out > 2 * self._looked_at + OBJECTS_FREE:
            gc.unfreeze()
            self._looks_at_all = True


def _catch_signals() -> tuple[int, int]:
    """Catch SIGTERM and Ctrl-C from here on, and return both ends of a pipe.

    The first can be read when a signal has come; other reasons to stop write to the second.

    An event of `threading` does not work. Python runs handlers in the main thread, which only wakes
    up for signals that it received itself. A handler that runs while the thread goes to sleep would
    wait for the event's lock, which the same thread holds. The wake-up descriptor works for a
    signal that any thread receives.
    """
    signalled, wake_up = os.pipe()
    os.set_blocking(wake_up, False)
    signal.set_wakeup_fd(wake_up)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _let_the_next_one_kill)
    return signalled, wake_up


def _let_the_next_one_kill(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)


def _start(
    options: ServeOptions,
    on_failure: Callable[[BaseException], object],
    signalled: int | None = None,
) -> "Broker":
    """Start a broker; a node that waits for its cluster stops when ``signalled`` can be read."""
    from pykafka_core import Broker
    from pykafka_core._core import return_freed_memory

    class Server(Broker):
        _defaults = ()  # Kafka's defaults, without those of an embedded broker

    return_freed_memory()
    settings = _settings(options)
    data = _data(options, settings)
    listeners = options.listen
    is_broker = settings.get("process.roles", "").strip() != "controller"
    if listeners is None and "listeners" not in settings and is_broker:
        listeners = DEFAULT_LISTEN
    try:
        return Server(
            data,
            listeners=listeners,
            durability=options.durability,
            config=settings,
            on_failure=on_failure,
            give_up=signalled,
        )
    except StartGivenUpError:
        raise
    except ConfigurationError as error:
        text = "\n  ".join(["the settings cannot be used:", *error.problems])
        raise CliError(text, exit_code=USAGE) from error
    except LocalError as error:
        raise CliError(str(error)) from error
    except OSError as error:
        text = (error.strerror or str(error)).removesuffix(f" (os error {error.errno})")
        raise CliError(f"cannot start: {text}", _ADVICE.get(error.errno or 0, "")) from error


def _settings(options: ServeOptions) -> dict[str, str]:
    """Return the settings: those of the file without replaced ones, then those of ``--set``."""
    settings = _from_file(options.config) if options.config is not None else {}
    if options.listen is not None:  # the file's advertised listeners belong to the file's listeners
        settings.pop("listeners", None)
        settings.pop("advertised.listeners", None)
    if options.durability == "memory":
        settings.pop("log.dirs", None)
        settings.pop("log.dir", None)
    settings.update(map(_name_and_value, options.settings))
    return settings


def _name_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        advice = "write it as --set log.retention.ms=60000"
        raise CliError(f"--set {text!r} is not NAME=VALUE", advice, exit_code=USAGE)
    return name.strip(), value.strip()


def _from_file(path: Path) -> dict[str, str]:
    try:
        return dict(read_settings(path))
    except SettingsFileError as error:
        raise CliError(str(error), exit_code=USAGE) from error


def _data(options: ServeOptions, settings: Mapping[str, str]) -> Path | None:
    if options.durability == "memory":
        if options.data is not None:
            advice = "leave out --data, or choose another durability"
            raise CliError("--durability memory does not use a directory", advice, exit_code=USAGE)
        return None
    if options.data is not None:
        return options.data
    given = settings.get("log.dirs") or settings.get("log.dir")
    return Path(given) if given and "," not in given else DEFAULT_DATA
