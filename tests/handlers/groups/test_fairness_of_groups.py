"""Large requests about one group do not keep the control thread from the heartbeats of others.

The tests count the records that one turn encodes instead of time, because the machine may be slow.
"""

from typing import Any

import pytest

from pykafka_core.coordinator.group.offsets import commit as commit_module
from pykafka_core.coordinator.group.offsets.records import OffsetRecords
from pykafka_core.handlers.offsets import offset_commit as handler
from pykafka_core.handlers.offsets import offset_fetch
from pykafka_core.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from tests.handlers.group_requests import broker_with_coordinator, join_request, pass_ms
from tests.handlers.offset_requests import broker_with_topic, commit, create_topic
from tests.support.simulated.broker import SimulatedBroker

MANY = 9_000


@pytest.fixture(scope="module")
def broker() -> SimulatedBroker:
    return broker_with_topic(MANY)


@pytest.mark.parametrize("metadata", ["", "x" * 1000])
def test_no_turn_encodes_the_records_of_a_commit(
    broker: SimulatedBroker, monkeypatch: pytest.MonkeyPatch, metadata: str
) -> None:
    in_turns: list[int] = []

    def counting(commit: object, state: object, waiter: object, turn: object) -> None:
        before = len(made)
        real_commit(commit, state, waiter, turn)  # type: ignore[arg-type]
        in_turns.append(len(made) - before)

    made: list[object] = []
    real_commit, real_record = commit_module.commit_offsets, OffsetRecords.of

    def record(*arguments: Any) -> Any:
        made.append(arguments)
        return real_record(*arguments)

    monkeypatch.setattr(OffsetRecords, "of", record)
    monkeypatch.setattr(handler, "commit_offsets", counting)
    codes = commit(broker, dict.fromkeys(range(MANY), 1), metadata=metadata)
    assert set(codes) == {-1 if metadata else 0}
    assert len(made) == MANY
    assert in_turns in ([], [0])


def test_group_with_more_offsets_than_fit_into_a_batch_can_be_deleted() -> None:
    broker = broker_with_topic(MANY)
    for number in range(3):
        create_topic(broker, MANY, f"orders{number}")
        for start in range(0, MANY, 3_000):
            places = dict.fromkeys(range(start, start + 3_000), 1)
            assert set(commit(broker, places, topic=f"orders{number}")) == {0}
    deletion = broker.send(DeleteGroupsRequest(groups_names=["g"]), 2)
    broker.run()
    assert broker.response(deletion) is None
    for _ in range(4 * MANY):
        pass_ms(broker, 1)
        if (response := broker.response(deletion)) is not None:
            break
    assert isinstance(response, DeleteGroupsResponse)
    assert [row.error_code for row in response.results] == [0]


def test_naming_a_group_many_times_does_not_multiply_the_reply() -> None:
    broker = broker_with_coordinator()
    for number in range(200):
        broker.send(join_request(group_instance_id=f"i{number}"), 5)
    broker.run()
    request = broker.send(DescribeGroupsRequest(groups=["g"] * 2_000), 5)
    broker.run()
    assert len(broker.core.replies[request] or b"") < 8 * 1024 * 1024


def test_naming_a_group_many_times_does_not_multiply_its_offsets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offset_fetch, "RESPONSE_BYTES_MAX", 5 * 160)
    broker = broker_with_topic()
    commit(broker, {0: 1, 1: 1, 2: 1})
    named = OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)
    response = broker.ask(OffsetFetchRequest(groups=[named] * 4), 9)
    assert isinstance(response, OffsetFetchResponse)
    assert [group.error_code for group in response.groups] == [0, 0, 15, 15]
    assert [len(group.topics) for group in response.groups] == [1, 1, 0, 0]


def test_member_whose_metadata_fits_no_record_is_rejected() -> None:
    broker = broker_with_coordinator()
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(3_000_000))
    response = broker.ask(join_request(protocols=[protocol]), 3)
    assert isinstance(response, JoinGroupResponse)
    assert response.error_code != 0


def test_lowered_max_message_bytes_rejects_only_larger_commits() -> None:
    broker = broker_with_topic()
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2,
        resource_name="__consumer_offsets",
        configs=[
            IncrementalAlterConfigsRequest.AlterableConfig(name="max.message.bytes", value="1000")
        ],
    )
    broker.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    assert commit(broker, {0: 1}, metadata="m" * 2000) == [-1]
    assert commit(broker, {0: 1}) == [0]
