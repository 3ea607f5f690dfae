"""A fault on the control thread ends its item or the whole broker, never a part of a broker."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClosedError, KafkaError
from pykafka_core.protocol.messages import MetadataRequest
from tests.support.patience import PATIENCE_S
from tests.support.wire import Connection


class RaisingHandler(logging.Handler):
    """A handler of the user's program that has a bug.

    Args:
        fault: The exception that it raises.
        first: Number of the first log record that fails, counted from 0.
        last: Number of the last log record that fails.
    """

    def __init__(
        self,
        fault: BaseException | None = None,
        first: int = 0,
        last: int = sys.maxsize,
    ) -> None:
        super().__init__()
        self.called = Event()
        self.fault = fault or ZeroDivisionError("a handler of the user's")
        self.records = 0
        self._range = range(first, last + 1)

    def emit(self, record: logging.LogRecord) -> None:
        self.called.set()
        self.records += 1
        if self.records - 1 in self._range:
            raise self.fault


class RaisingFilter(RaisingHandler):
    """A handler whose filter has the bug."""

    def filter(self, record: logging.LogRecord) -> bool:
        self.emit(record)
        return False


@contextmanager
def raising_handler(handler: RaisingHandler | None = None) -> Iterator[RaisingHandler]:
    handler = handler or RaisingHandler()
    logger = logging.getLogger("pykafka_core")
    level, propagate = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def test_log_handler_that_raises_loses_only_its_line() -> None:
    with raising_handler() as handler, Broker() as broker:
        missing = MetadataRequest.MetadataRequestTopic(name="missing")
        with Connection(broker.bootstrap_servers) as connection:
            connection.ask(3, 12, MetadataRequest(topics=[missing]))
        assert handler.called.wait(PATIENCE_S), "auto-creation is logged"
        broker.create_topic("orders")
        assert broker.healthy
        assert broker.topics() == {"missing": 1, "orders": 1}


def break_apply(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    """Make the step after the next commit fail."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("the step cannot be made")

    monkeypatch.setattr(broker._started.control.publisher._projection, "step", broken)


def test_records_that_cannot_be_applied_end_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[BaseException] = []
    failed = Event()

    def on_failure(failure: BaseException) -> None:
        failures.append(failure)
        failed.set()

    broker = Broker(listeners="PLAINTEXT://127.0.0.1:0", on_failure=on_failure)
    servers = broker.bootstrap_servers
    break_apply(monkeypatch, broker)
    with pytest.raises(KafkaError):
        broker.create_topic("orders")
    assert failed.wait(PATIENCE_S)
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
    assert not broker.healthy
    with pytest.raises(ConnectionRefusedError):
        Connection(servers)
    with pytest.raises(ClosedError, match="the step cannot be made") as refusal:
        broker.create_topic("payments")
    assert isinstance(refusal.value.__cause__, ZeroDivisionError)
    with pytest.raises(ClosedError, match="the step cannot be made"):
        broker.topics()
    broker.close()


class Hostile(BaseException):
    """Not an `Exception`, like the exception of `pytest.fail`."""

    def __str__(self) -> str:
        raise Hostile


FAULTS = [KeyboardInterrupt, SystemExit, Hostile]


