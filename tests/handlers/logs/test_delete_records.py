"""DeleteRecords: contract/kafka.md#39."""

import pytest

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
)
from tests.support.simulated.broker import SimulatedBroker

Topic = DeleteRecordsRequest.DeleteRecordsTopic
Partition = DeleteRecordsRequest.DeleteRecordsPartition


@pytest.fixture(autouse=True)
def orders(broker: SimulatedBroker) -> None:
    """Create a topic with ten records in the first of two partitions, and an internal topic."""
    topics = [
        CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
        for name in ("orders", "__consumer_offsets")
    ]
    broker.ask(CreateTopicsRequest(topics=topics))
    topic_id = broker.image.topics.by_name["orders"].topic_id
    broker.core.append(10**9, (topic_id, 0), 0, [(None, b"record")] * 10)
    broker.run()


def delete(
    broker: SimulatedBroker, *asked: tuple[str, int, int], version: int = 2
) -> list[tuple[int, int]]:
    """Delete records; return low watermark and error code for each topic, partition and offset."""
    topics = [
        Topic(name=name, partitions=[Partition(partition_index=index, offset=offset)])
        for name, index, offset in asked
    ]
    response = broker.ask(DeleteRecordsRequest(topics=topics, timeout_ms=1000), version)
    assert isinstance(response, DeleteRecordsResponse)
    return [(p.low_watermark, p.error_code) for t in response.topics for p in t.partitions]


@pytest.mark.parametrize("version", range(3))
def test_the_log_start_advances_in_every_version(broker: SimulatedBroker, version: int) -> None:
    assert delete(broker, ("orders", 0, 4), version=version) == [(4, 0)]


def test_minus_one_is_the_high_watermark(broker: SimulatedBroker) -> None:
    assert delete(broker, ("orders", 0, -1)) == [(10, 0)]


def test_topic_deleted_during_the_request_is_unknown(broker: SimulatedBroker) -> None:
    topic_id = broker.image.topics.by_name["orders"].topic_id
    del broker.core.logs[topic_id, 0]
    assert delete(broker, ("orders", 0, 4)) == [(-1, 3)]


def test_log_start_never_moves_back(broker: SimulatedBroker) -> None:
    delete(broker, ("orders", 0, 4))
    assert delete(broker, ("orders", 0, 2)) == [(4, 0)]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (("orders", 0, 11), 1),
        (("orders", 0, -2), 1),
        (("orders", 0, 2**63 - 1), 1),
        (("orders", 7, 0), 3),
        (("orders", -1, 0), 3),
        (("nobody", 0, 0), 3),
        (("__consumer_offsets", 0, 0), 17),
    ],
    ids=str,
)
def test_invalid_partition_or_offset_is_rejected(
    broker: SimulatedBroker, asked: tuple[str, int, int], code: int
) -> None:
    assert delete(broker, asked, ("orders", 1, 0)) == [(-1, code), (0, 0)]


def test_a_partition_named_twice_is_answered_once(broker: SimulatedBroker) -> None:
    assert delete(broker, ("orders", 0, 11), ("orders", 0, 3)) == [(3, 0)]


def test_an_empty_request_is_answered(broker: SimulatedBroker) -> None:
    assert delete(broker) == []
