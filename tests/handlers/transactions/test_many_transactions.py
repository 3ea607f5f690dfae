"""Thousands of transactions that end together do not block the control thread for other requests,
and all of them complete.
"""

from itertools import count
from typing import Any

import pytest

from pykafka_core.broker.runtime.coordinators.transaction_marker_channel import (
    PARTITIONS_AT_ONCE,
    SLICE_NS,
)
from pykafka_core.errors import KafkaStorageError
from pykafka_core.protocol.messages import EndTxnRequest, IncrementalAlterConfigsRequest
from pykafka_core.types import RESOURCE_TOPIC, TRANSACTION_TOPIC
from tests.handlers.group_requests import pass_ms
from tests.handlers.offset_requests import create_topic
from tests.handlers.transaction_requests import (
    ID,
    Producer,
    add,
    add_offsets,
    describe,
    producer_of,
    transactional_broker,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

MANY = 60


def begin_many(broker: SimulatedBroker) -> dict[str, Producer]:
    producers = {f"{ID}-{number}": (-1, -1) for number in range(MANY)}
    for name in producers:
        producers[name] = producer_of(broker, name)
        assert add(broker, producers[name], 0, name=name) == [0]
    return producers


def send_commit(broker: SimulatedBroker, name: str, producer: Producer) -> None:
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        committed=True,
    )
    broker.send(request, 4)


def decide(broker: SimulatedBroker, producers: dict[str, Producer]) -> None:
    """Decide all transactions, without any further step."""
    broker.core.hold_appends = True
    for name, producer in producers.items():
        send_commit(broker, name, producer)
    broker.run()
    while broker.core._held:
        broker.core.complete_append()
    broker.core.hold_appends = False


def limit_batches(broker: SimulatedBroker, bytes_max: int) -> None:
    """Set ``max.message.bytes`` of the topic `__transaction_state`."""
    changed = IncrementalAlterConfigsRequest.AlterableConfig(
        name="max.message.bytes", value=str(bytes_max)
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=RESOURCE_TOPIC, resource_name=TRANSACTION_TOPIC, configs=[changed]
    )
    broker.ask(IncrementalAlterConfigsRequest(resources=[resource]))


def refuse_marker(core: FakeCore, settling: Any, place: int, _marker: object) -> None:
    core._settle(settling, place, KafkaStorageError.code)


def test_markers_of_many_transactions_leave_time_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The markers of all transactions in a commit or a load were started in one turn: half a second
    for 8,000.
    """
    broker = transactional_broker()
    producers = begin_many(broker)
    decide(broker, producers)
    written, passed = list[int](), count()
    write, now_ns = broker.core.write_markers, broker.core.now_ns

    def write_markers(token: int, markers: Any) -> None:
        written.append(len(markers))
        write(token, markers)

    monkeypatch.setattr(broker.core, "write_markers", write_markers)
    monkeypatch.setattr(broker.core, "now_ns", lambda: now_ns() + next(passed) * SLICE_NS // 10)
    for event in broker.core.wait(0, 1000):
        broker.dispatcher.take(event)
    assert written == []
    assert broker.dispatcher.advance()
    assert 0 < len(written) < 20
    broker.run()
    assert written == [1] * MANY
    states = {describe(broker, name).transaction_state for name in producers}
    assert states == {"CompleteCommit"}


def test_markers_of_many_partitions_are_written_by_several_calls_of_the_core(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The markers of 9,000 partitions were written by one call, which took 170 ms."""
    broker = transactional_broker()
    partitions = 2 * PARTITIONS_AT_ONCE + 5
    create_topic(broker, partitions, "many")
    producer = producer_of(broker)
    assert set(add(broker, producer, *range(partitions), topic="many")) == {0}
    assert add_offsets(broker, producer) == 0
    written = list[int]()
    write = broker.core.write_markers

    def write_markers(token: int, markers: Any) -> None:
        written.append(len(markers))
        write(token, markers)

    monkeypatch.setattr(broker.core, "write_markers", write_markers)
    send_commit(broker, ID, producer)
    broker.run()
    assert max(written) <= PARTITIONS_AT_ONCE
    assert sum(written) == partitions + 1
    assert describe(broker).transaction_state == "CompleteCommit"


def test_end_that_fits_into_no_batch_is_stored_when_it_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was rejected once, and the transaction stayed prepared until the next start."""
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0)
    monkeypatch.setattr(FakeCore, "_write_marker", refuse_marker)
    send_commit(broker, ID, producer)
    broker.run()
    limit_batches(broker, 10)
    monkeypatch.undo()
    pass_ms(broker, 100)
    assert describe(broker).transaction_state == "PrepareCommit"
    limit_batches(broker, 1_000_000)
    pass_ms(broker, 2_000)
    assert describe(broker).transaction_state == "CompleteCommit"


def test_repeated_marker_failures_are_reported_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of 10,000 partitions was logged, ten times a second."""
    broker = transactional_broker()
    producer = producer_of(broker)
    add(broker, producer, 0, 1, 2)
    tried = 0

    def refuse(core: FakeCore, settling: Any, place: int, _marker: object) -> None:
        nonlocal tried
        tried += 1
        refuse_marker(core, settling, place, _marker)

    monkeypatch.setattr(FakeCore, "_write_marker", refuse)
    send_commit(broker, ID, producer)
    broker.run()
    for _ in range(200):
        pass_ms(broker, 100)
    assert 3 * 5 < tried < 3 * 20
    assert caplog.text.count("is tried again: KAFKA_STORAGE_ERROR") == 1
    monkeypatch.undo()
    pass_ms(broker, 2_000)
    assert describe(broker).transaction_state == "CompleteCommit"
