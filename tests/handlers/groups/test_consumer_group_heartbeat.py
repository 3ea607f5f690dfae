"""ConsumerGroupHeartbeat: the checks before the group handles it, and the responses."""

from collections.abc import Sequence
from typing import Any

import pytest

from pykafka_core.errors import (
    FencedMemberEpochError,
    GroupIdNotFoundError,
    InvalidRegularExpressionError,
    InvalidRequestError,
    NonEmptyGroupError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownServerError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
)
from pykafka_core.handlers.groups.consumer_group_heartbeat import NAMES_MAX
from pykafka_core.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    IncrementalAlterConfigsRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    UpdateFeaturesRequest,
)
from pykafka_core.types import RESOURCE_GROUP
from tests.coordinator.group.consumer.world import FIRST
from tests.handlers.group_requests import (
    broker_with_coordinator,
    join_request,
    joined,
    pass_ms,
)
from tests.support.simulated.broker import SimulatedBroker


def broker_with_topic(partitions_count: int = 4) -> SimulatedBroker:
    broker = broker_with_coordinator()
    topic = CreateTopicsRequest.CreatableTopic(
        name="t", num_partitions=partitions_count, replication_factor=1
    )
    broker.ask(CreateTopicsRequest(topics=[topic]), 7)
    return broker


def beat(
    broker: SimulatedBroker, member_epoch: int = 0, version: int = 1, **changes: object
) -> ConsumerGroupHeartbeatResponse:
    fields: dict[str, object] = {"group_id": "g", "member_id": "m", "member_epoch": member_epoch}
    if member_epoch == 0:
        fields |= {
            "rebalance_timeout_ms": 60_000,
            "subscribed_topic_names": ["t"],
            "topic_partitions": [],
        }
    request = ConsumerGroupHeartbeatRequest(**fields | changes)  # type: ignore[arg-type]
    response = broker.ask(request, version)
    assert isinstance(response, ConsumerGroupHeartbeatResponse)
    return response


def partitions(response: ConsumerGroupHeartbeatResponse) -> Sequence[int]:
    assert response.assignment is not None
    return [number for row in response.assignment.topic_partitions for number in row.partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_member_joins_stays_and_leaves(version: int) -> None:
    broker = broker_with_topic()
    first = beat(broker, version=version)
    assert (first.error_code, first.member_id, first.member_epoch) == (0, "m", FIRST)
    assert first.heartbeat_interval_ms == 5_000
    assert partitions(first) == [0, 1, 2, 3]
    assert beat(broker, FIRST, version).assignment is None
    last = beat(broker, -1, version)
    assert (last.error_code, last.member_id, last.member_epoch) == (0, "m", -1)
    assert beat(broker, FIRST, version).error_code == UnknownMemberIdError.code


def set_for_group(broker: SimulatedBroker, **values: str) -> None:
    alterable = IncrementalAlterConfigsRequest.AlterableConfig
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=RESOURCE_GROUP,
        resource_name="g",
        configs=[
            alterable(name=f"consumer.{name.replace('_', '.')}", config_operation=0, value=value)
            for name, value in values.items()
        ],
    )
    response: Any = broker.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response


def is_member(broker: SimulatedBroker) -> bool:
    """Return whether the group has a member; a heartbeat would extend the session."""
    response: Any = broker.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 0)
    return bool(response.groups[0].members)


@pytest.mark.parametrize(("interval_ms", "epoch"), [("0", FIRST + 1), ("1000", FIRST)])
def test_assignment_interval_of_a_group_applies(interval_ms: str, epoch: int) -> None:
    broker = broker_with_topic()
    set_for_group(broker, assignment_interval_ms=interval_ms)
    beat(broker)
    assert beat(broker, member_id="n").member_epoch == epoch


@pytest.mark.parametrize("restarts", [False, True])
def test_group_settings_apply_to_members(restarts: bool) -> None:
    broker = broker_with_topic()
    set_for_group(broker, session_timeout_ms="55000", heartbeat_interval_ms="7000")
    assert beat(broker).heartbeat_interval_ms == 7_000
    assert beat(broker, group_id="other").heartbeat_interval_ms == 5_000
    if restarts:
        broker = SimulatedBroker(core=broker.core)
        broker.run()
    pass_ms(broker, 54_000)
    assert is_member(broker)
    pass_ms(broker, 1_001)
    assert not is_member(broker)


def test_stored_settings_of_a_group_are_capped_to_the_bounds_of_its_broker() -> None:
    """As in Kafka 4.4: the bounds have changed since the settings were stored."""
    broker = broker_with_topic()
    set_for_group(broker, session_timeout_ms="55000", heartbeat_interval_ms="7000")
    bounds = {
        "group.consumer.max.session.timeout.ms": "50000",
        "group.consumer.heartbeat.interval.ms": "8000",
        "group.consumer.min.heartbeat.interval.ms": "8000",
    }
    restarted = SimulatedBroker(bounds, broker.core)
    restarted.run()
    assert beat(restarted).heartbeat_interval_ms == 8_000
    pass_ms(restarted, 50_001)
    assert not is_member(restarted)


