"""Applies the records of consumer groups; consumer groups change only here.

A heartbeat with changes also replays its records here (`consumer.draft`), so a group that was
loaded from the log is equal to the group that wrote the log.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pykafka_core.coordinator.group.consumer.group import (
    INITIAL_EPOCH,
    NO_TIME_MS,
    ConsumerGroup,
    ResolvedRegex,
)
from pykafka_core.coordinator.group.consumer.member import (
    HOLDS_NOTHING,
    LEAVE_EPOCH,
    ClassicSide,
    ConsumerMember,
    Held,
    MemberState,
    assignment_of,
)
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    decode_record_key,
    decode_record_value,
)

_GROUP = "ConsumerGroupMetadata"


def replay_consumer_group(state: GroupState, key: bytes, value: bytes | None) -> None:
    """Apply a stored record of one of `KINDS`.

    Raises:
        ProtocolError: The bytes are not such a record.
    """
    name, stored_key, stored = _decoded(key, value)
    group_id = stored_key.group_id
    if stored is None and name == _GROUP:
        state.consumer_groups.pop(group_id, None)
    elif stored is not None and group_id not in state.consumer_groups:
        # It replaces a classic group, which is a simple one, or whose tombstone was replayed
        # before.
        state.groups.pop(group_id, None)
        state.consumer_groups[group_id] = ConsumerGroup(group_id, state.member_memory)
    group = state.consumer_groups.get(group_id)
    if group is not None:
        _REPLAYED[name](group, stored_key, stored)


def apply(group: ConsumerGroup, key: bytes, value: bytes | None) -> None:
    """Apply one of a group's records, except the tombstone of the group."""
    name, stored_key, stored = _decoded(key, value)
    _REPLAYED[name](group, stored_key, stored)


def _decoded(key: bytes, value: bytes | None) -> tuple[str, Any, Any]:
    stored_key = decode_record_key(GROUP_KEYS, key)
    name = type(stored_key).__name__.removesuffix("Key")
    return name, stored_key, None if value is None else decode_record_value(f"{name}Value", value)


def _replay_group(group: ConsumerGroup, _key: Any, value: Any) -> None:
    assert value is not None, "the group's tombstone removes it"
    group.epoch, group.metadata_hash = value.epoch, value.metadata_hash


def _replay_member(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.remove(key.member_id)
        return
    member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.put(
        member._replace(
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topic_names=frozenset(value.subscribed_topic_names),
            topic_regex=value.subscribed_topic_regex or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=_classic(value.classic_member_metadata),
        )
    )


def _classic(stored: Any) -> ClassicSide | None:
    if stored is None:
        return None
    protocols = tuple((one.name, bytes(one.metadata)) for one in stored.supported_protocols)
    return ClassicSide(stored.session_timeout_ms, protocols)


def _replay_target_epoch(group: ConsumerGroup, _key: Any, value: Any) -> None:
    group.assignment_epoch, group.assignment_time_ms = (
        (INITIAL_EPOCH, NO_TIME_MS)
        if value is None
        else (value.assignment_epoch, value.assignment_timestamp)
    )


def _replay_target(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
        return
    rows = ((row.topic_id, row.partitions) for row in value.topic_partitions)
    group.targets[key.member_id] = assignment_of(rows)


def _replay_current(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        _replay_left(group, key.member_id)
        return
    member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
    group.put(
        member._replace(
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=_state(value.state),
            assigned=_held(value.assigned_partitions, value.member_epoch),
            revoking=_held(value.partitions_pending_revocation, value.member_epoch),
        )
    )


def _held(rows: Iterable[Any], member_epoch: int) -> Held:
    """Return partitions with their epochs. Records of Kafka before 4.3 have no epochs: then it is
    the member's epoch.
    """
    held: dict[bytes, dict[int, int]] = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            epochs = [max(member_epoch, 0)] * len(row.partitions)
        if epochs:
            held.setdefault(row.topic_id, {}).update(zip(row.partitions, epochs, strict=True))
    return held


def _replay_left(group: ConsumerGroup, member_id: str) -> None:
    """Remove a member's assignment; the tombstone of the member itself follows."""
    member = group.members.get(member_id)
    if member is not None:
        group.put(
            member._replace(
                epoch=LEAVE_EPOCH,
                previous_epoch=LEAVE_EPOCH,
                state=MemberState.STABLE,
                assigned=HOLDS_NOTHING,
                revoking=HOLDS_NOTHING,
            )
        )


def _replay_regex(group: ConsumerGroup, key: Any, value: Any) -> None:
    if value is None:
        group.regexes.pop(key.regular_expression, None)
        return
    resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
    group.regexes[key.regular_expression] = resolved


def _state(number: int) -> MemberState:
    known = MemberState._value2member_map_
    return MemberState(number) if number in known else MemberState.UNKNOWN


_REPLAYED: Mapping[str, Callable[[ConsumerGroup, Any, Any], None]] = {
    _GROUP: _replay_group,
    "ConsumerGroupMemberMetadata": _replay_member,
    "ConsumerGroupTargetAssignmentMetadata": _replay_target_epoch,
    "ConsumerGroupTargetAssignmentMember": _replay_target,
    "ConsumerGroupCurrentMemberAssignment": _replay_current,
    "ConsumerGroupRegularExpression": _replay_regex,
}

KINDS = frozenset(GROUP_KEYS.index(f"{name}Key") for name in _REPLAYED)
"""Kinds of records in `__consumer_offsets`. Kind 4, which Kafka wrote until 4.0, has only data that
is also in the image."""
