"""OffsetCommit: committed offsets are fetched again, and rejected ones have Kafka's errors."""

from typing import Any

import pytest

from pykafka_core.protocol.messages import (
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from tests.handlers.group_requests import broker_with_coordinator, join_request, joined, pass_ms
from tests.handlers.offset_requests import TOPIC, broker_with_topic, commit, create_topic, fetch
from tests.support.simulated.broker import SimulatedBroker
from tests.support.simulated.fake_core import FakeCore

DAY_MS = 24 * 60 * 60 * 1000


@pytest.mark.parametrize("version", range(2, 11))
def test_committed_offset_can_be_fetched(version: int) -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5, 2: 7}, version) == [0, 0]
    epoch = 4 if version >= 6 else -1
    assert fetch(broker, [0, 1, 2]) == {
        0: (5, epoch, "m", 0),
        1: (-1, -1, "", 0),
        2: (7, epoch, "m", 0),
    }


@pytest.mark.parametrize("version", range(2, 11))
def test_missing_partitions_do_not_block_the_commit_of_others(version: int) -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5, 3: 1, -1: 1}, version) == [0, 3, 3]
    assert fetch(broker, [0])[0][0] == 5
    unknown = 100 if version >= 10 else 3
    assert commit(broker, {0: 5}, version, topic="absent") == [unknown]


def test_metadata_length_is_limited_by_the_setting() -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5}, metadata="m" * 4096) == [0]
    assert commit(broker, {0: 6}, metadata="m" * 4097) == [12]
    assert commit(broker, {0: 6}, metadata="😀" * 2049) == [12]
    assert fetch(broker, [0])[0][0] == 5


@pytest.mark.parametrize(("version", "code"), [(8, 22), (9, 69)])
def test_generation_of_a_missing_group_is_rejected(version: int, code: int) -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5}, version, generation_id_or_member_epoch=1) == [code]
    assert fetch(broker, [0])[0][0] == -1


def test_only_members_of_this_generation_can_commit_while_there_are_members() -> None:
    broker = broker_with_topic()
    member = joined(broker)
    generation: dict[str, Any] = {"member_id": member, "generation_id_or_member_epoch": 1}
    assert commit(broker, {0: 1}) == [25]
    assert commit(broker, {0: 1}, **{**generation, "member_id": "stranger"}) == [25]
    assert commit(broker, {0: 1}, **{**generation, "generation_id_or_member_epoch": 2}) == [22]
    assert commit(broker, {0: 1}, **generation) == [0]
    assert fetch(broker, [0])[0][0] == 1


def test_commit_keeps_the_session_of_its_member_alive() -> None:
    broker = broker_with_topic()
    generation: dict[str, Any] = {"member_id": joined(broker), "generation_id_or_member_epoch": 1}
    for _ in range(3):
        pass_ms(broker, 9_000)
        assert commit(broker, {0: 1}, **generation) == [0]
    pass_ms(broker, 11_000)
    assert commit(broker, {0: 1}, **generation) == [25]


def test_a_commit_that_fits_into_no_batch_changes_nothing() -> None:
    broker = broker_with_topic(partitions=300)
    metadata = "m" * 4096
    assert commit(broker, dict.fromkeys(range(300), 5), metadata=metadata) == [-1] * 300
    assert fetch(broker, None) == {}


def test_without_the_offsets_topic_nothing_is_committed() -> None:
    broker = SimulatedBroker()
    assert commit(broker, {0: 5}) == [3]  # the topic does not exist, either
    assert commit(broker_with_coordinator(), {0: 5}) == [3]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_old_clients_set_the_retention_of_their_offsets(version: int) -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5}, version, retention_time_ms=DAY_MS) == [0]
    pass_time(broker, DAY_MS // 2)
    assert fetch(broker, [0])[0][0] == 5
    pass_time(broker, DAY_MS)
    assert fetch(broker, [0])[0][0] == -1


def test_offsets_of_an_empty_group_expire_a_week_after_their_commit() -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5}) == [0]
    pass_time(broker, 6 * DAY_MS)
    assert commit(broker, {1: 6}) == [0]
    assert fetch(broker, [0, 1])[0][0] == 5
    pass_time(broker, 2 * DAY_MS)
    assert [offset for offset, *_ in fetch(broker, [0, 1]).values()] == [-1, 6]


