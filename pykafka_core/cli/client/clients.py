"""Clients for commands that talk to a broker: confluent-kafka, quiet and impatient."""

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
    """Return what every client is made with."""
    return {
        "bootstrap.servers": bootstrap or DEFAULT_BOOTSTRAP,
        "client.id": "pykafka-core-cli",
        "socket.connection.setup.timeout.ms": 5000,
        "log_level": 2,  # errors reach us as exceptions; librdkafka need not print them too
    }


@contextmanager
def admin(
    bootstrap: str | None, names: Sequence[str], what: str
) -> "Iterator[tuple[AdminClient, ClusterMetadata]]":
    """An admin client of a broker that answers, and the cluster that it found.

    What goes wrong with the client, inside, is a `CliError` that begins with ``what``. The client lives until the
    end of the block: futures of one that is gone never end.

    Args:
        names: Those that it is asked about. Arguments that are not UTF-8 end the process in some of its calls.

    Raises:
        CliError: Nobody answers.
    """
    with kafka_errors(what):
        for name in names:
            if not utf8(name):
                advice = "name a topic, or a broker by its id"
                raise CliError("a name is empty", advice, exit_code=USAGE)
        yield connect(bootstrap)


def connect(bootstrap: str | None) -> "tuple[AdminClient, ClusterMetadata]":
    """Return an admin client and the cluster that it found.

    Raises:
        CliError: Nobody answers.
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
    """Return what an admin client's future gives in time."""
    return future.result(TIMEOUT_S)


def interruptible(call: Callable[[], T]) -> T:
    """Return what ``call`` returns; Ctrl-C ends the wait at once and leaves the call behind.

    librdkafka's blocking calls do not return for a signal, and Python runs handlers in the main thread alone.
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
    """Host and port of each server that is named.

    Raises:
        CliError: The next one is not ``HOST:PORT``.
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
        follow: Wait at the end for more, cheaply; else the end of a partition is told at once.
    """
    from confluent_kafka import Consumer

    return Consumer(
        {
            **client_config(bootstrap),
            "group.id": "pykafka-core-cli",  # demanded by librdkafka, which joins no group
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 500 if follow else 5,
            "auto.offset.reset": "error",
        }
    )


def producer(bootstrap: str | None, extra: Mapping[str, str | int | float | bool]) -> "Producer":
    """Return a producer."""
    from confluent_kafka import Producer

    return Producer({**client_config(bootstrap), **extra})


def unreachable(bootstrap: str | None, error: Exception) -> CliError:
    """Return the error of a broker that does not answer."""
    return CliError(
        f"no broker answers at {bootstrap or DEFAULT_BOOTSTRAP}: {error_text(error)}",
        "start one with `pykafka-core serve`, or name one with --bootstrap-server",
    )


def error_text(error: BaseException) -> str:
    """Return what a client's exception says, without its wrapping."""
    inner = error.args[0] if error.args else error
    text = getattr(inner, "str", None)
    return str(text()) if callable(text) else str(error)


@contextmanager
def kafka_errors(what: str | Callable[[], str]) -> Iterator[None]:
    """Turn a client's exception into a `CliError` that begins with ``what``, or with what that returns then.

    The client checks its arguments itself, and calls what is wrong with them a ValueError or an OverflowError.
    """
    from confluent_kafka import KafkaException

    def said(text: object, exit_code: int = FAILED) -> CliError:
        return CliError(f"{what if isinstance(what, str) else what()}: {text}", exit_code=exit_code)

    try:
        yield
    except KafkaException as error:
        raise said(error_text(error)) from error
    except FutureTimeoutError as error:
        raise said(f"no answer within {TIMEOUT_S:g} s") from error
    except (ValueError, OverflowError) as error:
        raise said(error, USAGE) from error