def check_that_it_ends(
    monkeypatch: pytest.MonkeyPatch, handler: RaisingHandler, fault: type[BaseException] | None
) -> None:
    """Make a broker log a line and fail; check all steps of its end."""
    failures: list[BaseException] = []
    failed = Event()

    def on_failure(failure: BaseException) -> None:
        failures.append(failure)
        failed.set()
        if fault is not None:
            raise fault

    broker = Broker(listeners="PLAINTEXT://127.0.0.1:0", on_failure=on_failure)
    servers = broker.bootstrap_servers
    with raising_handler(handler):
        missing = MetadataRequest.MetadataRequestTopic(name="missing")
        with Connection(servers) as connection:
            connection.ask(3, 12, MetadataRequest(topics=[missing]))
        assert handler.called.wait(PATIENCE_S), "auto-creation is logged"
        break_apply(monkeypatch, broker)
        with pytest.raises((KafkaError, ClosedError)):
            broker.create_topic("orders")
        assert failed.wait(PATIENCE_S)
        broker._loop._thread.join()
    assert [type(failure) for failure in failures] == [ZeroDivisionError]
    assert not broker.healthy
    with pytest.raises(ConnectionRefusedError):
        Connection(servers)
    with pytest.raises(ClosedError, match="the step cannot be made"):
        broker.topics()
    broker.close()
    assert broker.closed


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("place", [RaisingHandler, RaisingFilter])
def test_errors_of_log_handlers_do_not_stop_a_failed_broker_from_ending(
    monkeypatch: pytest.MonkeyPatch, place: type[RaisingHandler], fault: type[BaseException]
) -> None:
    quiet = place(first=sys.maxsize)
    check_that_it_ends(monkeypatch, quiet, None)
    assert quiet.records > 1, "auto-creation and the failure are logged"
    for record in range(quiet.records):
        check_that_it_ends(monkeypatch, place(fault(), record, record), None)
    check_that_it_ends(monkeypatch, place(fault()), None)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("fault", FAULTS)
def test_error_of_on_failure_is_reported(
    monkeypatch: pytest.MonkeyPatch, fault: type[BaseException]
) -> None:
    quiet = RaisingHandler(first=sys.maxsize)
    check_that_it_ends(monkeypatch, quiet, fault)
    check_that_it_ends(monkeypatch, RaisingHandler(fault()), fault)


def fail_snapshot(broker: Broker) -> None:
    """Make `close` find and log a snapshot that could not be written."""
    snapshots = broker._started.snapshots
    assert snapshots is not None
    snapshots._writing = Thread(target=int)
    snapshots._writing.start()
    snapshots._error = ZeroDivisionError("a snapshot's")


@pytest.mark.parametrize("fault", FAULTS)
def test_close_finishes_before_an_error_of_a_log_handler_reaches_the_caller(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    broker = Broker(tmp_path, listeners="PLAINTEXT://127.0.0.1:0")
    fail_snapshot(broker)
    with raising_handler(RaisingHandler(fault())), suppress(fault):
        broker.close()
    with Broker(tmp_path) as again:
        assert again.healthy


def test_committed_change_that_was_not_applied_is_there_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as broker:
        break_apply(monkeypatch, broker)
        with pytest.raises(KafkaError):
            broker.create_topic("orders")
    with Broker(tmp_path) as broker:
        assert broker.topics() == {"orders": 1}


SERVE = """
import builtins, logging, sys
from pykafka_core import Broker
from pykafka_core.broker.core_bridge.projection import Projection
from pykafka_core.cli import main

def broken(*_):
    raise ZeroDivisionError("the step cannot be made")

class Raising(logging.Handler):
    def emit(self, record):
        raise getattr(builtins, sys.argv[1])

logging.getLogger("pykafka_core").addHandler(Raising())
Projection.step = broken
sys.argv = ["pykafka-core", "serve", "--durability", "memory", "--listen", "127.0.0.1:0"]
main()
"""


@pytest.mark.parametrize(
    "fault", ["ValueError", "SystemExit", "KeyboardInterrupt", "BaseException"]
)
def test_serve_exits_with_an_error_when_its_broker_fails(fault: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    with subprocess.Popen(
        [sys.executable, "-c", SERVE, fault],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as serving:
        try:
            assert serving.stdout is not None
            servers = serving.stdout.readline().split()[1]
            admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
            admin.create_topics([NewTopic("orders", 1, 1)])
            _, text = serving.communicate(timeout=PATIENCE_S)
        finally:
            serving.kill()
    assert serving.returncode == 1
    assert "ZeroDivisionError: the step cannot be made" in text.splitlines()[-2]
