"""Each function that the control thread calls raises once: either only the item fails, or the
broker ends.

In both cases no client waits forever: each request gets a response, or its connection is closed.
"""

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

import pykafka_core
from pykafka_core._core import Core, TopicsMissing, VerifyTransaction
from pykafka_core.broker.runtime.loop import ControlLoop
from pykafka_core.broker.runtime.metadata.controller import Controller
from pykafka_core.broker.runtime.requests import pending_request
from pykafka_core.broker.runtime.requests.calls import create_topics
from pykafka_core.broker.runtime.requests.jobs import Jobs
from pykafka_core.errors import KafkaError
from pykafka_core.handlers import registry
from pykafka_core.handlers.registry import ROWS
from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)
from tests.handlers.transaction_requests import Producer, add, producer_of
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

TURNS = 40
ENDS_THE_BROKER = {"append", "apply", "commit", "horizon_ns", "now_ns", "wait"}
"""Faults in these functions end the broker: events would be lost, or committed records not
applied."""
ONLY_AT_START_OR_STOP = {"abandon", "listen", "serve", "stop", "wake"}
NEVER_ON_THIS_PATH = {"check", "offsets", "read", "when_committed"}
ONLY_IN_A_CLUSTER = {
    "append_fetched",
    "cut_off",
    "disconnect",
    "probe_disk",
    "propose_isr",
    "registered",
    "restart_log",
    "send",
    "settle_isr",
    "stalled",
    "truncate",
    "watch",
}


class Fault(Exception):
    pass


def creation(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic])


def description_of_unknown_topics() -> DescribeConfigsRequest:
    """Return a request whose response is large."""
    of = DescribeConfigsRequest.DescribeConfigsResource
    names = (f"unknown-{number}" for number in range(1_000))
    resources = [of(resource_type=2, resource_name=name) for name in names]
    return DescribeConfigsRequest(resources=resources)


def ending(name: str, producer: Producer) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=True,
    )


def verification(number: int, producer: Producer) -> VerifyTransaction:
    return VerifyTransaction(
        token=number,
        transactional_id=f"t{number}",
        producer_id=producer[0],
        producer_epoch=producer[1],
        partitions=[(bytes(16), 0)],
        add=False,
        received_ns=0,
    )


class World:
    """A broker with its loop, driven turn by turn."""

    def __init__(self) -> None:
        self.broker = SimulatedBroker()
        self.core = self.broker.core
        self.ended: Exception | None = None
        core = cast("Core", self.core)
        control = self.broker.control
        calls = "statistics", "drain_log"
        # Looked up by name at each call, because a test may have replaced the function.
        actions: dict[str, Callable[[], None]] = {name: partial(self.call, name) for name in calls}
        actions["snapshot"] = control.publisher.write_snapshot_if_due
        actions["retention"] = control.maintenance.enforce_retention
        every = control.timers.every
        self.timers = [every(name, 10, 0, action) for name, action in actions.items()]
        self.loop = ControlLoop(core, control.dispatcher, control.timers, "test")
        self.broker.ask(creation("orders"))
        self.broker.ask(FindCoordinatorRequest(key="transfers", key_type=1), 3)
        self.producers = [producer_of(self.broker, f"t{number}") for number in range(3)]
        for number, producer in enumerate(self.producers):
            add(self.broker, producer, 0, topic="orders", name=f"t{number}")

    def call(self, name: str) -> None:
        getattr(self.core, name)()

    def exercise(self) -> list[int]:
        """Send each kind of request once; return their ids."""
        topic = DeleteRecordsRequest.DeleteRecordsTopic(
            name="orders",
            partitions=[DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=0)],
        )
        producers = DescribeProducersRequest.TopicRequest(name="orders", partition_indexes=[0])
        asked = [
            self.broker.send(creation("payments")),
            self.broker.send(DescribeClusterRequest()),
            self.broker.send(DeleteRecordsRequest(topics=[topic], timeout_ms=1)),
            self.broker.send(DescribeLogDirsRequest(topics=None)),
            self.broker.send(DescribeProducersRequest(topics=[producers])),
            self.broker.send(InitProducerIdRequest(transactional_id=None)),
            self.broker.send(FindCoordinatorRequest(key="group"), 3),
            self.broker.send(creation("refunds")),
            self.broker.send(description_of_unknown_topics()),
        ]
        self.core.push(TopicsMissing(["missing"], "User:ANONYMOUS"))
        for number, producer in enumerate(self.producers):
            asked.append(self.broker.send(ending(f"t{number}", producer)))
            self.core.push(verification(number, producer))
        return asked

    def run(self) -> None:
        """Run turns, as the loop's thread does, until an unhandled fault or the end of the work."""
        for _ in range(TURNS):
            try:
                self.loop.turn()
            except Fault as fault:
                self.ended = fault
                self.loop._drain()
                return

    def is_over(self, request: int) -> bool:
        return request in self.core.replies or request in self.core.closed_connections

    def check(self, asked: list[int]) -> None:
        """Check that every request has ended and the broker serves; or that the broker has ended,
        and the core's stop closes the connections.
        """
        if self.ended is not None:
            assert self.broker.dispatcher.idle
            return
        assert all(self.is_over(request) for request in asked)
        response = self.broker.send(creation("afterwards"))
        self.run()
        message = self.broker.response(response)
        if self.ended is not None:
            return  # the fault happened just now
        assert isinstance(message, CreateTopicsResponse)
        assert [topic.error_code for topic in message.topics] == [0]


