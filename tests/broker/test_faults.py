"""What a fault on the control thread costs: its item, or the whole broker, never half of one."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from pykafka_core import Broker
from pykafka_core.errors import ClosedError, KafkaError
from pykafka_core.protocol.messages import MetadataRequest
from tests.support.wire import Connection

WAIT_S = 120


class RaisingHandler(logging.Handler):
    """A handler of the user's program that has a bug."""

    def __init__(self) -> None:
        super().__init__()
        self.called = Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.called.set()
        raise ZeroDivisionError("a handler of the user's")


@contextmanager
def raising_handler() -> Iterator[RaisingHandler]:
    handler = RaisingHandler()
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


def test_a_logging_handler_that_raises_costs_its_line_and_nothing_else() -> None:
    with raising_handler() as handler, Broker() as broker:
        missing = MetadataRequest.MetadataRequestTopic(name="missing")
        with Connection(broker.bootstrap_servers) as connection:
            connection.ask(3, 12, MetadataRequest(topics=[missing]))
        assert handler.called.wait(WAIT_S), "auto-creation is logged"
        broker.create_topic("orders")
        assert broker.healthy
        assert broker.topics() == {"missing": 1, "orders": 1}


def break_apply(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> None:
    """Let the step after the next commit fail."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("the step cannot be made")

    monkeypatch.setattr(broker._started.controller._projection, "step", broken)


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
    assert failed.wait(WAIT_S)
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


def test_what_was_committed_and_not_applied_is_there_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as broker:
        break_apply(monkeypatch, broker)
        with pytest.raises(KafkaError):
            broker.create_topic("orders")
    with Broker(tmp_path) as broker:
        assert broker.topics() == {"orders": 1}


SERVE = """
import sys
from pykafka_core import Broker
from pykafka_core.broker.seam.projection import Projection
from pykafka_core.cli import main

def broken(*_):
    raise ZeroDivisionError("the step cannot be made")

Projection.step = broken
sys.argv = ["pykafka-core", "serve", "--durability", "memory", "--listen", "127.0.0.1:0"]
main()
"""


def test_serve_exits_with_an_error_when_its_broker_fails() -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    with subprocess.Popen(
        [sys.executable, "-c", SERVE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as serving:
        try:
            assert serving.stdout is not None
            servers = serving.stdout.readline().split()[1]
            admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
            admin.create_topics([NewTopic("orders", 1, 1)])
            _, text = serving.communicate(timeout=WAIT_S)
        finally:
            serving.kill()
    assert serving.returncode == 1
    assert "ZeroDivisionError: the step cannot be made" in text.splitlines()[-2]
