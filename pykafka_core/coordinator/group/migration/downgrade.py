"""Converts a consumer group without members of the consumer protocol: ``convertToClassicGroup``."""

from pykafka_core.coordinator.group.classic.group import (
    CONSUMER_PROTOCOL,
    ClassicGroup,
    selected_protocol,
)
from pykafka_core.coordinator.group.classic.member import Member
from pykafka_core.coordinator.group.classic.rebalance import prepare_rebalance
from pykafka_core.coordinator.group.classic.records import group_record, stored_member
from pykafka_core.coordinator.group.classic.session import touch_member
from pykafka_core.coordinator.group.classic.states import ClassicGroupState
from pykafka_core.coordinator.group.consumer.group import ConsumerGroup
from pykafka_core.coordinator.group.consumer.member import ConsumerMember
from pykafka_core.coordinator.group.consumer.records import group_tombstones
from pykafka_core.coordinator.group.consumer.timers.session import forget_deadlines
from pykafka_core.coordinator.group.migration.consumer_protocol import encoded_assignment
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.coordinator.shard import BatchFullError, CoordinatorResult

_REASON = "the last member of the consumer protocol is gone"


def is_downgraded(
    state: GroupState,
    left: ConsumerGroup,
    before: ConsumerGroup,
    cause: str,
    result: CoordinatorResult,
    *,
    rebalances: bool = True,
) -> bool:
    """Convert the group to a classic group if only classic members are left; return whether it was
    converted.

    The group epoch becomes the generation, so that members of that epoch rejoin without losing
    their partitions. The group is not converted if that is not allowed, or if the records do not
    fit into one batch.

    Args:
        state: State of the shard.
        left: The group without the members that leave.
        before: The group with them.
        cause: The change of the members, for the history.
        result: The result of this operation.
        rebalances: Whether the partitions must be assigned again.
    """
    if not _is_due(state, left):
        return False
    classic = _classic(state, left, result.now_ms)
    members = [
        stored_member(member, classic.protocol_name, member.assignment)
        for member in classic.members.values()
    ]
    record = group_record(classic, members, classic.leader_id)
    try:
        result.append([*group_tombstones(before), record])
    except BatchFullError:
        return False
    group_id = before.group_id
    del state.consumer_groups[group_id]
    state.groups[group_id] = classic
    for member_id in before.members:
        forget_deadlines(state, group_id, member_id)
    for member in classic.members.values():
        touch_member(state, member, result.now_ns)
    if rebalances:
        prepare_rebalance(state, classic, f"{cause}; {_REASON}", result)
    return True


def _is_due(state: GroupState, left: ConsumerGroup) -> bool:
    return (
        bool(left.members)
        and state.settings.consumer.migration.allows_downgrade
        and len(left.members) <= state.settings.max_size
        and left.is_classic_only
        and bool(left.common_protocols())
    )


def _classic(state: GroupState, group: ConsumerGroup, now_ms: int) -> ClassicGroup:
    classic = ClassicGroup(group.group_id)
    classic.history = group.history
    for member in group.members.values():
        classic.add(_member(state, group, member))
    classic.state = ClassicGroupState.STABLE
    classic.state_timestamp_ms = now_ms
    classic.generation_id = group.epoch
    classic.protocol_type = CONSUMER_PROTOCOL
    classic.protocol_name = selected_protocol(list(classic.members.values()))
    return classic


def _member(state: GroupState, group: ConsumerGroup, member: ConsumerMember) -> Member:
    side = member.classic
    assert side is not None, "all of them are classic members"
    target = group.target(member.member_id)
    return Member(
        group.group_id,
        member.member_id,
        member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=side.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=side.protocols,
        memory=state.member_memory,
        assignment=encoded_assignment(target, member.topic_names, state.topic_id, side.metadata),
    )