def raise_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int) -> list[int]:
    """Make call number ``at`` of ``owner.name`` raise; the returned list counts the calls."""
    real, calls = getattr(owner, name), [0]

    def faulty(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == at:
            raise Fault(name)
        return real(*arguments, **named)

    monkeypatch.setattr(owner, name, faulty)
    return calls


CALLS = sorted({name for name in vars(Core) if not name.startswith("_")} - ONLY_IN_A_CLUSTER)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(set(CALLS) - ONLY_AT_START_OR_STOP - NEVER_ON_THIS_PATH))
def test_core_call_that_raises_once_leaves_no_request_waiting(
    monkeypatch: pytest.MonkeyPatch, name: str, at: int
) -> None:
    world = World()
    if name == "close_connection":
        monkeypatch.setitem(registry._loaded, 60, raising)
    calls = raise_once(monkeypatch, world.core, name, at)
    asked = world.exercise()
    world.run()
    assert calls[0] > 0, "the call is on the path"
    if calls[0] >= at:
        assert world.ended is None or name in ENDS_THE_BROKER
        assert world.ended is not None or name not in ends_surely(at)
    if name == "close_connection" and calls[0] >= at:
        return  # the core closes the connection that could not be closed here
    world.check(asked)


def ends_surely(at: int) -> set[str]:
    """Later appends may be those of a coordinator, whose faults the broker survives."""
    return ENDS_THE_BROKER - ({"now_ns"} if at == 1 else {"now_ns", "append"})


def raising(*_: object) -> Any:
    raise Fault("a handler")


@pytest.mark.parametrize("api_key", [row.api_key for row in ROWS])
def test_handler_that_raises_once_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, api_key: int
) -> None:
    world = World()
    monkeypatch.setitem(registry._loaded, api_key, raising)
    asked = world.exercise()
    world.run()
    monkeypatch.undo()
    assert world.ended is None
    world.check(asked)


@pytest.mark.parametrize("at", range(1, 8))
def test_reply_that_cannot_be_encoded_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    world = World()
    raise_once(monkeypatch, pending_request, "MessageEncoder", at)
    asked = world.exercise()
    world.run()
    assert world.ended is None
    assert len(set(asked) & set(world.core.closed_connections)) == 1
    world.check(asked)


def test_timer_that_raises_once_misses_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for index in range(len(World().timers)):
        world = World()
        calls = raise_once(monkeypatch, world.timers[index], "action", 1)
        asked = world.exercise()
        world.run()
        assert calls[0] > 1
        assert world.ended is None
        world.check(asked)


def test_log_handlers_that_always_raise_lose_only_their_lines() -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise Fault("a log handler")

    handler, logger = Raising(), logging.getLogger("pykafka_core")
    logger.addHandler(handler)
    try:
        world = World()
        asked = world.exercise()
        world.core.push(cast("Any", object()))  # an unknown event
        world.run()
        assert world.ended is None
        world.check(asked)
    finally:
        logger.removeHandler(handler)


def test_local_request_whose_callback_raises_affects_nothing_else() -> None:
    world = World()
    world.loop._requests.append(create_topics(["local"], 1, {}, on_response=raising))
    asked = world.exercise()
    world.run()
    assert world.ended is None
    world.check(asked)


def test_local_request_fails_when_the_broker_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    raise_once(monkeypatch, world.core, "apply", 1)
    local = create_topics(["local"], 1, {})
    world.loop._requests.append(local)
    world.run()
    assert isinstance(world.ended, Fault)
    with pytest.raises(KafkaError):
        local.wait()


def test_control_plane_logs_only_through_safe_logging() -> None:
    root = Path(pykafka_core.__file__).parent
    rooms = [root / name for name in ("broker", "handlers", "metadata", "config")]
    files = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    assert [path.name for path in files if "getLogger" in path.read_text()] == ["safe_logging.py"]


def test_fake_core_supports_every_call_that_may_fail() -> None:
    assert not set(CALLS) - set(dir(FakeCore))


@pytest.mark.parametrize("owner", [Controller, Jobs])
def test_request_that_its_owner_cannot_take_closes_its_connection(
    monkeypatch: pytest.MonkeyPatch, owner: type
) -> None:
    """Regression: the request stayed open, and its client waited without a response."""

    def take(*_: object) -> None:
        raise Fault

    broker = SimulatedBroker()
    monkeypatch.setattr(owner, "take", take)
    asked = [broker.send(creation("orders")), broker.send(DescribeClusterRequest())]
    broker.run()
    failed = asked[0 if owner is Controller else 1]
    assert list(broker.core.closed_connections) == [failed]
    assert broker.control.faults.count == 1
    assert broker.dispatcher.idle
