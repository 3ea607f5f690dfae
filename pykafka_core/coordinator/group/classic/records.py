"""Stored groups: GroupMetadataKey and GroupMetadataValue."""

from collections.abc import Sequence
from typing import cast

from pykafka_core.coordinator.group.classic.group import ClassicGroup
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import KeyValue
from pykafka_core.protocol.coordinator_records import (
    GROUP_KEYS,
    decode_record_key,
    decode_record_value,
    encode_record_key,
    encode_record_value,
)
from pykafka_core.protocol.messages import GroupMetadataKey, GroupMetadataValue

VALUE_VERSION = 3
"""``groupMetadataValueVersion`` since metadata.version 2.3."""
NO_TIMESTAMP = -1
NO_REBALANCE_TIMEOUT = -1


def group_record(
    group: ClassicGroup, members: Sequence[GroupMetadataValue.MemberMetadata], leader_id: str | None
) -> KeyValue:
    """Return the record of the group in its current generation with these members."""
    timestamp_ms = group.state_timestamp_ms
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=leader_id,
        current_state_timestamp=NO_TIMESTAMP if timestamp_ms is None else timestamp_ms,
        members=list(members),
    )
    return group_key(group.group_id), encode_record_value(value, VALUE_VERSION)


def stored_member(
    member: Member, protocol_name: str | None, assignment: bytes
) -> GroupMetadataValue.MemberMetadata:
    """Return a member with its metadata of the selected protocol."""
    return GroupMetadataValue.MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.metadata(protocol_name),
        assignment=assignment,
    )


def group_tombstone(group_id: str) -> KeyValue:
    """Return the record that removes a group."""
    return group_key(group_id), None


def group_key(group_id: str) -> bytes:
    """Return the record key of a group; its offsets have other keys."""
    return encode_record_key(GROUP_KEYS, GroupMetadataKey(group=group_id))


def replay_group(state: GroupState, key: bytes, value: bytes | None) -> None:
    """Apply a stored group or its tombstone; its offsets have separate records.

    Raises:
        ProtocolError: The bytes are not such a record.
    """
    group_id = cast("GroupMetadataKey", decode_record_key(GROUP_KEYS, key)).group
    if value is None:
        state.groups.pop(group_id, None)
        return
    stored = cast("GroupMetadataValue", decode_record_value("GroupMetadataValue", value))
    state.groups[group_id] = _loaded(state, group_id, stored)


def _loaded(state: GroupState, group_id: str, stored: GroupMetadataValue) -> ClassicGroup:
    group = ClassicGroup(group_id)
    for member in stored.members:
        group.add(_loaded_member(state, group_id, stored.protocol, member))
    group.state = ClassicGroupState.STABLE if stored.members else ClassicGroupState.EMPTY
    timestamp_ms = stored.current_state_timestamp
    group.state_timestamp_ms = None if timestamp_ms == NO_TIMESTAMP else timestamp_ms
    group.generation_id = stored.generation
    group.protocol_type = stored.protocol_type or None
    group.protocol_name = stored.protocol
    group.leader_id = stored.leader
    return group


def _loaded_member(
    state: GroupState,
    group_id: str,
    protocol_name: str | None,
    stored: GroupMetadataValue.MemberMetadata,
) -> Member:
    rebalance_timeout_ms = stored.rebalance_timeout
    if rebalance_timeout_ms == NO_REBALANCE_TIMEOUT:
        rebalance_timeout_ms = stored.session_timeout  # version 0 has none
    return Member(
        group_id,
        stored.member_id,
        stored.group_instance_id,
        client_id=stored.client_id,
        client_host=stored.client_host,
        session_timeout_ms=stored.session_timeout,
        rebalance_timeout_ms=rebalance_timeout_ms,
        protocols=((protocol_name or "", stored.subscription),),
        memory=state.member_memory,
        assignment=stored.assignment,
    )
