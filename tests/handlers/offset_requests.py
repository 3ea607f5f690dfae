"""Requests about committed offsets, in every version."""

from pykafka_core.protocol.messages import (
    CreateTopicsRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from tests.handlers.group_requests import broker_with_coordinator
from tests.support.simulated.broker import SimulatedBroker

TOPIC = "orders"
ABSENT_ID = bytes(15) + b"\xff"

Fetched = tuple[int, int, str | None, int]
"""A committed offset: offset, leader epoch, metadata and error code."""


def broker_with_topic(partitions: int = 3) -> SimulatedBroker:
    broker = broker_with_coordinator()
    create_topic(broker, partitions)
    return broker


def create_topic(broker: SimulatedBroker, partitions: int = 3, name: str = TOPIC) -> None:
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]))


def topic_id(broker: SimulatedBroker, name: str = TOPIC) -> bytes:
    topic = broker.image.topics.by_name.get(name)
    return ABSENT_ID if topic is None else topic.topic_id


def commit(
    broker: SimulatedBroker,
    offsets: dict[int, int],
    version: int = 9,
    topic: str = TOPIC,
    metadata: str = "m",
    **fields: object,
) -> list[int]:
    """Commit offsets by partition; return the error codes."""
    partitions = [
        OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=index,
            committed_offset=offset,
            committed_metadata=metadata,
            **({"committed_leader_epoch": 4} if version >= 6 else {}),
        )
        for index, offset in offsets.items()
    ]
    named = {"topic_id": topic_id(broker, topic)} if version >= 10 else {"name": topic}
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(partitions=partitions, **named)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    response = broker.ask(request, version)
    assert isinstance(response, OffsetCommitResponse)
    return [row.error_code for row in response.topics[0].partitions]


def fetch(
    broker: SimulatedBroker,
    partitions: list[int] | None,
    version: int = 9,
    topic: str = TOPIC,
    group_id: str = "g",
    require_stable: bool = False,
) -> dict[int, Fetched]:
    """Return the committed offsets of a group for a topic, by partition; without ``partitions`` for
    all its topics.
    """
    if version < 8:
        topics = None
        if partitions is not None:
            one = OffsetFetchRequest.OffsetFetchRequestTopic(
                name=topic, partition_indexes=partitions
            )
            topics = [one]
        request = OffsetFetchRequest(group_id=group_id, topics=topics)
        request.require_stable = require_stable
        response = broker.ask(request, version)
        assert isinstance(response, OffsetFetchResponse)
        rows = [row for one in response.topics for row in one.partitions]
    else:
        wanted = None
        if partitions is not None:
            named = {"topic_id": topic_id(broker, topic)} if version >= 10 else {"name": topic}
            wanted = [
                OffsetFetchRequest.OffsetFetchRequestTopics(
                    partition_indexes=partitions,
                    **named,
                )
            ]
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=wanted)
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        response = broker.ask(request, version)
        assert isinstance(response, OffsetFetchResponse)
        (found,) = response.groups
        rows = [row for one in found.topics for row in one.partitions]  # type: ignore[misc]
    return {
        row.partition_index: (
            row.committed_offset,
            row.committed_leader_epoch,
            row.metadata,
            row.error_code,
        )
        for row in rows
    }
