"""Deadlines of a consumer group's members: for their sessions, and for the revocation of
partitions.
"""

from pykafka_core.coordinator.group.consumer.member import (
    LEAVE_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from pykafka_core.coordinator.group.consumer.timers.keys import ConsumerDue, DueInConsumerGroup
from pykafka_core.coordinator.group.state import GroupState
from pykafka_core.types import NS_PER_MS


def touch(state: GroupState, group_id: str, member_id: str, now_ns: int, timeout_ms: int) -> None:
    """Restart the session of a member that has sent a request."""
    key = DueInConsumerGroup(ConsumerDue.SESSION, group_id, member_id)
    state.deadlines.set(key, now_ns + timeout_ms * NS_PER_MS)


def watch_revocation(state: GroupState, group_id: str, member: ConsumerMember, now_ns: int) -> None:
    """Start or cancel the deadline for a member's revocation; a member that is away has none."""
    key = DueInConsumerGroup(ConsumerDue.REBALANCE, group_id, member.member_id)
    is_away = member.epoch == LEAVE_STATIC_EPOCH
    # A classic member has deadlines to rejoin and to sync instead.
    gives_up = member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None
    if gives_up and not is_away:
        watch(state, ConsumerDue.REBALANCE, group_id, member, now_ns)
    else:
        state.deadlines.cancel(key)


def watch(
    state: GroupState, what: ConsumerDue, group_id: str, member: ConsumerMember, now_ns: int
) -> None:
    """Set a deadline of a member: its rebalance timeout from now on."""
    key = DueInConsumerGroup(what, group_id, member.member_id)
    state.deadlines.set(key, now_ns + max(member.rebalance_timeout_ms, 0) * NS_PER_MS)


def forget_deadlines(state: GroupState, group_id: str, member_id: str) -> None:
    """Cancel all deadlines of a removed member."""
    for what in ConsumerDue:
        state.deadlines.cancel(DueInConsumerGroup(what, group_id, member_id))