def pass_time(broker: SimulatedBroker, duration_ms: int) -> None:
    """Advance both clocks, by enough for the periodic searches."""
    broker.core.clock_ms += duration_ms
    for _ in range(5):
        pass_ms(broker, 600_001)


@pytest.mark.parametrize("version", [2, 9, 10])
def test_known_topic_without_a_coordinator_returns_coordinator_not_available(version: int) -> None:
    broker = SimulatedBroker()
    create_topic(broker)
    assert commit(broker, {0: 5, 3: 5}, version) == [15, 3]


@pytest.mark.parametrize("version", range(2, 11))
def test_member_without_an_assignment_gets_rebalance_in_progress(version: int) -> None:
    broker = broker_with_topic()
    response = broker.ask(join_request(), 3)
    assert isinstance(response, JoinGroupResponse)
    member: dict[str, Any] = {"member_id": response.member_id, "generation_id_or_member_epoch": 1}
    assert commit(broker, {0: 1, 3: 1}, version, **member) == [27, 3]
    assert fetch(broker, [0])[0][0] == -1


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_a_static_member_that_was_replaced_is_fenced(version: int) -> None:
    broker = broker_with_topic()
    first = broker.ask(join_request(group_instance_id="i"), 5)
    second = broker.ask(join_request(group_instance_id="i"), 5)
    assert isinstance(first, JoinGroupResponse)
    assert isinstance(second, JoinGroupResponse)
    assert first.member_id != second.member_id
    identity: dict[str, Any] = {"group_instance_id": "i", "member_id": first.member_id}
    generation: dict[str, Any] = {"generation_id_or_member_epoch": second.generation_id}
    assert commit(broker, {0: 1}, version, **identity, **generation) == [82]
    identity["group_instance_id"] = "another"
    assert commit(broker, {0: 1}, version, **identity, **generation) == [25]


@pytest.mark.parametrize("version", range(2, 11))
def test_empty_group_id_is_a_valid_group(version: int) -> None:
    broker = broker_with_topic()
    assert commit(broker, {0: 5}, version, group_id="") == [0]
    assert commit(broker, {0: 6}, version) == [0]
    assert fetch(broker, [0], group_id="")[0][0] == 5


def test_last_offset_of_a_partition_named_twice_wins() -> None:
    broker = broker_with_topic()
    row = OffsetCommitRequest.OffsetCommitRequestPartition
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(
        name=TOPIC,
        partitions=[row(partition_index=0, committed_offset=offset) for offset in (5, 4)],
    )
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=-1, topics=[topic, topic]
    )
    response = broker.ask(request, 9)
    assert isinstance(response, OffsetCommitResponse)
    assert [len(one.partitions) for one in response.topics] == [2, 2]
    assert fetch(broker, [0])[0][0] == 4


def test_missing_metadata_is_fetched_as_an_empty_string() -> None:
    broker = broker_with_topic()
    row = OffsetCommitRequest.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=None
    )
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[row])
    broker.ask(
        OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic]), 9
    )
    assert fetch(broker, [0]) == {0: (5, -1, "", 0)}


def test_request_without_topics_gets_a_reply_without_topics() -> None:
    response = broker_with_topic().ask(OffsetCommitRequest(group_id="g", topics=[]), 9)
    assert response == OffsetCommitResponse(topics=[])


def test_group_error_precedes_the_error_of_long_metadata() -> None:
    broker = broker_with_topic()
    member: dict[str, Any] = {"member_id": joined(broker), "generation_id_or_member_epoch": 1}
    assert commit(broker, {0: 1}, metadata="m" * 4097) == [25]
    assert commit(broker, {0: 1}, metadata="m" * 4097, **member) == [12]


def test_rejected_commit_with_long_metadata_keeps_the_session_alive() -> None:
    broker = broker_with_topic()
    member: dict[str, Any] = {"member_id": joined(broker), "generation_id_or_member_epoch": 1}
    for _ in range(3):
        pass_ms(broker, 9_000)
        assert commit(broker, {0: 1}, metadata="m" * 4097, **member) == [12]


def test_offsets_survive_a_restart() -> None:
    broker = broker_with_topic()
    commit(broker, {0: 5, 2: 7})
    again = SimulatedBroker(core=FakeCore(logs=broker.core.logs), ids=broker.ids)
    assert fetch(again, [0, 1, 2]) == fetch(broker, [0, 1, 2])
