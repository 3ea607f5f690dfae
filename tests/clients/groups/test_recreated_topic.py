"""A recreated topic has no offset of its predecessor; its shard holds 200,000 other offsets."""

from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Consumer, Producer

from pykafka_core import Broker
from pykafka_core.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from tests.support.patience import PATIENCE_S, POLL_S, eventually
from tests.support.wire import Connection

pytestmark = pytest.mark.load

METADATA, OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 3, 8, 9, 10
BY_TOPIC_ID, NONE = 10, -1
GROUP, TOPIC, ROUNDS = "shipping", "orders", 5
OTHER_GROUPS, OTHER_PARTITIONS = 200, 1000
"""Their 200,000 offsets are in the same shard as `GROUP`, because there is only one."""
RECORDS, STALE_OFFSET = 1000, 20


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"offsets.topic.num.partitions": 1}) as made:
        made.create_topic("others", OTHER_PARTITIONS)
        with Connection(made.bootstrap_servers) as connection:
            eventually(lambda: has_coordinator(connection))
            for number in range(OTHER_GROUPS):
                commit(connection, f"other-{number}", "others", range(OTHER_PARTITIONS))
        yield made


def has_coordinator(connection: Connection) -> bool:
    request = FindCoordinatorRequest(coordinator_keys=[GROUP])
    response: FindCoordinatorResponse = connection.ask(FIND_COORDINATOR, 4, request)
    return response.coordinators[0].error_code == 0


def commit(connection: Connection, group: str, topic: str, partitions: Sequence[int]) -> None:
    of = OffsetCommitRequest
    offsets = [
        of.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=STALE_OFFSET, committed_leader_epoch=-1
        )
        for index in partitions
    ]
    topics = [of.OffsetCommitRequestTopic(name=topic, partitions=offsets)]
    request = of(group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    response: OffsetCommitResponse = connection.ask(OFFSET_COMMIT, 9, request)
    codes = [one.error_code for topic in response.topics for one in topic.partitions]
    assert codes == [0] * len(partitions)


def committed_by_id(connection: Connection, topic_id: bytes) -> int:
    of = OffsetFetchRequest
    topics = [of.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    group = of.OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
    response: OffsetFetchResponse = connection.ask(OFFSET_FETCH, BY_TOPIC_ID, of(groups=[group]))
    (found,) = response.groups[0].topics[0].partitions
    assert found.error_code == 0
    return found.committed_offset


def id_of(connection: Connection, topic: str) -> bytes:
    named = MetadataRequest.MetadataRequestTopic(name=topic)
    response: MetadataResponse = connection.ask(METADATA, 12, MetadataRequest(topics=[named]))
    return response.topics[0].topic_id


def read_by_group(bootstrap: str) -> list[bytes]:
    settings = {"bootstrap.servers": bootstrap, "group.id": GROUP, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    values: list[bytes] = []

    def has_all() -> bool:
        messages = consumer.consume(RECORDS, POLL_S)
        values.extend(message.value() for message in messages if message.error() is None)
        return len(values) >= RECORDS

    eventually(has_all, "all records")
    consumer.close()
    return values


@pytest.mark.parametrize("number", range(ROUNDS))
def test_group_reads_all_records_of_a_recreated_topic_from_the_earliest(
    broker: Broker, number: int
) -> None:
    """Regression: it skipped as many as the deleted topic's offset, 5 times of 5."""
    written = [f"{number} {record}".encode() for record in range(RECORDS)]
    with Connection(broker.bootstrap_servers) as connection:
        broker.create_topic(TOPIC, 1)
        commit(connection, GROUP, TOPIC, [0])
        assert committed_by_id(connection, id_of(connection, TOPIC)) == STALE_OFFSET
        broker.delete_topic(TOPIC)
        broker.create_topic(TOPIC, 1)
        assert committed_by_id(connection, id_of(connection, TOPIC)) == NONE
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for value in written:
        producer.produce(TOPIC, value)
    assert producer.flush(PATIENCE_S) == 0
    assert read_by_group(broker.bootstrap_servers) == written
    broker.delete_topic(TOPIC)
