"""Clients for commands: confluent-kafka, with little output and short timeouts."""

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from pykafka_core.cli.arguments import utf8
from pykafka_core.cli.errors import FAILED, USAGE, CliError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer
    from confluent_kafka.admin import AdminClient, ClusterMetadata

T = TypeVar("T")

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
TIMEOUT_S = 15.0
_KNOCK_S = 5.0


def client_config(bootstrap: str | None) -> dict[str, str | int | float | bool]:
    """Return the settings of every client."""
    return {
        "bootstrap.servers": bootstrap or DEFAULT_BOOTSTRAP,
        "client.id": "pykafka-core-cli",
        "socket.connection.setup.timeout.ms": 5000,
        "log_level": 2,  # errors are raised as exceptions; librdkafka need not print them too
    }


@contextmanager
def admin(
    bootstrap: str | None, names: Sequence[str], what: str
) -> "Iterator[tuple[AdminClient, ClusterMetadata]]":
    """Yield an admin client of a reachable broker, and the metadata of its cluster.

    Errors of the client inside the block become a `CliError` that begins with ``what``. The client
    exists until the end of the block: the futures of a deleted client never complete.

    Args:
        names: The names in its requests. Arguments that are not UTF-8 end the process in some of
            its calls.

    Raises:
        CliError: No broker answers, or a name is empty.
    """
    with kafka_errors(what):
        for name in names:
            if not utf8(name):
                advice = "name a topic, or a broker by its id"
                raise CliError("a name is empty", advice, exit_code=USAGE)
        yield connect(bootstrap)


def connect(bootstrap: str | None) -> "tuple[AdminClient, ClusterMetadata]":
    """Return an admin client and the metadata of its cluster.

    Raises:
        CliError: No broker answers.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    _knock(bootstrap)
    try:
        client = AdminClient(client_config(bootstrap))
        metadata = interruptible(lambda: client.list_topics(timeout=TIMEOUT_S))
    except KafkaException as error:
        raise unreachable(bootstrap, error) from error
    return client, metadata


def result(future: "Future[T]") -> T:
    """Return the result of an admin client's future, within the time limit."""
    return future.result(TIMEOUT_S)


def interruptible(call: Callable[[], T]) -> T:
    """Return the result of ``call``; Ctrl-C ends the wait at once and abandons the call.

    librdkafka's blocking calls do not return for a signal, and Python runs handlers only in the
    main thread.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future.result()


def addresses(bootstrap: str | None) -> Iterator[tuple[str, int]]:
    """Yield host and port of each server in the list.

    Raises:
        CliError: The next entry is not ``HOST:PORT``.
    """
    for server in (bootstrap or DEFAULT_BOOTSTRAP).split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdigit():
            raise CliError(f"{server!r} is not HOST:PORT", exit_code=USAGE)
        yield host.strip("[]"), int(port)


def _knock(bootstrap: str | None) -> None:
    """Fail at once if no server listens: a client would retry until its time limit."""
    refusal = OSError("no address is given")
    for address in addresses(bootstrap):
        try:
            socket.create_connection(address, _KNOCK_S).close()
        except (OSError, OverflowError) as error:
            refusal = OSError(getattr(error, "strerror", None) or str(error))
        else:
            return
    raise unreachable(bootstrap, refusal)


def consumer(bootstrap: str | None, *, follow: bool = False) -> "Consumer":
    """Return a consumer that assigns its partitions itself and commits nothing.

    Args:
        follow: Wait for more records at the end of a partition, at low cost; otherwise the end is
            reported at once.
    """
    from confluent_kafka import Consumer

    return Consumer(
        {
            **client_config(bootstrap),
            "group.id": "pykafka-core-cli",  # required by librdkafka, although it joins no group
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 500 if follow else 5,
            "auto.offset.reset": "error",
        }
    )


def producer(bootstrap: str | None, extra: Mapping[str, str | int | float | bool]) -> "Producer":
    """Return a producer with ``extra`` settings."""
    from confluent_kafka import Producer

    return Producer({**client_config(bootstrap), **extra})


def unreachable(bootstrap: str | None, error: Exception) -> CliError:
    """Return the error for a broker that does not answer."""
    return CliError(
        f"no broker answers at {bootstrap or DEFAULT_BOOTSTRAP}: {error_text(error)}",
        "start one with `pykafka-core serve`, or name one with --bootstrap-server",
    )


def error_text(error: BaseException) -> str:
    """Return the text of a client's exception, without its wrapper."""
    inner = error.args[0] if error.args else error
    text = getattr(inner, "str", None)
    return str(text()) if callable(text) else str(error)


@contextmanager
def kafka_errors(what: str | Callable[[], str]) -> Iterator[None]:
    """Convert a client's exceptions to a `CliError` that begins with ``what``, or with its result.

    The client checks its arguments itself, and raises ValueError or OverflowError if they are
    invalid.
    """
    from confluent_kafka import KafkaException

    def said(text: object, exit_code: int = FAILED) -> CliError:
        return CliError(f"{what if isinstance(what, str) else what()}: {text}", exit_code=exit_code)

    try:
        yield
    except KafkaException as error:
        raise said(error_text(error)) from error
    except FutureTimeoutError as error:
        raise said(f"no response within {TIMEOUT_S:g} s") from error
    except (ValueError, OverflowError) as error:
        raise said(error, USAGE) from error
