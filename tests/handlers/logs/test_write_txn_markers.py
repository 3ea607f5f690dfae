"""WriteTxnMarkers: clients may only abort hanging transactions; all markers of other brokers are
written.
"""

import pytest

from pykafka_core.protocol.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from pykafka_core.types import GROUP_TOPIC
from tests.handlers.foreign_brokers import register_gone
from tests.handlers.offset_requests import TOPIC, fetch, topic_id
from tests.handlers.transaction_requests import (
    add_offsets,
    commit_offsets,
    describe,
    end,
    producer_of,
    transactional_broker,
)
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore


def mark(
    broker: SimulatedBroker,
    producer: tuple[int, int],
    partition: int,
    *,
    topic: str = TOPIC,
    commit: bool = False,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> int:
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
        transaction_result=commit,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
        ],
    )
    response = broker.ask(WriteTxnMarkersRequest(markers=[marker]), version)
    assert isinstance(response, WriteTxnMarkersResponse)
    (row,) = response.markers[0].topics[0].partitions
    return row.error_code


@pytest.mark.parametrize("version", [1, 2])
def test_commit_marker_is_rejected(version: int) -> None:
    broker = transactional_broker()
    before = broker.core.logs[topic_id(broker), 0].end
    assert mark(broker, producer_of(broker), 0, commit=True, version=version) == 31
    assert broker.core.logs[topic_id(broker), 0].end == before


def test_abort_without_an_open_transaction_is_rejected() -> None:
    broker = transactional_broker()
    before = broker.core.logs[topic_id(broker), 0].end
    assert mark(broker, producer_of(broker), 0) == 31
    assert mark(broker, (77, 0), 0) == 31
    assert broker.core.logs[topic_id(broker), 0].end == before


def test_partitions_that_do_not_exist_are_unknown() -> None:
    broker = transactional_broker()
    assert mark(broker, (77, 0), 9) == 3
    assert mark(broker, (77, 0), 0, topic="absent") == 3


def test_offsets_of_a_hanging_transaction_are_aborted() -> None:
    broker = transactional_broker()
    producer = producer_of(broker)
    assert commit_offsets(broker, producer, {0: 5}, 5) == [0]
    (place,) = describe(broker).topics
    assert mark(broker, producer, place.partitions[0], topic=GROUP_TOPIC) == 0
    assert fetch(broker, [0], require_stable=True)[0] == (-1, -1, "", 0)


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "transaction_version", "code"),
    [(0, 0, 0, 47), (-1, 0, 0, 47), (1, 0, 2, 47), (1, -1, 0, 52), (2, 0, 2, 0), (1, 0, 0, 0)],
)
def test_abort_that_the_log_rejects_does_not_affect_the_groups(
    epoch: int, coordinator_epoch: int, transaction_version: int, code: int
) -> None:
    """A marker with an old epoch was appended and rejected, and all groups of the partition were
    loaded again.
    """
    broker = transactional_broker()
    producer_of(broker)
    producer = producer_of(broker)
    for offset in (5, 6):
        add_offsets(broker, producer)
        assert commit_offsets(broker, producer, {0: offset}) == [0]
        if offset == 5:
            end(broker, producer, commit=True)
    (place,) = describe(broker).topics
    shard = broker.dispatcher._coordinators._groups.get(place.partitions[0])
    assert shard is not None
    machine = shard.machine
    on_response = mark(
        broker,
        (producer[0], epoch),
        place.partitions[0],
        topic=GROUP_TOPIC,
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    assert on_response == code
    assert shard.machine is machine


FOR_BROKERS = {"inter.broker.listener.name": "PLAINTEXT"}


def broker_in_cluster() -> SimulatedBroker:
    """Return a broker in a cluster with another broker; requests arrive at the inter-broker
    listener.
    """
    broker = transactional_broker(FOR_BROKERS)
    register_gone(broker)
    return broker


@pytest.mark.parametrize("version", [1, 2])
def test_marker_of_a_broker_is_written_without_an_open_transaction(version: int) -> None:
    broker = broker_in_cluster()
    producer = producer_of(broker)
    before = broker.core.logs[topic_id(broker), 0].end
    assert mark(broker, producer, 0, commit=True, version=version) == 0
    assert mark(broker, producer, 0, version=version) == 0
    assert broker.core.logs[topic_id(broker), 0].end == before + 2


def test_commit_marker_is_rejected_in_a_cluster_of_one_broker() -> None:
    broker = transactional_broker(FOR_BROKERS)
    assert mark(broker, producer_of(broker), 0, commit=True) == 31


def test_marker_of_a_broker_commits_the_offsets_of_a_group() -> None:
    broker = broker_in_cluster()
    producer = producer_of(broker)
    assert commit_offsets(broker, producer, {0: 5}, 5) == [0]
    (place,) = describe(broker).topics
    partition = place.partitions[0]
    assert mark(broker, producer, partition, topic=GROUP_TOPIC, commit=True) == 0
    assert fetch(broker, [0], require_stable=True)[0][0] == 5


@pytest.mark.parametrize("topic", [TOPIC, GROUP_TOPIC])
def test_marker_of_a_replaced_coordinator_is_rejected(topic: str) -> None:
    """contract/replication.md#T5."""
    broker = broker_in_cluster()
    producer = producer_of(broker)
    assert mark(broker, producer, 0, topic=topic, commit=True, coordinator_epoch=7) == 0
    assert mark(broker, producer, 0, topic=topic, commit=True, coordinator_epoch=6) == 52
    assert mark(broker, (producer[0], -1), 0, topic=topic, coordinator_epoch=7) == 47


def test_broker_gets_error_codes_that_a_kafka_coordinator_expects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an unexpected code, the transaction would never end there."""
    broker = broker_in_cluster()
    producer = producer_of(broker)
    assert mark(broker, producer, 9, commit=True) == 3
    for code, told in ((100, 3), (6, 6), (19, 19), (20, 20), (-1, 56), (48, 56), (8, 56)):
        monkeypatch.setattr(
            FakeCore,
            "_write_marker",
            lambda core, settling, place, _, code=code: core._settle(settling, place, code),
        )
        assert mark(broker, producer, 0, commit=True) == told
    shards = broker.dispatcher._coordinators._groups
    shards.drop_all()
    assert mark(broker, producer, 0, topic=GROUP_TOPIC, commit=True) == 6