def test_member_of_version_0_can_get_its_id_from_the_coordinator() -> None:
    given = beat(broker_with_topic(), version=0, member_id="").member_id
    assert given
    assert given != "m"


@pytest.mark.parametrize(
    ("epoch", "changes", "message"),
    [
        (0, {"member_id": ""}, "MemberId can't be empty."),
        (1, {"member_id": ""}, "MemberId can't be empty."),
        (-1, {"member_id": ""}, "MemberId can't be empty."),
        (0, {"group_id": ""}, "GroupId can't be empty."),
        (0, {"instance_id": ""}, "InstanceId can't be empty."),
        (0, {"rack_id": ""}, "RackId can't be empty."),
        (0, {"member_id": " "}, "MemberId can't be empty."),
        (0, {"group_id": "\t"}, "GroupId can't be empty."),
        (0, {"instance_id": "\0"}, "InstanceId can't be empty."),
        (0, {"rack_id": " \x1f"}, "RackId can't be empty."),
        (0, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        (0, {"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            0,
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when"
            " (re-)joining.",
        ),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is invalid."),
    ],
)
def test_invalid_request_fails_with_a_reason(
    epoch: int, changes: dict[str, Any], message: str
) -> None:
    response = beat(broker_with_topic(), epoch, **changes)
    assert (response.error_code, response.error_message) == (InvalidRequestError.code, message)


def test_unknown_assignor_is_rejected() -> None:
    response = beat(broker_with_topic(), server_assignor="mine")
    assert response.error_code == UnsupportedAssignorError.code
    assert response.error_message == (
        "ServerAssignor mine is not supported. Supported assignors: uniform, range."
    )


def test_regular_expression_must_match_the_whole_topic_name() -> None:
    broker = broker_with_topic()
    by_regex: dict[str, Any] = {"subscribed_topic_names": []}
    first = beat(broker, subscribed_topic_regex="T|[s-u]", **by_regex)
    assert partitions(first) == [0, 1, 2, 3]
    other = beat(broker, group_id="other", subscribed_topic_regex="", **by_regex)
    assert partitions(other) == []
    internal = beat(broker, group_id="third", subscribed_topic_regex="_.*", **by_regex)
    assert partitions(internal) == [*range(50)]


@pytest.mark.parametrize("regex", ["(", "(?=t)t", "t\\1"])
def test_expression_that_re2_rejects_is_rejected(regex: str) -> None:
    response = beat(broker_with_topic(), subscribed_topic_regex=regex)
    assert response.error_code == InvalidRegularExpressionError.code
    assert (response.error_message or "").startswith(
        f"SubscribedTopicRegex `{regex}` is not a valid"
    )


def test_more_topics_than_a_turn_can_process_are_rejected() -> None:
    names = [f"t{number}" for number in range(NAMES_MAX + 1)]
    response = beat(broker_with_topic(), subscribed_topic_names=names)
    assert response.error_code == InvalidRequestError.code


def test_new_topic_is_assigned_to_its_subscriber() -> None:
    broker = broker_with_coordinator()
    assert partitions(beat(broker)) == []
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    broker.ask(CreateTopicsRequest(topics=[topic]), 7)
    response = beat(broker, FIRST, topic_partitions=[])
    assert response.member_epoch == FIRST + 1
    assert partitions(response) == [0, 1]


def test_a_silent_member_is_removed() -> None:
    broker = broker_with_topic()
    beat(broker)
    pass_ms(broker, 45_000)
    assert beat(broker, FIRST).error_code == UnknownMemberIdError.code


# Groups of one kind that get requests for the other kind.


def test_classic_group_with_members_rejects_consumers() -> None:
    broker = broker_with_topic()
    member_id = joined(broker)
    assert beat(broker).error_code == GroupIdNotFoundError.code
    broker.ask(LeaveGroupRequest(group_id="g", member_id=member_id), 1)
    assert beat(broker).error_code == 0
    assert types(broker) == {"g": ("consumer", "Stable")}


def test_consumer_group_accepts_classic_members() -> None:
    broker = broker_with_topic()
    beat(broker)
    malformed = broker.ask(join_request(), 3)
    assert isinstance(malformed, JoinGroupResponse)
    assert malformed.error_code == UnknownServerError.code
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=bytes(10))
    request = join_request()
    request.protocols = [protocol]
    taken = broker.ask(request, 3)
    assert isinstance(taken, JoinGroupResponse)
    assert (taken.error_code, taken.leader) == (0, "")
    broker.ask(LeaveGroupRequest(group_id="g", member_id=taken.member_id), 1)
    silent = broker.ask(HeartbeatRequest(group_id="g", member_id="m", generation_id=FIRST), 4)
    assert isinstance(silent, HeartbeatResponse)
    assert silent.error_code == UnknownMemberIdError.code
    beat(broker, -1)
    joined(broker)
    assert types(broker) == {"g": ("classic", "Stable")}


def types(broker: SimulatedBroker) -> dict[str, tuple[str, str]]:
    response = broker.ask(ListGroupsRequest(), 5)
    assert isinstance(response, ListGroupsResponse)
    return {row.group_id: (row.group_type, row.group_state) for row in response.groups}


def test_offsets_survive_a_change_of_the_group_type() -> None:
    broker = broker_with_topic()
    assert commit(broker, "", -1) == 0
    beat(broker)
    assert fetched(broker, "m", FIRST) == (0, 5)
    beat(broker, -1)
    joined(broker)
    assert fetched(broker, None, -1) == (0, 5)


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "code"),
    [
        ("m", FIRST, 9, 0),
        ("m", FIRST, 8, UnsupportedVersionError.code),
        ("m", FIRST - 1, 9, StaleMemberEpochError.code),
        ("m", FIRST + 1, 9, StaleMemberEpochError.code),
        ("other", FIRST, 9, UnknownMemberIdError.code),
        ("", -1, 9, UnknownMemberIdError.code),
    ],
)
def test_commit_needs_a_member_in_its_epoch(
    member_id: str, epoch: int, version: int, code: int
) -> None:
    broker = broker_with_topic()
    beat(broker)
    assert commit(broker, member_id, epoch, version) == code


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [
        (None, -1, 0),
        ("m", FIRST, 0),
        ("m", FIRST - 1, StaleMemberEpochError.code),
        ("other", FIRST, UnknownMemberIdError.code),
    ],
)
def test_offset_fetch_of_a_member_needs_its_epoch(
    member_id: str | None, epoch: int, code: int
) -> None:
    broker = broker_with_topic()
    beat(broker)
    commit(broker, "m", FIRST)
    assert fetched(broker, member_id, epoch) == (code, None if code else 5)


