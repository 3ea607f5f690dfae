"""OffsetDelete: an administrator deletes offsets of a group."""

import pytest

from pykafka_core.protocol.messages import (
    JoinGroupRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from tests.handlers.group_requests import broker_with_coordinator, join_request, joined
from tests.handlers.offset_requests import TOPIC, broker_with_topic, commit, fetch
from tests.support.simulated.broker import SimulatedBroker


def delete(
    broker: SimulatedBroker, partitions: list[int], topic: str = TOPIC, group_id: str = "g"
) -> tuple[int, list[int]]:
    rows = [OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
    asked = OffsetDeleteRequest.OffsetDeleteRequestTopic(name=topic, partitions=rows)
    response = broker.ask(OffsetDeleteRequest(group_id=group_id, topics=[asked]))
    assert isinstance(response, OffsetDeleteResponse)
    codes = [row.error_code for one in response.topics for row in one.partitions]
    return response.error_code, codes


def test_named_offsets_are_deleted_and_others_stay() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1, 1: 2, 2: 3})
    assert delete(broker, [0, 2, 2]) == (0, [0, 0, 0])
    assert [row[0] for row in fetch(broker, [0, 1, 2]).values()] == [-1, 2, -1]


def test_missing_group_returns_an_error() -> None:
    assert delete(broker_with_topic(), [0]) == (69, [])


def test_missing_topic_returns_an_error() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1})
    assert delete(broker, [0], topic="absent") == (0, [3])


def test_offsets_of_topics_that_members_are_subscribed_to_stay() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1})
    joined(broker)  # the topics in its metadata cannot be read, so it may subscribe to all
    assert delete(broker, [0]) == (0, [86])
    assert fetch(broker, [0])[0][0] == 1


def test_a_group_of_another_protocol_with_members_keeps_its_offsets() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1})
    broker.ask(join_request(protocol_type="connect"), 3)
    assert delete(broker, [0]) == (68, [])
    assert fetch(broker, [0])[0][0] == 1


@pytest.mark.parametrize("has_topic", [True, False])
def test_without_a_shard_there_is_no_coordinator(has_topic: bool) -> None:
    broker = broker_with_coordinator() if has_topic else SimulatedBroker()
    assert delete(broker, [0]) == (69 if has_topic else 15, [])


def test_offsets_of_topics_that_members_do_not_read_are_deleted() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1})
    metadata = b"\0\0" + b"\0\0\0\1" + b"\0\5other"  # version 0, one topic
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=metadata)
    broker.ask(join_request(protocols=[protocol]), 3)
    assert delete(broker, [0]) == (0, [0])
    assert fetch(broker, [0])[0][0] == -1


def test_partition_without_an_offset_succeeds_and_a_missing_one_fails() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1})
    assert delete(broker, [1, 99, -1]) == (0, [0, 3, 3])
    assert fetch(broker, [0])[0][0] == 1


def test_empty_group_id_is_a_valid_group() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 1}, group_id="")
    commit(broker, {0: 2})
    assert delete(broker, [0], group_id="") == (0, [0])
    assert [fetch(broker, [0], group_id=name)[0][0] for name in ("", "g")] == [-1, 2]