def test_only_an_empty_group_is_deleted() -> None:
    broker = broker_with_topic()
    beat(broker)
    commit(broker, "m", FIRST)
    assert deleted(broker) == NonEmptyGroupError.code
    beat(broker, -1)
    assert deleted(broker) == 0
    assert types(broker) == {}
    assert fetched(broker, None, -1) == (0, -1)


def test_offsets_of_subscribed_topics_are_kept() -> None:
    broker = broker_with_topic()
    beat(broker)
    commit(broker, "m", FIRST)
    one = OffsetDeleteRequest.OffsetDeleteRequestPartition()
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic(name="t", partitions=[one])
    responses = []
    for epoch in (FIRST, -1):
        beat(broker, epoch)
        response = broker.ask(OffsetDeleteRequest(group_id="g", topics=[topic]), 0)
        assert isinstance(response, OffsetDeleteResponse)
        responses.append(response.topics[0].partitions[0].error_code)
    assert responses == [86, 0]


def test_empty_group_without_offsets_is_removed() -> None:
    broker = broker_with_topic()
    beat(broker)
    pass_ms(broker, 600_000)
    pass_ms(broker, 600_000)
    assert types(broker) == {}


def commit(broker: SimulatedBroker, member_id: str, epoch: int, version: int = 9) -> int:
    one = OffsetCommitRequest.OffsetCommitRequestPartition(committed_offset=5)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=[one])
    request = OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[topic],
    )
    response = broker.ask(request, version)
    assert isinstance(response, OffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def fetched(broker: SimulatedBroker, member_id: str | None, epoch: int) -> tuple[int, int | None]:
    of = OffsetFetchRequest
    topic = of.OffsetFetchRequestTopics(name="t", partition_indexes=[0])
    group = of.OffsetFetchRequestGroup(
        group_id="g", member_id=member_id, member_epoch=epoch, topics=[topic]
    )
    response = broker.ask(of(groups=[group]), 9)
    assert isinstance(response, OffsetFetchResponse)
    (found,) = response.groups
    offset = found.topics[0].partitions[0].committed_offset if found.topics else None
    return found.error_code, offset


def deleted(broker: SimulatedBroker) -> int:
    response = broker.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert isinstance(response, DeleteGroupsResponse)
    return response.results[0].error_code


def test_epoch_before_the_first_assignment_is_fenced() -> None:
    """In Kafka 4.2 it was 0: an invalid request to join (42) instead of a fenced epoch (110)."""
    broker = broker_with_topic()
    beat(broker)
    assert beat(broker, FIRST - 1).error_code == FencedMemberEpochError.code


def test_without_group_version_the_protocol_is_not_supported() -> None:
    broker = broker_with_topic()
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="group.version", max_version_level=0, upgrade_type=2
    )
    broker.ask(UpdateFeaturesRequest(feature_updates=[update]))
    assert "group.version" not in broker.image.features
    assert beat(broker).error_code == 35
